# Owner(s): ["rankbook: multiprocessing"]
"""GPU memory shared between processes: a rank reads and writes another rank's memory from its own GPU."""

import inspect

import torch
import torch.distributed as dist
from torch.multiprocessing.reductions import reduce_tensor
from torch.testing._internal.common_distributed import MultiProcContinuousTest
from torch.testing._internal.common_utils import requires_cuda_p2p_access, run_tests


def opened_on(handle, device):
    """Rebuild a tensor from the handle that `reduce_tensor` gave in another process, mapped for a device of ours."""
    rebuild, arguments = handle
    place = list(inspect.signature(rebuild).parameters).index("storage_device")
    return rebuild(*arguments[:place], device, *arguments[place + 1 :])


@requires_cuda_p2p_access()
class P2PIpcTest(MultiProcContinuousTest):
    world_size = 2

    @classmethod
    def backend_str(cls):
        # Gloo, so that nothing but the shared memory carries numbers from GPU to GPU.
        return "gloo"

    @classmethod
    def _init_pg(cls, rank, world_size, rdvz_file):
        torch.cuda.set_device(rank)
        super()._init_pg(rank, world_size, rdvz_file)

    def shared(self):
        """Rank 0's tensor 0..99: its own on rank 0, mapped through the handle on rank 1."""
        own = torch.arange(100.0, device="cuda") if self.rank == 0 else None
        message = [reduce_tensor(own) if self.rank == 0 else None]
        torch.cuda.synchronize()
        dist.broadcast_object_list(message, src=0)
        return own if self.rank == 0 else opened_on(message[0], self.rank)

    def everyone_is_done(self):
        """Wait for this GPU, then for the other rank."""
        torch.cuda.synchronize()
        dist.barrier()

    def test_reads_and_writes(self):
        """Rank 1 sees rank 0's numbers and, without a copy, rank 0 sees what rank 1 writes."""
        tensor = self.shared()
        self.assertEqual(tensor.cpu(), torch.arange(100.0))
        self.everyone_is_done()
        if self.rank == 1:
            tensor.mul_(3)
        self.everyone_is_done()
        self.assertEqual(tensor.cpu(), torch.arange(100.0) * 3)
        if self.rank == 1:
            del tensor
        # The owner must outlive the mapping.
        self.everyone_is_done()


if __name__ == "__main__":
    run_tests()
