# Owner(s): ["rankbook: tensor parallel"]
"""`DTensor` on the harness that starts ranks and picks device and backend itself (`DTensorTestBase`, `with_comms`)."""

from pathlib import Path

import torch
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.testing._internal.common_utils import run_tests
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms


class DTensorTest(DTensorTestBase):
    @property
    def world_size(self):
        return 2

    def tearDown(self):
        super().tearDown()
        Path(self.file_name).unlink(missing_ok=True)

    @with_comms
    def test_redistribute(self):
        """The same tensor lies whole, in rows or in columns on the ranks, and stays the same tensor."""
        whole = torch.arange(8.0, device=self.device_type).reshape(4, 2)
        rows = distribute_tensor(whole, self.build_device_mesh(), [Shard(0)])
        self.assertEqual(rows.to_local(), whole[2 * self.rank : 2 * self.rank + 2])

        columns = rows.redistribute(placements=[Shard(1)])
        self.assertEqual(columns.to_local(), whole[:, self.rank : self.rank + 1])
        self.assertEqual(columns.redistribute(placements=[Replicate()]).to_local(), whole)

    @with_comms
    def test_product_of_shards(self):
        """Columns times rows leaves partial sums on the ranks, and `full_tensor` adds them up to the real product."""
        left = torch.arange(6.0, device=self.device_type).reshape(3, 2)
        right = torch.arange(4.0, device=self.device_type).reshape(2, 2) + 1
        mesh = self.build_device_mesh()
        product = distribute_tensor(left, mesh, [Shard(1)]) @ distribute_tensor(right, mesh, [Shard(0)])
        self.assertEqual(product.placements, (Partial(),))
        self.assertEqual(product.to_local(), torch.outer(left[:, self.rank], right[self.rank]))
        self.assertEqual(product.full_tensor(), left @ right)


if __name__ == "__main__":
    run_tests()
