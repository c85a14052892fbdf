# Owner(s): ["rankbook: checkpoint"]
"""Distributed checkpoints: every rank writes its shards, and a load may shard the same tensor in another way."""

import shutil
from pathlib import Path

import torch
from torch.distributed import checkpoint
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, zeros
from torch.testing._internal.common_utils import run_tests
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms


class CheckpointTest(DTensorTestBase):
    @property
    def world_size(self):
        return 2

    @property
    def folder(self):
        """A folder that all ranks of this test know and no other test uses."""
        return f"{self.file_name}.checkpoint"

    def tearDown(self):
        super().tearDown()
        Path(self.file_name).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def weight(self):
        """The tensor that is saved: whole, and the same on every rank."""
        return torch.arange(24.0, device=self.device_type).reshape(4, 6)

    def loaded(self, mesh, placement):
        """Load the weight, sharded as the caller wants it."""
        state = {"weight": zeros(4, 6, device_mesh=mesh, placements=[placement]), "step": 0}
        checkpoint.load(state, checkpoint_id=self.folder)
        return state

    @with_comms
    def test_load_with_other_shards(self):
        """Saved in rows, a tensor loads in rows, in columns and whole; a plain value comes back too."""
        mesh = self.build_device_mesh()
        rows = distribute_tensor(self.weight(), mesh, [Shard(0)])
        checkpoint.save({"weight": rows, "step": 17}, checkpoint_id=self.folder)
        written = {path.name.split("_")[2] for path in Path(self.folder).glob("*.distcp")}
        self.assertEqual(written, {"0", "1"})

        expected = {
            Shard(0): self.weight()[2 * self.rank : 2 * self.rank + 2],
            Shard(1): self.weight()[:, 3 * self.rank : 3 * self.rank + 3],
            Replicate(): self.weight(),
        }
        for placement, local in expected.items():
            state = self.loaded(mesh, placement)
            self.assertEqual(state["weight"].to_local(), local)
            self.assertEqual(state["step"], 17)


if __name__ == "__main__":
    run_tests()
