# Owner(s): ["rankbook: functional collectives"]
"""Functional collectives: they return new tensors and leave their inputs alone, as compilers want it."""

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as funcol
from torch.testing._internal.common_distributed import MultiThreadedTestCase
from torch.testing._internal.common_utils import run_tests


class FunctionalCollectivesTest(MultiThreadedTestCase):
    @property
    def world_size(self):
        return 4

    def setUp(self):
        super().setUp()
        self._spawn_threads()

    def test_all_reduce(self):
        """The sum is a new tensor; the input keeps this rank's numbers."""
        own = torch.full((2,), float(self.rank))
        total = funcol.all_reduce(own, "sum", dist.group.WORLD)
        self.assertEqual(total.tolist(), [6.0, 6.0])
        self.assertEqual(own.tolist(), [float(self.rank)] * 2)

    def test_gather_along_any_dimension(self):
        """`all_gather_single` concatenates the parts along the dimension that it is told."""
        column = torch.tensor([[self.rank], [10 + self.rank]])
        table = funcol.all_gather_single(column, 1, dist.group.WORLD)
        self.assertEqual(table.tolist(), [[0, 1, 2, 3], [10, 11, 12, 13]])

    def test_reduce_scatter(self):
        """Each rank gets its row of the sum."""
        table = torch.arange(4.0).reshape(4, 1) + self.rank
        row = funcol.reduce_scatter_single(table, "sum", 0, dist.group.WORLD)
        self.assertEqual(row.tolist(), [[4.0 * self.rank + 6.0]])


if __name__ == "__main__":
    run_tests()
