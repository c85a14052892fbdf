"""The engine `ray`: one actor per node of a Ray cluster carries the messages of that node's agent.

A call of an actor costs well under a millisecond, a Ray task of its own a third of a second; so Ray never sees a listing.
Private in Ray, and used here only: `ray._private.state.available_resources_per_node`, for Ray has no public way to ask which node has
GPUs that nobody holds, and `_temp_dir` of `ray.init`, for a socket below a long TMPDIR cannot be opened.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import queue
import secrets
import shutil
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rankbook.engines.agent import BEAT, Agent
from rankbook.engines.cluster import SILENCE, Cluster
from rankbook.engines.job import own_environment
from rankbook.engines.travel import Facts
from rankbook.engines.wire import Message
from rankbook.errors import EngineError
from rankbook.gpus import inventory

RIGHT = "give the address of its head as HOST:PORT; `ray start` tells it"
START_LIMIT = 120.0
"""Seconds that an actor has to start."""
CONNECT_LIMIT = 10.0
"""Seconds that the head of a cluster has to answer."""
CLOSE_LIMIT = 6.0
"""Seconds that it has to end its programs."""
MOST_AT_ONCE = 500
"""Messages that travel together."""
STORE = 100 << 20
"""Bytes of the object store of a cluster on this machine: messages are small."""
ALIEN = ("OMP_NUM_THREADS", "PYTHONUNBUFFERED", "PYTHONBREAKPOINT", "RAY_*")
"""Variables that Ray sets in its workers."""
WHILE_STARTING = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Set while Ray starts, unless the caller has them: no report to its makers, and no warning about actors without GPUs."""
TOKEN = "RAY_AUTH_TOKEN"  # noqa: S105  the name of the variable
"""Variable with the token of a cluster on this machine; Ray would otherwise write one into the home folder and leave it there."""


class NodeActor:
    """What Ray runs on a node: its agent, whose words wait until somebody asks for them."""

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[Message] = queue.SimpleQueue()
        import ray

        held = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
        self._facts = Facts.here(held)
        if not held:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # what Ray has not granted belongs to others
        self._agent = Agent(self._said.put, ALIEN)

    def facts(self) -> Message:
        """Tell what is known of the node."""
        return self._facts.as_json()

    def tell(self, message: Message) -> None:
        """Take a message for the agent."""
        self._agent.hear(message)

    def hear(self) -> list[Message]:
        """Wait a while for what the agent says, and give all that is there."""
        messages = []
        with contextlib.suppress(queue.Empty):
            messages.append(self._said.get(timeout=BEAT))
            while len(messages) < MOST_AT_ONCE:
                messages.append(self._said.get_nowait())
        return messages

    def close(self) -> None:
        """End all programs."""
        self._agent.close()


class ActorLink:
    """The caller's side of an actor.

    Args:
        ray: the package.
        name: of the node.
        actor: a handle of its `NodeActor`.
        slots: programs that the node runs well at the same time.
    """

    def __init__(self, ray: Any, name: str, actor: Any, slots: int) -> None:
        self.name = name
        self._ray = ray
        self._actor = actor
        try:
            facts = Facts.of(ray.get(actor.facts.remote(), timeout=START_LIMIT))
        except ray.exceptions.GetTimeoutError as error:
            raise OSError(f"its actor has not started within {START_LIMIT:g} s") from error
        except ray.exceptions.RayError as error:
            raise OSError(_last_line(error)) from error
        self.facts = Facts(facts.host, facts.python, facts.torch, facts.rankbook, slots, facts.gpus)

    def say(self, message: Message) -> None:
        """Send a message, without waiting for what comes of it.

        Raises:
            OSError: the node has gone.
        """
        try:
            self._actor.tell.options(concurrency_group="tell").remote(message)
        except self._ray.exceptions.RayError as error:
            raise OSError(_last_line(error)) from error

    def messages(self) -> Iterator[Message]:
        """Yield what the agent says.

        Raises:
            OSError: the node has gone.
        """
        while True:
            try:
                yield from self._ray.get(self._actor.hear.options(concurrency_group="hear").remote(), timeout=SILENCE)
            except self._ray.exceptions.GetTimeoutError as error:
                raise OSError(f"nothing was heard of it for {SILENCE:g} s") from error
            except self._ray.exceptions.RayError as error:
                raise OSError(_last_line(error)) from error

    def close(self) -> None:
        """End the agent and all that it runs."""
        with contextlib.suppress(Exception):  # a node that is lost answers in many ways
            self._ray.get(self._actor.close.options(concurrency_group="tell").remote(), timeout=CLOSE_LIMIT)
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)


