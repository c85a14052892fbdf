"""The engine `ray` on a real cluster of several nodes on this machine, and pages proved by it and by `slurm`."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from clusters import PROGRAMS, comes_true, need_ray, pretend_allocation
from executions import told
from proving import prove
from rankbook import engines
from rankbook.errors import EngineError
from rankbook.listing import Program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PAGE = """# A page

```python {name="sum"}
assert 1 + 1 == 2
```

```python {name="wrong"}
total = 1 + 1
assert total == 3
```

```python {name="dead"}
import os
os.kill(os.getpid(), 9)
```

```bash {name="shell"}
pwd && test -n "$GIVEN"
```
"""


@pytest.fixture(scope="module", autouse=True)
def surroundings():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]))
        # On a machine without nvidia-smi Ray believes what it is told of GPUs.
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        yield


@pytest.fixture(scope="module")
def cluster(surroundings):
    """A head that runs nothing and a node with one GPU, as Ray is told."""
    need_ray()
    short = tempfile.TemporaryDirectory(prefix="rb-ray-", dir="/tmp", ignore_cleanup_errors=True)  # Ray's sockets need a short path
    with short as folder, pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("TMPDIR", folder)  # a node that is lost leaves its files
        from ray.cluster_utils import Cluster

        Path(folder, "ray").mkdir()
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        made.first = made.add_node(num_cpus=1, num_gpus=1)
        yield made
        made.shutdown()


def further_nodes(cluster) -> list:
    return [node for node in cluster.worker_nodes if node is not cluster.first]


@pytest.fixture
def two_gpus(cluster):
    """One more node, with two GPUs, which stays for the next test."""
    nodes = further_nodes(cluster)
    return nodes[0] if nodes else cluster.add_node(num_cpus=2, num_gpus=2)


@pytest.fixture
def engine(cluster, two_gpus):
    engine = engines.create("ray", address=cluster.address)
    yield engine
    engine.close()


def program(entry: str, root: Path, gpus=None, **arguments) -> Program:
    return Program(f"page.md::{entry}", f"contract_programs:{entry}", str(root), "x.py", arguments, gpus=gpus, preload=False)


def test_nodes_and_grants(engine, tmp_path):
    """Nodes that may run something are used, the head, which has nothing, is not; what no node has is refused at once.

    Programs that run at the same time are granted GPUs that are theirs alone, on nodes that have them; the next one waits.
    """
    assert len(engine.nodes) == 2
    assert (engine.slots, engine.gpus, engine.left_out) == (3, (2, 1), ())
    with pytest.raises(EngineError) as refused:
        engine.start(program("look_around", tmp_path, gpus=("",) * 4))
    assert str(refused.value) == (
        "page.md::look_around cannot run: it needs 4 GPUs, and no node of the cluster has that many; the largest has 2"
    )
    gates = [tmp_path / f"gate {number}" for number in range(4)]
    (tmp_path / "tree").mkdir()
    both, one = (engine.start(program("say_and_wait", tmp_path / "tree", gpus=("",) * n, until=str(gates[n]))) for n in (2, 1))
    streams = [told(both), told(one)]
    assert [next(stream)["type"] for stream in streams] == ["ready", "ready"]
    later = engine.start(program("look_around", tmp_path / "tree", gpus=("",)))
    hidden = engine.start(program("look_around", tmp_path / "tree", gpus=()))
    (around,) = told(hidden)
    assert around["environment"]["CUDA_VISIBLE_DEVICES"] in ("", "-1")
    with pytest.raises(EngineError, match="has not ended"):
        later.ended  # noqa: B018
    gates[2].touch()
    (around,) = told(later)
    assert around["environment"]["CUDA_VISIBLE_DEVICES"] == "0"
    gates[1].touch()
    assert [[event["type"] for event in stream] for stream in streams] == [["seen"], ["seen"]]
    assert (both.ended.exit_code, one.ended.exit_code) == (0, 0)


def test_gpus_of_others(cluster, two_gpus, tmp_path):
    """A GPU that somebody else holds in Ray is not granted."""
    import ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
        try:
            holder = ray.remote(num_gpus=2, num_cpus=0)(type("Holder", (), {"hold": lambda self: 1}))
            other = holder.remote()
            assert ray.get(other.hold.remote()) == 1
            engine = engines.create("ray")
            assert engine.gpus == (1, 0)
            engine.close()
            assert ray.is_initialized()  # whoever joined before is not thrown out
            ray.kill(other)
            assert comes_true(lambda: ray.available_resources().get("GPU") == 3)  # the next test finds them free
        finally:
            ray.shutdown()


def test_lost_node(cluster, two_gpus, engine, tmp_path):
    """What a lost node had runs again on another, from its beginning, and says so; what no other node can run is given up.

    Processes of a node die one by one: a supervisor that goes before its agent is no end of the program.
    """
    (tmp_path / "tree").mkdir()
    gate = tmp_path / "gate"
    lost = engine.start(program("say_and_wait", tmp_path / "tree", gpus=("", ""), until=str(gate)))
    stream = told(lost)
    supervisor = parent_of(next(stream)["pid"])
    moved = [engine.start(program("say_and_wait", tmp_path / "tree", until=str(gate))) for _ in range(4)]
    streams = [told(execution) for execution in moved]
    pids = [next(each)["pid"] for each in streams]
    os.kill(supervisor, signal.SIGKILL)
    time.sleep(0.2)
    cluster.remove_node(two_gpus, allow_graceful=False)
    with pytest.raises(EngineError, match=r"it needs 2 GPUs, and no node .* the largest has 1; node .* was lost"):
        next(stream)
    assert len(engine.nodes) == 1
    gate.touch()
    ends = [[event["type"] for event in each] for each in streams]
    again = [number for number, types in enumerate(ends) if types == ["again", "ready", "seen"]]
    assert again
    assert all(types == ["seen"] for number, types in enumerate(ends) if number not in again)
    for number, execution in enumerate(moved):
        assert execution.ended.exit_code == 0
        assert ("it was run again, because node " in execution.ended.note) == (number in again)
    assert comes_true(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_last_node(cluster, tmp_path):
    """When the last node is lost, what runs and what comes is refused."""
    for node in further_nodes(cluster):
        cluster.remove_node(node)
    engine = engines.create("ray", address=cluster.address)
    try:
        execution = engine.start(program("hang", tmp_path))
        stream = told(execution)
        child = next(stream)["pid"]
        os.kill(actor_of(child), signal.SIGKILL)
        with pytest.raises(EngineError, match=r"no node of the cluster is left: node .* was lost"):
            next(stream)
        with pytest.raises(EngineError, match="no node of the cluster is left"):
            engine.start(program("hang", tmp_path))
        assert comes_true(lambda: not Path(f"/proc/{child}").exists())
    finally:
        engine.close()


def actor_of(pid: int) -> int:
    """Find the worker of Ray whose process began this one."""
    while "ray::" not in Path(f"/proc/{pid}/cmdline").read_text():
        pid = parent_of(pid)
    return pid


def parent_of(pid: int) -> int:
    """Find the process that began this one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_no_cluster():
    """An address where no cluster is gives one sentence, at once."""
    need_ray()
    with pytest.raises(EngineError, match="give the address of its head as HOST:PORT"):
        engines.create("ray", address="ray://head:10001")
    with pytest.raises(EngineError, match=r"the Ray cluster 127\.0\.0\.1:1 cannot be joined: "):
        engines.create("ray", address="127.0.0.1:1")


@pytest.mark.parametrize("name", engines.CLUSTERS)
def test_page(name, tmp_path, monkeypatch):
    """A page is proved by an engine of several nodes as by any other, with lines of the page."""
    if name == "ray":
        need_ray()
    pretend_allocation(monkeypatch, tmp_path / "bin", 2)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    done = prove(tmp_path / "docs", f"--engine={name}", "page.md", env={"GIVEN": "yes"})
    assert done.outcomes() == {
        "page.md::sum": "passed",
        "page.md::wrong": "failed",
        "page.md::dead": "failed",
        "page.md::shell": "passed",
    }, done.output
    assert done.ends()["page.md::wrong"]["line"] == 9
    assert "SIGKILL" in done.ends()["page.md::dead"]["text"]
