# Owner(s): ["rankbook: harness"]
"""The launcher behind `torchrun` (`elastic_launch`): it sets the ranks' environment and collects what they return."""

import os
import uuid

import pytest
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")


def launch(folder, function, ranks, *arguments):
    """Run a function on some ranks of this machine; the port of their meeting is free, because the system picks it."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        monitor_interval=0.1,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder)),
    )
    return elastic_launch(config, function)(*arguments)


def environment_and_sum(factor):
    """What this rank reads from its environment, and the sum that it finds with the others."""
    dist.init_process_group("gloo")
    tensor = torch.tensor([factor * (dist.get_rank() + 1)])
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    return {name: os.environ[name] for name in VARIABLES}, tensor.item()


def fail_on_rank_one():
    """Rank 1 leaves with an error of its own."""
    if os.environ["RANK"] == "1":
        raise SystemExit(7)


def test_ranks_meet_through_their_environment(tmp_path):
    """Ranks need no argument to find each other, and each result comes back under its rank."""
    results = launch(tmp_path, environment_and_sum, 2, 10)
    assert sorted(results) == [0, 1]
    for rank, (environment, total) in results.items():
        assert environment == {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        assert total == 30


def test_failed_rank_is_named(tmp_path):
    """A rank that ends with an error makes the launch fail, with its rank and its exit status."""
    with pytest.raises(ChildFailedError) as failure:
        launch(tmp_path, fail_on_rank_one, 2)
    rank, cause = failure.value.get_first_failure()
    assert (rank, cause.exitcode) == (1, 7)


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))
