# Owner(s): ["rankbook: multiprocessing"]
"""CPU memory shared between processes: `reduce_tensor` turns a tensor into a handle, not into a copy."""

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.multiprocessing.reductions import reduce_tensor


def add_own_rank(rank, world_size, rendezvous, tensor):
    """Write into this rank's column, and read the other columns once all ranks have written."""
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world_size)
    tensor[:, rank] += rank + 1
    dist.barrier()
    assert tensor.sum(0).tolist() == [3.0 * (column + 1) for column in range(world_size)]
    dist.destroy_process_group()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_ranks_write_into_one_tensor(dtype, rendezvous):
    """A tensor passed to spawned ranks is the same memory in all of them, and in the process that spawned them."""
    world_size = 2
    tensor = torch.zeros(3, world_size, dtype=dtype)
    mp.spawn(add_own_rank, args=(world_size, rendezvous, tensor), nprocs=world_size)
    assert tensor.tolist() == [[1.0, 2.0]] * 3


def test_handle_opens_the_same_memory():
    """A tensor rebuilt from its handle follows the tensor from which the handle was taken."""
    tensor = torch.zeros(4)
    rebuild, arguments = reduce_tensor(tensor)
    again = rebuild(*arguments)
    tensor[1] = 7
    assert again.tolist() == [0.0, 7.0, 0.0, 0.0]


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))
