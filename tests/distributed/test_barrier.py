# Owner(s): ["rankbook: collectives"]
"""`barrier`: no rank passes before the last one has arrived. Proved by the order of events, without any clock."""

from pathlib import Path

import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.common_utils import run_tests


class BarrierTest(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def tearDown(self):
        super().tearDown()
        Path(self.file_name).unlink(missing_ok=True)

    def test_waits_for_the_last_rank(self):
        """Rank 0's barrier is still open while rank 1 has provably not entered it, and ends once it has."""
        store = dist.FileStore(self.file_name, self.world_size)
        # Gloo everywhere: NCCL would hold rank 0 already while it sets up its communicator.
        dist.init_process_group("gloo", store=dist.PrefixStore("ranks", store), rank=self.rank, world_size=self.world_size)
        notes = dist.PrefixStore("notes", store)
        if self.rank == 0:
            work = dist.barrier(async_op=True)
            self.assertFalse(work.is_completed())
            notes.set("looked", "rank 0 saw an open barrier")
            work.wait()
            self.assertTrue(notes.check(["entered"]))
        else:
            self.assertEqual(notes.get("looked"), b"rank 0 saw an open barrier")
            notes.set("entered", "rank 1")
            dist.barrier()


if __name__ == "__main__":
    run_tests()
