# Owner(s): ["rankbook: interoperability"]
"""`__cuda_array_interface__`: other libraries' GPU arrays become tensors, and tensors their arrays, without a copy."""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.multiprocessing.reductions import reduce_tensor
from torch.testing._internal.common_cuda import TEST_CUDA
from torch.testing._internal.common_distributed import MultiProcContinuousTest
from torch.testing._internal.common_utils import TestCase, run_tests, skip_but_pass_in_sandcastle_if

needs_gpu = skip_but_pass_in_sandcastle_if(not TEST_CUDA, "CUDA is not available")


@dataclass(frozen=True)
class ForeignArray:
    """Bytes on a GPU as another library would hand them over: an address and a size."""

    address: int
    size: int

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 3}


def as_foreign(tensor):
    """Forget that these bytes belong to a tensor."""
    return ForeignArray(tensor.data_ptr(), tensor.numel() * tensor.element_size())


class CudaArrayInterfaceTest(TestCase):
    def test_cpu_tensor_has_none(self):
        """A tensor on the CPU does not pretend to be a GPU array."""
        with self.assertRaisesRegex(AttributeError, "__cuda_array_interface__"):
            _ = torch.ones(2).__cuda_array_interface__

    @needs_gpu
    def test_tensor_describes_itself(self):
        """A GPU tensor tells its address, its shape and its type."""
        tensor = torch.ones(2, 3, dtype=torch.int32, device="cuda")
        interface = tensor.__cuda_array_interface__
        self.assertEqual((interface["shape"], interface["typestr"]), ((2, 3), "<i4"))
        self.assertEqual(interface["data"], (tensor.data_ptr(), False))

    @needs_gpu
    def test_foreign_array_is_not_copied(self):
        """A tensor made from a foreign array shares its memory: a write through one is seen through the other."""
        tensor = torch.arange(6, dtype=torch.int32, device="cuda")
        view = torch.as_tensor(as_foreign(tensor), device="cuda").view(torch.int32)
        self.assertEqual(view.data_ptr(), tensor.data_ptr())
        view += 10
        self.assertEqual(tensor.tolist(), [10, 11, 12, 13, 14, 15])


@needs_gpu
class SharedForeignArrayTest(MultiProcContinuousTest):
    world_size = 2

    @classmethod
    def backend_str(cls):
        return "gloo"

    def test_array_of_another_process(self):
        """Two ranks on one GPU: rank 1 wraps memory of rank 0 as a foreign array, and rank 0 sees what it writes."""
        own = torch.arange(6, dtype=torch.int32, device="cuda:0") if self.rank == 0 else None
        message = [reduce_tensor(own) if self.rank == 0 else None]
        torch.cuda.synchronize()
        dist.broadcast_object_list(message, src=0)
        if self.rank == 1:
            rebuild, arguments = message[0]
            mapped = rebuild(*arguments)
            view = torch.as_tensor(as_foreign(mapped), device="cuda:0").view(torch.int32)
            self.assertEqual(view.tolist(), [0, 1, 2, 3, 4, 5])
            view *= 2
            torch.cuda.synchronize()
            del view, mapped
        dist.barrier()
        if self.rank == 0:
            self.assertEqual(own.tolist(), [0, 2, 4, 6, 8, 10])


if __name__ == "__main__":
    run_tests()
