"""Two gloo ranks under torch's MultiProcContinuousTest."""

import unittest

import torch
import torch.distributed as dist
from plain_programs import emit
from torch.testing._internal.common_distributed import MultiProcContinuousTest


class Continuous(MultiProcContinuousTest):
    world_size = 2

    @classmethod
    def backend_str(cls):
        return "gloo"

    def test_sum(self):
        tensor = torch.tensor([self.rank + 1.0])
        dist.all_reduce(tensor)
        self.assertEqual(tensor.item(), 3)

    def test_product(self):
        tensor = torch.tensor([self.rank + 1.0])
        dist.all_reduce(tensor, dist.ReduceOp.PRODUCT)
        self.assertEqual(tensor.item(), 2)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    emit({"type": "unittest", "run": result.testsRun, "good": result.wasSuccessful(), "skipped": len(result.skipped)})
