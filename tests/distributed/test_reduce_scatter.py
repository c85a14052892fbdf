# Owner(s): ["rankbook: collectives"]
"""`reduce_scatter`: the ranks' tensors are summed, and each rank keeps its own piece of the sum."""

import torch
import torch.distributed as dist
from common_ranks import DEVICE_TYPE, TwoRanksTest
from torch.testing._internal.common_utils import run_tests


class ReduceScatterTest(TwoRanksTest):
    def whole(self):
        """Tensor of this rank, before anything is summed: rank 0 has 0..3, rank 1 ten times as much."""
        return torch.arange(4.0, device=DEVICE_TYPE) * 10**self.rank

    def test_single(self):
        """Rank r gets the r-th equal piece of the sum."""
        piece = torch.zeros(2, device=DEVICE_TYPE)
        dist.reduce_scatter_single(piece, self.whole())
        self.assertEqual(piece.tolist(), [[0.0, 11.0], [22.0, 33.0]][self.rank])

    def test_list(self):
        """The same holds for pieces that are given as a list."""
        piece = torch.zeros(2, device=DEVICE_TYPE)
        dist.reduce_scatter(piece, list(self.whole().chunk(self.world_size)))
        self.assertEqual(piece.tolist(), [[0.0, 11.0], [22.0, 33.0]][self.rank])

    def test_with_all_gather_is_all_reduce(self):
        """Gathering the pieces again gives what `all_reduce` gives."""
        piece = torch.zeros(2, device=DEVICE_TYPE)
        dist.reduce_scatter_single(piece, self.whole())
        gathered = torch.zeros(4, device=DEVICE_TYPE)
        dist.all_gather_single(gathered, piece)
        reduced = self.whole()
        dist.all_reduce(reduced)
        self.assertEqual(gathered, reduced)
        self.assertEqual(gathered.tolist(), [0.0, 11.0, 22.0, 33.0])


if __name__ == "__main__":
    run_tests()