def create(preload: Sequence[str] = (), gpus: str = "", address: str = "") -> Cluster:
    """Make the engine.

    Args:
        preload: modules that its programs import, besides torch and its harnesses.
        gpus: GPUs that a cluster on this machine is said to have; empty for those that it has.
        address: of a Ray cluster, as `ray.init` takes it; empty for one that lives on this machine as long as the engine.

    Raises:
        EngineError: Ray is not installed, there is no cluster, or none of its nodes can be used.
    """
    ray = _package()
    leave = _join(ray, address, gpus)
    try:
        links = _links(ray)
    except BaseException:
        leave()
        raise
    return Cluster("ray", links, preload, leave)


def _package() -> Any:
    with _quiet():
        try:
            return importlib.import_module("ray")
        except ImportError as error:
            raise EngineError("the engine 'ray' needs Ray, which is not installed", right="pip install 'rankbook[ray]'") from error


@contextlib.contextmanager
def _quiet(**variables: str) -> Iterator[None]:
    """Let Ray start without warnings, and without a trace in the environment."""
    before = own_environment()
    os.environ.update({name: value for name, value in {**WHILE_STARTING, **variables}.items() if name not in before})
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        for name in [name for name in own_environment() if name.startswith("RAY_") and name not in before]:
            del os.environ[name]


def _join(ray: Any, address: str, gpus: str) -> Callable[[], None]:
    """Connect to a cluster; gives what undoes that."""
    if ray.is_initialized():
        return lambda: None
    if address:
        _check(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    folder = "" if address else _short_folder()
    own = {
        "address": "local",
        "num_cpus": Facts.here().slots,
        "num_gpus": _count(gpus) if gpus else None,
        "include_dashboard": False,
        "object_store_memory": STORE,
        "_temp_dir": folder,
    }

    def leave() -> None:
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
            _forget_token()

    try:
        with _quiet(**({} if address else {TOKEN: _token()})):
            ray.init(**({"address": address} if address else own), **quiet)
    except Exception as error:
        leave()
        where = f"the Ray cluster {address} cannot be joined" if address else "no Ray cluster can be started"
        raise EngineError(f"{where}: {_last_line(error)}") from error
    return leave


def _forget_token() -> None:
    """Have Ray read its token anew: a cluster that this process joins later does not know that of the cluster which has ended.

    There is no public door; Ray's own tests do it so (`ray/_private/authentication_test_utils.py` of Ray 2.60).
    """
    with contextlib.suppress(ImportError, AttributeError):
        raylet = importlib.import_module("ray._raylet")
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


def _check(address: str) -> None:
    """Refuse an address at which nobody answers; Ray itself would try for minutes."""
    if "://" in address:
        raise EngineError(f"the Ray cluster {address} cannot be joined", right=RIGHT)
    host, colon, port = address.rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_LIMIT).close()
    except (OSError, ValueError) as error:
        raise EngineError(f"the Ray cluster {address} cannot be joined: {error}", right=RIGHT) from error


@functools.cache
def _token() -> str:
    """Give the token of this process: Ray reads it once, for all clusters that a process has."""
    return secrets.token_hex(32)


def _count(gpus: str) -> int:
    return len(inventory(gpus).gpus)


def _short_folder() -> str:
    parent = "/tmp" if os.access("/tmp", os.W_OK) else None  # noqa: S108  the folder itself is private, and its path must be short
    return tempfile.mkdtemp(prefix="rb-ray-", dir=parent)


def _links(ray: Any) -> list[ActorLink]:
    """Start an actor on each node that may run something; it holds the GPUs that nobody holds now."""
    available = importlib.import_module("ray._private.state").available_resources_per_node()
    with _quiet():
        waiting = [
            (node, _actor(ray, node["NodeID"], available.get(node["NodeID"], {})))
            for node in ray.nodes()
            if node["Alive"] and _runs_something(node["Resources"])
        ]
    links, problems = [], []
    for node, actor in waiting:
        try:
            links.append(
                ActorLink(ray, f"{node['NodeManagerHostname']} ({node['NodeID'][:6]})", actor, max(1, int(node["Resources"].get("CPU", 1))))
            )
        except OSError as error:
            problems.append(f"node {node['NodeManagerHostname']}: {error}")
            ray.kill(actor)
    if not links:
        raise EngineError(f"no node of the Ray cluster can be used: {'; '.join(problems) or 'none has a CPU or a GPU'}")
    return links


def _runs_something(resources: Mapping[str, float]) -> bool:
    return bool(resources.get("CPU") or resources.get("GPU"))


def _actor(ray: Any, node: str, available: Mapping[str, float]) -> Any:
    affinity = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(node, soft=False)
    options = {
        "num_cpus": 0,
        "num_gpus": int(available.get("GPU", 0)),
        "max_restarts": 0,
        "scheduling_strategy": affinity,
        "concurrency_groups": {"tell": 1, "hear": 1},
    }
    return ray.remote(**options)(NodeActor).remote()


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
