# Owner(s): ["rankbook: collectives"]
"""`all_to_all`: every rank sends a different piece to every rank, a transposition across ranks."""

import torch
import torch.distributed as dist
from common_ranks import DEVICE_TYPE, TwoRanksTest
from torch.testing._internal.common_utils import run_tests


class AllToAllTest(TwoRanksTest):
    def test_equal_pieces(self):
        """Rank r receives the r-th piece of every rank: number "sender, receiver" arrives at its receiver."""
        sent = torch.tensor([10 * self.rank + receiver for receiver in range(self.world_size)], device=DEVICE_TYPE)
        received = torch.full_like(sent, -1)
        dist.all_to_all_single(received, sent)
        self.assertEqual(received.tolist(), [10 * sender + self.rank for sender in range(self.world_size)])

    def test_uneven_pieces(self):
        """Pieces may differ in size when both sides name the sizes."""
        # Rank 0 sends one number to rank 0 and two to rank 1; rank 1 sends three and one.
        sizes = [[1, 2], [3, 1]]
        sent = torch.arange(sum(sizes[self.rank]), device=DEVICE_TYPE) + 100 * self.rank
        incoming = [sizes[sender][self.rank] for sender in range(self.world_size)]
        received = torch.full((sum(incoming),), -1, device=DEVICE_TYPE)
        dist.all_to_all_single(received, sent, output_split_sizes=incoming, input_split_sizes=sizes[self.rank])
        self.assertEqual(received.tolist(), [[0, 100, 101, 102], [1, 2, 103]][self.rank])

    def test_lists(self):
        """`all_to_all` takes the pieces as lists of tensors."""
        sent = [torch.full((2,), 10 * self.rank + receiver, device=DEVICE_TYPE) for receiver in range(self.world_size)]
        received = [torch.full((2,), -1, device=DEVICE_TYPE) for _ in range(self.world_size)]
        dist.all_to_all(received, sent)
        self.assertEqual([piece.tolist() for piece in received], [[self.rank] * 2, [10 + self.rank] * 2])


if __name__ == "__main__":
    run_tests()
