# Owner(s): ["rankbook: collectives"]
"""Reductions that every backend must get right: the base from which the tests of each backend inherit."""

from abc import ABC, abstractmethod

import torch
import torch.distributed as dist

# Reduction, and what two ranks holding [2, 5] and [3, 4] get from it.
REDUCTIONS = (
    (dist.ReduceOp.SUM, [5, 9]),
    (dist.ReduceOp.PRODUCT, [6, 20]),
    (dist.ReduceOp.MIN, [2, 4]),
    (dist.ReduceOp.MAX, [3, 5]),
)


class ReductionTests(ABC):
    """Tests of one backend; not a test case by itself, because it says neither the backend nor the harness."""

    world_size = 2

    @property
    @abstractmethod
    def device(self):
        """Device of this rank's tensors."""

    def operand(self, dtype):
        """Tensor of this rank."""
        return torch.tensor([[2, 5], [3, 4]][self.rank], dtype=dtype, device=self.device)

    def reduced(self, dtype, op):
        """What this rank gets from the reduction."""
        tensor = self.operand(dtype)
        dist.all_reduce(tensor, op=op)
        return tensor

    def test_every_reduction(self):
        """Sum, product, minimum and maximum combine the ranks' tensors element by element."""
        for op, expected in REDUCTIONS:
            self.assertEqual(self.reduced(torch.float32, op).tolist(), expected, msg=str(op))

    def test_every_dtype(self):
        """A sum keeps its dtype, from 8-bit integers to 64-bit floats."""
        for dtype in (torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64):
            tensor = self.reduced(dtype, dist.ReduceOp.SUM)
            self.assertEqual((tensor.dtype, tensor.tolist()), (dtype, [5, 9]))

    def test_part_of_a_larger_tensor(self):
        """Reducing a contiguous row leaves the rest of its tensor alone."""
        tensor = torch.full((3, 4), float(self.rank), device=self.device)
        dist.all_reduce(tensor[1])
        self.assertEqual(tensor.tolist(), [[float(self.rank)] * 4, [1.0] * 4, [float(self.rank)] * 4])
