# Owner(s): ["rankbook: harness"]
"""Ranks as threads of one process (`MultiThreadedTestCase`): many ranks, no process start, collectives in memory."""

import threading

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiThreadedTestCase
from torch.testing._internal.common_utils import run_tests


class ThreadedRanksTest(MultiThreadedTestCase):
    @property
    def world_size(self):
        return 4

    def setUp(self):
        super().setUp()
        self._spawn_threads()

    def test_each_rank_is_a_thread(self):
        """Four ranks are four threads, and each knows its own rank."""
        own = (dist.get_rank(), threading.get_ident())
        ranks = [None] * self.world_size
        dist.all_gather_object(ranks, own)
        self.assertEqual([rank for rank, _ in ranks], [0, 1, 2, 3])
        self.assertEqual(len({thread for _, thread in ranks}), 4)
        self.assertEqual(own, ranks[self.rank])

    def test_subgroups(self):
        """Even and odd ranks sum among themselves: a group leaves the others' tensors alone."""
        even, odd = dist.new_group([0, 2]), dist.new_group([1, 3])
        tensor = torch.tensor([10**self.rank])
        dist.all_reduce(tensor, group=odd if self.rank % 2 else even)
        self.assertEqual(tensor.item(), 1010 if self.rank % 2 else 101)

    def test_collectives_chain(self):
        """Scatter, change, gather: each rank works on its own piece of rank 0's tensor."""
        piece = torch.zeros(2)
        dist.scatter(piece, list(torch.arange(8.0).chunk(4)) if self.rank == 0 else None, src=0)
        pieces = [torch.zeros(2) for _ in range(self.world_size)]
        dist.all_gather(pieces, piece * (self.rank + 1))
        self.assertEqual(torch.cat(pieces).tolist(), [0.0, 1.0, 4.0, 6.0, 12.0, 15.0, 24.0, 28.0])


if __name__ == "__main__":
    run_tests()
