"""How programs are spread over nodes, with nodes that are threads of a test; and what travels."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import time
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from clusters import MARK, PROGRAMS, comes_true, marked_processes, pretend_allocation
from executions import told
from rankbook import engines
from rankbook.engines import calling, travel
from rankbook.engines.agent import Agent
from rankbook.engines.cluster import Cluster
from rankbook.engines.travel import Facts
from rankbook.errors import EngineError
from rankbook.leases import Leases
from rankbook.listing import Ended, Program, RankEnd

GONE = {"gone": True}


class Node:
    """A link whose agent is the test."""

    def __init__(self, name, gpus=0, slots=2, **versions):
        self.name = name
        self.facts = replace(Facts.here(str(10 + number) for number in range(gpus)), slots=slots, **versions)
        self.said = []
        self.words = queue.SimpleQueue()
        self.heard = []
        self.closed = False

    def say(self, message):
        self.heard.append(message["do"])
        if message["do"] == "run":
            self.said.append(message)
        if message["do"] == "stop":
            self.words.put({"run": message["number"], "ended": travel.end_as_json(Ended(-9))})

    def messages(self):
        while (message := self.words.get()) is not GONE:
            yield message

    def close(self):
        self.closed = True
        self.words.put(GONE)

    @property
    def runs(self):
        """Programs that it was given, by name, with their GPUs."""
        return {message["program"]["name"]: message["program"]["gpus"] for message in self.said}

    def tell(self, name, **what):
        number = next(message["number"] for message in self.said if message["program"]["name"] == name)
        self.words.put({"run": number, **what})

    def end(self, name, **what):
        self.tell(name, ended=travel.end_as_json(Ended(0, engine="local", **what)))


@pytest.fixture
def make():
    made = []

    def cluster(*nodes):
        made.append(Cluster("test", nodes, (), lambda: None))
        return made[-1]

    yield cluster
    for each in made:
        each.close()


@pytest.fixture
def start(tmp_path):
    def started(cluster, name, gpus=None):
        return cluster.start(Program(name, "m:f", str(tmp_path), "x.py", gpus=None if gpus is None else ("",) * gpus))

    return started


def finish(execution):
    events = list(execution.events())
    return events, execution.ended


def test_spread(make, start):
    """Programs go to the node with the least to do for its size."""
    small, large = Node("small", slots=1), Node("large", slots=3)
    cluster = make(small, large)
    for number in range(4):
        start(cluster, f"p{number}")
    assert (len(small.runs), len(large.runs)) == (1, 3)
    assert (cluster.slots, cluster.nodes) == (4, ("small", "large"))


def test_a_node_is_opened_first(make, start):
    """What its programs find travels to a node before the first of them, however long that takes."""

    class Slow(Node):
        def say(self, message):
            if message["do"] == "open":
                time.sleep(0.3)
            super().say(message)

    node = Slow("n")
    start(make(node), "p")
    assert comes_true(lambda: node.heard == ["open", "run"], 2), node.heard


def test_events_and_end(make, start):
    """Events and the end of a program come to its execution; an error of its node is told with the node's name."""
    node = Node("n")
    cluster = make(node)
    first, second = start(cluster, "a"), start(cluster, "b")
    node.tell("a", event={"type": "x"})
    node.tell("b", error="no process can be started")
    node.end("a", note="inner", left=("sleep 1",), ranks=(RankEnd("rank 0", -9),), death=RankEnd("rank 1", None))
    events, ended = finish(first)
    assert events == [{"type": "x"}]
    assert ended == Ended(0, engine="test", note="inner", left=("sleep 1",), ranks=(RankEnd("rank 0", -9),), death=RankEnd("rank 1", None))
    with pytest.raises(EngineError, match=r"no process can be started \(node n\)"):
        finish(second)


def test_where_it_runs(make, start):
    """The first event names the node too, and why it is that one."""
    nodes = [Node("a"), Node("b")]
    execution = start(make(*nodes), "p")
    began = {"type": "began", "engine": "local", "note": "", "isolation": "port lease"}
    nodes[0].tell("p", event=began)
    nodes[0].words.put(GONE)
    assert comes_true(lambda: "p" in nodes[1].runs)
    nodes[1].tell("p", event={**began, "engine": "fresh", "note": "run by new interpreters: why"})
    nodes[1].end("p")
    first, again, second = finish(execution)[0]
    assert first == {**began, "engine": "test", "node": "a"}
    assert again["type"] == "again"
    assert (second["engine"], second["node"]) == ("fresh", "b")
    assert second["note"] == "it was run again, because node a was lost: its agent has gone; run by new interpreters: why"


