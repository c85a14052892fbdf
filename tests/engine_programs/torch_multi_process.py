"""Two gloo ranks under torch's MultiProcessTestCase."""

import os
import signal
import sys
import unittest

import torch
import torch.distributed as dist
from plain_programs import emit
from torch.testing._internal.common_distributed import MultiProcessTestCase


class TwoRanks(MultiProcessTestCase):
    world_size = 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def join_group(self):
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size)

    def test_sum_and_last_rank_dies(self):
        self.join_group()
        tensor = torch.tensor([self.rank + 1.0])
        dist.all_reduce(tensor)
        print(f"rank {self.rank} has {tensor.item():g}")
        self.assertEqual(tensor.item(), 3)
        dist.destroy_process_group()
        if self.rank == 1:
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    def test_broken(self):
        left, right = self.rank + 40, 2
        assert left == right

    def test_left_out(self):
        sys.exit(72)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    emit(
        {
            "type": "unittest",
            "run": result.testsRun,
            "failed": sorted(test.id() for test, _ in result.failures + result.errors),
            "skipped": [test.id() for test, _ in result.skipped],
            "texts": "".join(text for _, text in result.failures + result.errors),
        }
    )
