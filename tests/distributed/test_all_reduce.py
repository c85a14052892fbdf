# Owner(s): ["rankbook: collectives"]
"""`all_reduce` on ranks that live as long as the class (`MultiProcContinuousTest`)."""

import torch
import torch.distributed as dist
from common_ranks import DEVICE_TYPE, TwoRanksTest
from torch.testing._internal.common_utils import run_tests


class AllReduceTest(TwoRanksTest):
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
