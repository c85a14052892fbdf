# Owner(s): ["rankbook: harness"]
"""Plain pytest functions that start their ranks themselves (`torch.multiprocessing.spawn`), with marks and parameters."""

import tempfile

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def reduce_own_rank(rank, world_size, backend, rendezvous, op, results):
    """Reduce [rank + 1, -rank] over all ranks and note the result in this rank's row."""
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    torch.get_device_module(device).set_device(device)
    dist.init_process_group(backend, init_method=rendezvous, rank=rank, world_size=world_size)
    tensor = torch.tensor([rank + 1, -rank], device=device)
    dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
    results[rank] = tensor.cpu()
    dist.destroy_process_group()


def results_of_ranks(world_size, backend, rendezvous, op="SUM"):
    """Start the ranks, wait for them, and return a row of results for each; a rank that fails raises here."""
    results = torch.full((world_size, 2), -1)
    mp.spawn(reduce_own_rank, args=(world_size, backend, rendezvous, op, results), nprocs=world_size)
    return results.tolist()


@pytest.mark.parametrize(("op", "expected"), [("SUM", [3, -1]), ("MIN", [1, -1])])
def test_gloo(op, expected, rendezvous):
    """Two ranks on the CPU agree on the reduction of their numbers."""
    assert results_of_ranks(2, "gloo", rendezvous, op) == [expected] * 2


@pytest.mark.slow
def test_gloo_with_more_ranks_than_cores_of_a_small_machine(rendezvous):
    """Four ranks work on any machine: gloo's ranks wait for each other without holding a core."""
    assert results_of_ranks(4, "gloo", rendezvous) == [[10, -6]] * 4


@pytest.mark.gpu(2)
@pytest.mark.parametrize(("op", "expected"), [("SUM", [3, -1]), ("MAX", [2, 0])])
def test_nccl(op, expected, rendezvous):
    """Two ranks with a GPU each agree on the reduction of their numbers."""
    assert results_of_ranks(2, "nccl", rendezvous, op) == [expected] * 2


def fail_on_rank_one(rank):
    """Rank 1 finds an error."""
    if rank == 1:
        raise ValueError(f"rank {rank} has a reason")


def test_failure_of_one_rank_is_raised(tmp_path, monkeypatch):
    """An exception in one rank comes back to the process that spawned it, with its rank and its message."""
    # The failing rank leaves its traceback in a file that torch does not remove.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(mp.ProcessRaisedException, match="rank 1 has a reason") as failure:
        mp.spawn(fail_on_rank_one, nprocs=2)
    assert failure.value.error_index == 1


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))