def test_gpus_are_not_shared(make, start):
    """A node's GPUs go to one program each; what waits starts when they are free, and the largest need is not starved."""
    node, other = Node("n", gpus=2), Node("o", gpus=1)
    cluster = make(node, other)
    first = start(cluster, "first", 1)
    second = start(cluster, "second", 1)
    assert (node.runs, other.runs) == ({"second": ["10"]}, {"first": ["10"]})
    start(cluster, "small", 1)
    start(cluster, "both", 2)
    start(cluster, "late", 1)
    node.end("second")
    finish(second)
    other.end("first")
    finish(first)
    assert comes_true(lambda: "late" in other.runs)
    assert "both" not in node.runs  # `small` still has one of its GPUs, and no other program gets the free one
    assert set(node.runs) == {"second", "small"}
    node.end("small")
    assert comes_true(lambda: "both" in node.runs)
    assert node.runs["both"] == ["10", "11"]


def test_refusals(make, start):
    """What no node can run is refused at once; a node with other versions is left out, and said; without any node there is no engine."""
    cluster = make(Node("n", gpus=1), Node("old", gpus=8, torch="1.0"))
    with pytest.raises(EngineError, match="p cannot run: it needs 2 GPUs, and no node of the cluster has that many; the largest has 1"):
        start(cluster, "p", 2)
    assert cluster.left_out == (f"node old: it has torch 1.0, and the caller has {Facts.here().torch or '(none)'}",)
    old = Node("old", python="3.9.1")
    with pytest.raises(EngineError, match=r"no node of the cluster can be used: node old: it has python 3\.9\.1, and the caller has 3\."):
        make(old)
    assert old.closed


def test_lost_nodes(make, start):
    """A program is run again when its node is lost, and not a third time."""
    nodes = [Node(name) for name in "abc"]
    cluster = make(*nodes)
    execution = start(cluster, "p")
    for number, node in enumerate(nodes[:2]):
        assert comes_true(lambda node=node: "p" in node.runs)
        node.tell("p", event={"type": "x", "number": number})
        node.words.put(GONE)
        assert comes_true(lambda node=node: node.name not in cluster.nodes)
    events, ended = finish(execution)
    again = {"type": "again", "reason": "node a was lost: its agent has gone"}
    assert events == [{"type": "x", "number": 0}, again, {"type": "x", "number": 1}]
    assert ended.exit_code is None
    assert ended.note == "it was not run a third time: node a was lost: its agent has gone; node b was lost: its agent has gone"
    assert nodes[2].runs == {}
    nodes[2].words.put(GONE)
    assert comes_true(lambda: not cluster.nodes)
    with pytest.raises(EngineError, match="no node of the cluster is left"):
        start(cluster, "q")


def test_stop_before_it_begins(make, start):
    """A program that waits for GPUs can be stopped; it never starts."""
    node = Node("n", gpus=1)
    cluster = make(node)
    start(cluster, "a", 1)
    waiting = start(cluster, "b", 1)
    waiting.stop()
    assert waiting.ended.note == "it was stopped before it began"
    node.end("a")
    assert comes_true(lambda: not cluster._members[0].running)
    assert set(node.runs) == {"a"}


def test_closed(make, start):
    """A closed engine refuses programs, and what ran is over."""
    node = Node("n")
    cluster = make(node)
    execution = start(cluster, "a")
    node.end("a")
    finish(execution)
    cluster.close()
    cluster.close()
    assert node.closed
    with pytest.raises(EngineError, match="the engine 'test' is closed"):
        start(cluster, "b")


@settings(deadline=None, max_examples=60)
@given(
    gpus=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    needs=st.lists(st.integers(0, 4), max_size=12),
    picks=st.lists(st.integers(0, 1000), max_size=40),
)
def test_any_order(tmp_path_factory, gpus, needs, picks):
    """Whatever ends in whatever order and whichever node is lost: no GPU has two programs, and all that can run does, once per node."""
    nodes = [Node(f"n{number}", gpus=count) for number, count in enumerate(gpus)]
    cluster = Cluster("test", nodes, (), lambda: None)
    root = str(tmp_path_factory.mktemp("root"))
    programs = [Program(f"p{number}", "m:f", root, "x.py", gpus=("",) * need) for number, need in enumerate(needs) if need <= max(gpus)]
    try:
        executions = [cluster.start(program) for program in programs]
        for pick in picks:
            check(cluster)
            running = [(member, task) for member in cluster._members for task in member.running.values()]
            if running:
                member, task = running[pick % len(running)]
                cluster._hear(member, {"run": task.number, "ended": travel.end_as_json(Ended(0))})
            if pick % 7 == 0 and len(cluster._members) > 1:
                cluster._lose(cluster._members[pick % len(cluster._members)], "it went")
        while running := [(member, task) for member in cluster._members for task in member.running.values()]:
            check(cluster)
            cluster._hear(running[0][0], {"run": running[0][1].number, "ended": travel.end_as_json(Ended(0))})
        assert not cluster._waiting
        assert all(execution._end is not None for execution in executions)
    finally:
        cluster.close()


