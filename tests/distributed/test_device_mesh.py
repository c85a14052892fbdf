# Owner(s): ["rankbook: device mesh"]
"""A device mesh arranges ranks in a grid and has a process group for every row and every column."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.common_distributed import MultiThreadedTestCase
from torch.testing._internal.common_utils import run_tests


class DeviceMeshTest(MultiThreadedTestCase):
    @property
    def world_size(self):
        return 4

    def setUp(self):
        super().setUp()
        self._spawn_threads()

    def mesh(self):
        """Two replicas of two shards each: ranks 0 and 1 in the first row, 2 and 3 in the second."""
        return init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "shard"))

    def test_coordinates(self):
        """Ranks fill the grid row by row, and each knows its own place."""
        mesh = self.mesh()
        self.assertEqual(mesh.mesh.tolist(), [[0, 1], [2, 3]])
        self.assertEqual(list(mesh.get_coordinate()), [self.rank // 2, self.rank % 2])

    def test_groups_of_rows_and_columns(self):
        """A sum over `shard` stays in the row, one over `replica` in the column, and both together reach all ranks."""
        mesh = self.mesh()
        row = torch.tensor([10**self.rank])
        dist.all_reduce(row, group=mesh.get_group("shard"))
        self.assertEqual(row.item(), 11 if self.rank < 2 else 1100)

        column = torch.tensor([10**self.rank])
        dist.all_reduce(column, group=mesh.get_group("replica"))
        self.assertEqual(column.item(), 1010 if self.rank % 2 else 101)

        dist.all_reduce(row, group=mesh.get_group("replica"))
        self.assertEqual(row.item(), 1111)

    def test_slice(self):
        """A mesh sliced by a name is the row or column that holds this rank."""
        mesh = self.mesh()
        self.assertEqual(mesh["shard"].mesh.tolist(), [0, 1] if self.rank < 2 else [2, 3])
        self.assertEqual(mesh["replica"].mesh.tolist(), [1, 3] if self.rank % 2 else [0, 2])


if __name__ == "__main__":
    run_tests()
