# Owner(s): ["rankbook: sharded tensor"]
"""`ShardedTensor`: on gloo with two ranks, and on the four GPUs, NCCL and RPC that its harness is made for."""

from pathlib import Path

import torch
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec
from torch.testing._internal.common_utils import run_tests
from torch.testing._internal.distributed._shard.sharded_tensor import ShardedTensorTestBase, with_comms


class ShardedTensorTest(ShardedTensorTestBase):
    def tearDown(self):
        super().tearDown()
        Path(self.file_name).unlink(missing_ok=True)

    def sharded_rows(self, device, **options):
        """A tensor of two rows for each rank; the rows of rank r are filled with r."""
        placements = [f"rank:{rank}/{device.format(rank=rank)}" for rank in range(self.world_size)]
        spec = ChunkShardingSpec(dim=0, placements=placements)
        tensor = sharded_tensor.empty(spec, 2 * self.world_size, 3, **options)
        for shard in tensor.local_shards():
            shard.tensor.fill_(self.rank)
        return tensor

    def check_gathered(self, tensor, device):
        """The rows of all ranks arrive at rank 0, in their order."""
        rows = torch.full((2 * self.world_size, 3), -1.0, device=device) if self.rank == 0 else None
        tensor.gather(dst=0, out=rows)
        if self.rank == 0:
            self.assertEqual(rows[:, 0].tolist(), [float(rank) for rank in range(self.world_size) for _ in range(2)])


class GlooShardedTensorTest(ShardedTensorTest):
    @property
    def world_size(self):
        return 2

    @with_comms(init_rpc=False, backend="gloo")
    def test_gather(self):
        """Each rank holds its own two rows, all ranks know where every row is, and rank 0 can gather them."""
        tensor = self.sharded_rows("cpu")
        self.assertEqual(tensor.local_tensor().tolist(), [[float(self.rank)] * 3] * 2)
        self.assertEqual([shard.shard_offsets for shard in tensor.metadata().shards_metadata], [[0, 0], [2, 0]])
        self.check_gathered(tensor, "cpu")


class NcclShardedTensorTest(ShardedTensorTest):
    @with_comms
    def test_gather_and_remote_shards(self):
        """Across four GPUs rank 0 gathers all rows, and any rank reads another rank's rows through RPC."""
        tensor = self.sharded_rows("cuda:{rank}", init_rrefs=True)
        self.check_gathered(tensor, f"cuda:{self.rank}")
        remote = tensor.remote_shards()
        self.assertEqual(sorted(remote), [rank for rank in range(self.world_size) if rank != self.rank])
        for rank, shards in remote.items():
            offsets = [shard.to_here().metadata.shard_offsets for shard in shards]
            self.assertEqual(offsets, [[2 * rank, 0]])


if __name__ == "__main__":
    run_tests()
