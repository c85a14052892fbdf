# Owner(s): ["rankbook: collectives"]
"""Two ranks that share one process group for all tests of a class: NCCL on two GPUs, gloo on the CPU where there are fewer."""

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcContinuousTest

WORLD_SIZE = 2
# NCCL wants a GPU of its own for every rank; where there are fewer, gloo runs the same test on the CPU.
DEVICE_TYPE = "cuda" if torch.cuda.device_count() >= WORLD_SIZE else "cpu"


class TwoRanksTest(MultiProcContinuousTest):
    """Base of the tests: subclasses add tests, each of which runs on both ranks."""

    world_size = WORLD_SIZE

    @classmethod
    def backend_str(cls):
        return dist.get_default_backend_for_device(DEVICE_TYPE)

    @classmethod
    def _init_pg(cls, rank, world_size, rdvz_file):
        torch.get_device_module(DEVICE_TYPE).set_device(rank)
        super()._init_pg(rank, world_size, rdvz_file)