def check(cluster):
    for member in cluster._members:
        granted = [gpu for task in member.running.values() for gpu in task.grant]
        assert sorted(granted + member.free) == sorted(member.gpus)
        assert all(len(task.grant) == task.gpus for task in member.running.values())


# What travels


text = st.text(st.characters(codec="utf-8"), max_size=20)
names = st.text(st.sampled_from("abc."), min_size=1, max_size=6).filter(lambda name: name.strip("."))


@settings(deadline=None, max_examples=40)
@given(
    files=st.dictionaries(st.lists(names, min_size=1, max_size=3).map("/".join), st.binary(max_size=50), max_size=5),
    arguments=st.dictionaries(text, text | st.integers() | st.lists(text)),
    gpus=st.none() | st.lists(text).map(tuple),
)
def test_round_trip(tmp_path_factory, files, arguments, gpus):
    """A program arrives as it departed, files and all, but for the place of its tree."""
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    kept = {}
    for name, data in files.items():
        try:
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_bytes(data)
            (here / name).chmod(0o755 if data[:1] > b"\x7f" else 0o644)
            kept[name] = data
        except OSError:  # one name is a folder of another
            continue
    program = Program("n", "m:f", str(here), "x.py", {**arguments, "own": f"{here}/x"}, {"OWN": f"a:{here}"}, gpus=gpus, fresh="why")
    arrived = travel.arrived(travel.departing(program), there)
    assert {path.relative_to(there).as_posix(): path.read_bytes() for path in there.rglob("*") if path.is_file()} == kept
    assert all(bool((there / name).stat().st_mode & 0o100) == (data[:1] > b"\x7f") for name, data in kept.items())
    assert arrived.environment == {**travel.environment(), "OWN": f"a:{there}"}
    assert arrived == replace(program, root=str(there), environment=arrived.environment, arguments={**arguments, "own": f"{there}/x"})


def test_renamed():
    """Only whole names of the folder are replaced, wherever they stand."""
    value = {"/a/1": ["/a/1/x:3", ("/a/12", "in /a/1")], "n": 1}
    assert travel.renamed(value, "/a/1", "/b") == {"/b": ["/b/x:3", ["/a/12", "in /b"]], "n": 1}


