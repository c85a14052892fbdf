# Owner(s): ["rankbook: collectives"]
"""The common reductions on gloo, whose ranks hold their tensors on the CPU, and what gloo has beyond them."""

import common_reduction
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcContinuousTest, requires_gloo
from torch.testing._internal.common_utils import run_tests


@requires_gloo()
class GlooReductionTest(common_reduction.ReductionTests, MultiProcContinuousTest):
    @classmethod
    def backend_str(cls):
        return "gloo"

    @property
    def device(self):
        return torch.device("cpu")

    def test_bitwise(self):
        """Gloo also combines integers bit by bit."""
        expected = {dist.ReduceOp.BAND: [2 & 3, 5 & 4], dist.ReduceOp.BOR: [2 | 3, 5 | 4], dist.ReduceOp.BXOR: [2 ^ 3, 5 ^ 4]}
        for op, result in expected.items():
            self.assertEqual(self.reduced(torch.int32, op).tolist(), result, msg=str(op))


if __name__ == "__main__":
    run_tests()
