# Owner(s): ["rankbook: collectives"]
"""`all_gather`, into a list of tensors and, as `all_gather_single`, into one tensor."""

import torch
import torch.distributed as dist
from common_ranks import DEVICE_TYPE, TwoRanksTest
from torch.testing._internal.common_utils import run_tests


class AllGatherTest(TwoRanksTest):
    def own_part(self):
        """Tensor that only this rank has."""
        return torch.tensor([self.rank + 1, 10 * (self.rank + 1)], device=DEVICE_TYPE)

    def test_list(self):
        """Every rank gets the parts of all ranks, in the order of the ranks."""
        parts = [torch.zeros(2, dtype=torch.int64, device=DEVICE_TYPE) for _ in range(self.world_size)]
        dist.all_gather(parts, self.own_part())
        self.assertEqual([part.tolist() for part in parts], [[1, 10], [2, 20]])

    def test_single(self):
        """`all_gather_single` puts the same parts one after the other into one tensor."""
        whole = torch.zeros(2 * self.world_size, dtype=torch.int64, device=DEVICE_TYPE)
        dist.all_gather_single(whole, self.own_part())
        self.assertEqual(whole.tolist(), [1, 10, 2, 20])

    def test_parts_are_copies(self):
        """A gathered part no longer follows its rank: what the rank does to its tensor afterwards stays there."""
        own = self.own_part()
        parts = [torch.zeros_like(own) for _ in range(self.world_size)]
        dist.all_gather(parts, own)
        own.zero_()
        self.assertEqual(torch.cat(parts).tolist(), [1, 10, 2, 20])


if __name__ == "__main__":
    run_tests()
