# Owner(s): ["rankbook: collectives"]
"""`all_reduce` on ranks that live as long as the class (`MultiProcContinuousTest`)."""

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcContinuousTest
from torch.testing._internal.common_utils import run_tests

WORLD_SIZE = 2
# NCCL wants a GPU of its own for every rank; where there are fewer, gloo runs the same test on the CPU.
DEVICE_TYPE = "cuda" if torch.cuda.device_count() >= WORLD_SIZE else "cpu"


class AllReduceTest(MultiProcContinuousTest):
    world_size = WORLD_SIZE

    @classmethod
    def backend_str(cls):
        return dist.get_default_backend_for_device(DEVICE_TYPE)

    @classmethod
    def _init_pg(cls, rank, world_size, rdvz_file):
        torch.get_device_module(DEVICE_TYPE).set_device(rank)
        super()._init_pg(rank, world_size, rdvz_file)

    def test_sum(self):
        """Every rank ends with the sum of all ranks' tensors, in the tensor that it passed in."""
        tensor = torch.arange(4.0, device=DEVICE_TYPE) * (self.rank + 1)
        address = tensor.data_ptr()
        dist.all_reduce(tensor)
        self.assertEqual(tensor.cpu(), torch.arange(4.0) * 3)
        self.assertEqual(tensor.data_ptr(), address)

    def test_max_asynchronous(self):
        """With `async_op`, the result is there once `wait` has returned."""
        tensor = torch.tensor([self.rank, -self.rank], device=DEVICE_TYPE)
        work = dist.all_reduce(tensor, op=dist.ReduceOp.MAX, async_op=True)
        work.wait()
        self.assertEqual(tensor.tolist(), [1, 0])

    def test_follows_order_of_calls(self):
        """Two reductions in a row pair up by the order of the calls, not by their tensors."""
        first = torch.full((3,), 10.0 + self.rank, device=DEVICE_TYPE)
        second = torch.full((3,), 100.0 + self.rank, device=DEVICE_TYPE)
        dist.all_reduce(first)
        dist.all_reduce(second)
        self.assertEqual((first[0].item(), second[0].item()), (21.0, 201.0))


if __name__ == "__main__":
    run_tests()