def test_environment_that_travels(monkeypatch):
    """What belongs to the machine stays; the rest goes."""
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "LD_LIBRARY_PATH", "TMPDIR", "NCCL_SOCKET_IFNAME", "NCCL_DEBUG", "BACKEND"):
        monkeypatch.setenv(name, "v")
    found = travel.environment()
    assert {"NCCL_DEBUG", "BACKEND"} <= set(found)
    assert not {"CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "LD_LIBRARY_PATH", "TMPDIR", "NCCL_SOCKET_IFNAME", "PATH", "HOME"} & set(found)


def test_gpus_of_another_session(tmp_path, monkeypatch):
    """An agent waits for a GPU that another session on its node has leased, and has it to itself then."""
    monkeypatch.setenv("RANKBOOK_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]))
    (tmp_path / "tree").mkdir()
    words = queue.SimpleQueue()
    agent = Agent(words.put, gpus={"0": "GPU-a"})
    gate = tmp_path / "gate"
    waiting = Program(
        "p", "contract_programs:say_and_wait", str(tmp_path / "tree"), "x.py", {"until": str(gate)}, preload=False, gpus=("0",)
    )
    try:
        agent.hear({"do": "open", "preload": [], "environment": travel.environment()})
        with Leases().take(["GPU-a"], 1):
            agent.hear({"do": "run", "number": 7, **travel.departing(waiting)})
            with pytest.raises(queue.Empty):
                words.get(timeout=1)
        assert [words.get(timeout=60)["event"]["type"] for _ in range(2)] == ["began", "ready"]
        assert Leases().take(["GPU-a"], 1) is None
        gate.touch()
        assert words.get(timeout=60)["event"] == {"type": "seen"}
        assert words.get(timeout=60)["ended"]["exit_code"] == 0
        with Leases().take(["GPU-a"], 1):
            agent.hear({"do": "run", "number": 8, **travel.departing(waiting)})
            agent.hear({"do": "stop", "number": 8})
            said = [words.get(timeout=60)]
            while "ended" not in said[-1]:
                said.append(words.get(timeout=60))
            assert said[-1]["ended"]["exit_code"] == -signal.SIGKILL
            assert [message["event"]["type"] for message in said[:-1]] in ([], ["began"])
    finally:
        agent.close()


# Slurm


@pytest.fixture
def allocation(tmp_path, monkeypatch):
    pretend_allocation(monkeypatch, tmp_path / "bin", 2)
    monkeypatch.setenv("FAKE_SRUN_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def test_step(allocation):
    """One task per node is started, and all of them end with the engine."""
    engine = engines.create("slurm", gpus="2")
    assert (len(engine.nodes), engine.gpus, engine.left_out) == (2, (2, 2), ())
    options = allocation.read_text().split()
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1"} <= set(options)
    engine.close()


def test_outside_an_allocation(allocation, monkeypatch):
    """Outside an allocation, without srun, and when srun refuses, the engine says so in one sentence."""
    monkeypatch.setenv("FAKE_SRUN_REFUSAL", "Invalid job id specified")
    with pytest.raises(EngineError, match="srun ended with status 1 before all agents had called: srun: error: Invalid job id specified"):
        engines.create("slurm")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(EngineError, match="needs srun, which is not on the PATH"):
        engines.create("slurm")
    monkeypatch.delenv("SLURM_JOB_ID")
    with pytest.raises(EngineError, match="works inside an allocation only; start pytest by salloc or sbatch"):
        engines.create("slurm")


def test_agents_do_not_call(allocation, monkeypatch):
    """Agents that cannot reach the caller are waited for no longer than a limit, and what they said is told."""
    monkeypatch.setenv("RANKBOOK_CALLER_HOST", "host.invalid")
    with pytest.raises(EngineError, match=r"srun ended with status \d+ before all agents had called: .*gaierror"):
        engines.create("slurm")


def test_stranger_calls(monkeypatch):
    """Who does not know the secret gets no program, and disturbs nobody."""
    secret = b"known"
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        code = "import sys; from rankbook.engines import calling; calling.call('127.0.0.1', int(sys.argv[1]))"
        command = [sys.executable, "-c", code, str(place[1])]
        for known in ("wrong", "known"):
            environment = {**os.environ, calling.SECRET: known}
            with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as caller:
                channel, _ = server.accept()
                line = calling.Line(channel)
                if known == "wrong":
                    with pytest.raises(Exception, match="digest"):
                        line.prove_as_caller(secret)
                else:
                    line.prove_as_caller(secret)
                line.close()
                complaint = caller.communicate()[1]
                assert (caller.returncode == 0) == (known == "known"), complaint


def test_lost_agent(allocation, tmp_path, monkeypatch):
    """An agent that dies is a lost node, and what it had runs again on the other."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    engine = engines.create("slurm")
    try:
        gate = tmp_path / "gate"
        (tmp_path / "tree").mkdir()
        waiting = Program("p", "contract_programs:say_and_wait", str(tmp_path / "tree"), "x.py", {"until": str(gate)}, preload=False)
        executions = [engine.start(waiting) for _ in range(2)]
        streams = [told(execution) for execution in executions]
        assert [next(stream)["type"] for stream in streams] == ["ready", "ready"]
        agents = [pid for pid, line in marked_processes(mark).items() if "rankbook.engines.agent" in line and "srun" not in line]
        assert len(agents) == 2
        os.kill(agents[0], signal.SIGKILL)
        assert comes_true(lambda: len(engine.nodes) == 1)
        gate.touch()
        types = sorted([event["type"] for event in stream] for stream in streams)
        assert types == [["again", "ready", "seen"], ["seen"]]
        assert sorted(bool(execution.ended.note) for execution in executions) == [False, True]
    finally:
        engine.close()
    assert comes_true(lambda: not marked_processes(mark)), marked_processes(mark)
    assert comes_true(lambda: not list((tmp_path / "tmp").glob("rankbook-*"))), list((tmp_path / "tmp").iterdir())
