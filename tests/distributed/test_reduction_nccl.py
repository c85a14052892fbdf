# Owner(s): ["rankbook: collectives"]
"""The common reductions on NCCL, with a GPU for every rank, and what NCCL has beyond them."""

import common_reduction
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcContinuousTest, requires_nccl, requires_world_size
from torch.testing._internal.common_utils import run_tests


@requires_world_size(2)
@requires_nccl()
class NcclReductionTest(common_reduction.ReductionTests, MultiProcContinuousTest):
    @classmethod
    def backend_str(cls):
        return "nccl"

    @classmethod
    def _init_pg(cls, rank, world_size, rdvz_file):
        torch.cuda.set_device(rank)
        super()._init_pg(rank, world_size, rdvz_file)

    @property
    def device(self):
        return torch.device("cuda", self.rank)

    def test_average(self):
        """NCCL also averages, without a division by the caller."""
        self.assertEqual(self.reduced(torch.float32, dist.ReduceOp.AVG).tolist(), [2.5, 4.5])

    def test_bfloat16(self):
        """NCCL sums bfloat16, the dtype in which gradients travel."""
        tensor = self.reduced(torch.bfloat16, dist.ReduceOp.SUM)
        self.assertEqual((tensor.dtype, tensor.tolist()), (torch.bfloat16, [5.0, 9.0]))


if __name__ == "__main__":
    run_tests()
