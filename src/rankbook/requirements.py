"""What a test needs: tables from decorators, base classes, calls, flags and marks to requirements, shared by both wings.

To teach rankbook a name, add a row to `NAMES` of `rankbook.words`; to teach it a test base class, add one to `HARNESSES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct


class Requirement(Struct, frozen=True, order=True):
    """One thing that a test needs, with the line that says so."""

    kind: str
    """A word of `KINDS`."""
    value: str
    """`2`, `nccl`, `>= 8.0`, `nccl or gloo`; for `condition` the condition verbatim."""
    evidence: str
    """The decorator, base class, call or mark as written."""
    path: str = ""
    """Source in which it stands."""
    line: int = 0
    otherwise: str = "skipped"
    """What becomes of the test where this is not met: a word of `OUTCOMES`."""
    either: tuple[tuple[Requirement, ...], ...] = ()
    """Of kind `one of`: the alternatives, each with all that it needs."""

    @property
    def text(self) -> str:
        """The requirement as a reader says it: `2 GPUs`, `backend nccl`."""
        if self.kind == "gpus":
            return _gpus_text(self.value)
        if self.kind in ("condition", "one of"):
            return self.value
        if self.kind == "disabled":
            return f"disabled: {self.value}" if self.value else "disabled"
        if self.kind == "slow" and self.value:
            return f"slow, runs with {self.value.replace(' == ', '=')}"
        return f"{self.kind} {self.value}".strip()


KINDS = (
    "gpus",
    "world size",
    "backend",
    "device",
    "peer access",
    "capability",
    "memory",
    "library",
    "package",
    "platform",
    "environment",
    "slow",
    "disabled",
    "mark",
    "one of",
    "condition",
)
"""Kinds of requirement, in the order in which a page shows them."""

FAILS = "fails"
OUTCOMES = ("skipped", "absent", FAILS, "")
"""What may become of a test whose requirement is not met: skipped, not collected, red; nothing, where it runs all the same."""
LOST = ("skipped", FAILS)
"""Of these, those of a test that is collected and does not run."""


def gpu_range(value: str) -> tuple[int, int | None] | None:
    """Read a number of GPUs: `2` is two or more, `== 1`, `<= 1` and `2 to 4` are what they say.

    Args:
        value: the value of a requirement of kind `gpus`.

    Returns:
        The fewest and the most, None for no limit; None when the number is not known before the run.
    """
    match = _GPUS.fullmatch(value)
    if match is None:
        return None
    low, operator, number, first, last = match.groups()
    if first:
        return int(first), int(last)
    if low:
        return int(low), None
    count = int(number)
    return {"==": (count, count), "<=": (0, count), ">=": (count, None)}[operator]


_GPUS = re.compile(r"(\d{1,6})|(==|<=|>=) (\d{1,6})|(\d{1,6}) to (\d{1,6})")


def gpus_of(need: Requirement) -> tuple[int, int | None] | None:
    """Give the fewest and the most GPUs with which a need can be met, None for no limit.

    A number that is not known before the run is at least one, and so is that of the GPUs for what only they have: a device, NCCL, a
    capability. Peer access is between two.

    Args:
        need: of any kind but `one of`.

    Returns:
        None when it says nothing of GPUs.
    """
    if need.kind == "gpus":
        return gpu_range(need.value.removesuffix(" or none")) or (1, None)
    if not is_on(need, _ON_GPUS):
        return None
    return (2 if need.kind == "peer access" else 1), None


def is_on(need: Requirement, table: Mapping[str, re.Pattern[str]]) -> bool:
    """Tell whether only what a table has meets a need: each of the choices that it leaves.

    Args:
        need: of any kind.
        table: patterns of values, by kind.
    """
    pattern = table.get(need.kind)
    return pattern is not None and all(pattern.fullmatch(choice.strip()) for choice in need.value.split(" or "))


_ON_GPUS = {
    "device": re.compile(r"(?:cuda|gpu|hip|big gpu)\b.*", re.IGNORECASE),
    "backend": re.compile(r".*\bcuda:.*|nccl|rccl|nvshmem", re.IGNORECASE),
    "peer access": re.compile(r".*"),
    "capability": re.compile(r"(?:>=?|==?)?\s*\d.*"),
}
"""By kind: values that only a machine with a GPU can meet."""


def gpus_of_device(text: str) -> int:
    """Count the GPUs that must be there for a device: 2 for `cuda:1`, 1 for `cuda`; 0 for one that is no GPU."""
    numbered = _NUMBERED.fullmatch(text)
    return int(numbered[1]) + 1 if numbered else int(text.startswith("cuda"))


_NUMBERED = re.compile(r"cuda:(\d{1,6})")


def of_text(text: str) -> Requirement:
    """Read a requirement from what `Requirement.text` says of it; what cannot be read is a condition.

    Args:
        text: `2 GPUs`, `backend nccl`, `1 GPU or package torch_xla`.
    """
    alternatives = [[_of_part(part) for part in choice.split(" and ")] for choice in text.split(" or ")]
    if len(alternatives) > 1 and all(need.kind != "condition" for needs in alternatives for need in needs):
        return Requirement("one of", text, "", either=tuple(map(tuple, alternatives)))
    return _of_part(text)


def _of_part(text: str) -> Requirement:
    for form, value in _GPUS_FORMS:
        if match := form.fullmatch(text):
            return Requirement("gpus", value.format(*match.groups()), "")
    for form, kind in _NAMED_FORMS:
        if match := form.fullmatch(text):
            value = match[1] or ""
            return Requirement(kind, value.replace("=", " == ", 1) if kind == "slow" else value, "")
    return Requirement("condition", text, "")


_NAMED_FORMS = (
    (re.compile(r"slow(?:, runs with (.+))?", re.DOTALL), "slow"),
    (re.compile(r"disabled(?:: (.+))?", re.DOTALL), "disabled"),
    *(
        (re.compile(rf"{kind}(?: (.+))?", re.DOTALL), kind)
        for kind in KINDS
        if kind not in ("gpus", "slow", "disabled", "condition", "one of")
    ),
)
"""How other needs are said, with the kind that they are of."""
_GPUS_FORMS = tuple(
    (re.compile(form), value)
    for form, value in (
        (r"no GPU(?: at all)?", "<= 0"),
        (r"(\d{1,6}) GPUs?", "{0}"),
        (r"exactly (\d{1,6}) GPUs?", "== {0}"),
        (r"at most (\d{1,6}) GPUs?", "<= {0}"),
        (r"(\d{1,6}) to (\d{1,6}) GPUs", "{0} to {1}"),
        (r"(\d{1,6}) GPUs? or none", "{0} or none"),
        (r"(\w+) GPUs", "{0}"),
    )
)
"""How a number of GPUs is said, and the value that says so."""


def _gpus_text(value: str) -> str:
    if value.endswith(" or none"):
        return f"{_gpus_text(value.removesuffix(' or none'))} or none"
    found = gpu_range(value)
    if found is None:
        return f"{value} GPUs"
    low, high = found
    if high == 0:
        return "no GPU at all"
    if high is None:
        return _counted(low)
    if low == high:
        return f"exactly {_counted(low)}"
    return f"at most {_counted(high)}" if low == 0 else f"{low} to {_counted(high)}"


def _counted(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"


class Harness(Struct, frozen=True):
    """A base class, or a runner, that starts the ranks of a test."""

    name: str
    """Name of the class; `pytest` for plain functions and classes."""
    runs: str
    """How it runs ranks, as a clause."""
    world_size: str = ""
    """World size when the test names none; empty when the harness has none."""
    gpus: str = ""
    """When it skips for want of one GPU per rank: `always`, `with nccl`; empty when it does not."""
    needs_backend: bool = False
    """Whether it skips when the backend that its class names is not available."""
    home: str = ""
    """Part of the path of the file that defines it: others use the name, too. Empty for one that says nothing but how a test is called."""
    fixture: str = ""
    """Base class, in that file, of fixtures that start ranks of their own and skip for want of as many GPUs."""

    def is_defined_in(self, path: str) -> bool:
        """Tell whether a class of its name is this one, and not another of the same name.

        Args:
            path: of the file that defines the class; empty where no known file does.
        """
        return not path or f"/{self.home}" in f"/{path}"


_TORCH = "testing/_internal/"
"""In PyTorch's sources, in an installed torch, and where the tree is the package itself."""
_EACH_TEST = "starts one process per rank for each test"
_EACH_CLASS = "starts one process per rank for each class and sends it test after test"
_THREADS = "runs each rank as a thread of one process"
DEVICES = "number of devices"
"""World size of a harness that starts one rank per device."""
_PLAIN = "runs in one process; ranks only where the test starts them"
_SIMULATED = "simulates all ranks in one process"

HARNESSES: dict[str, Harness] = {
    harness.name: harness
    for harness in (
        Harness("MultiProcessTestCase", _EACH_TEST, "4", home=_TORCH),
        Harness("DistributedTestBase", f"{_EACH_TEST}, with a backend chosen by device", "4", home=_TORCH),
        Harness("MultiProcContinuousTest", _EACH_CLASS, DEVICES, needs_backend=True, home=_TORCH),
        Harness("MultiProcContinousTest", _EACH_CLASS, DEVICES, needs_backend=True, home=_TORCH),
        Harness("C10dTorchCommsTestBase", _EACH_CLASS, "4", home=_TORCH),
        Harness("MultiThreadedTestCase", _THREADS, "4", home=_TORCH),
        Harness("DTensorTestBase", f"{_EACH_TEST} and joins them in `with_comms`", "4", gpus="with nccl", home=_TORCH),
        Harness("DTensorContinuousTestBase", _EACH_CLASS, "4", gpus="with nccl", home=_TORCH),
        Harness("DTensorOpTestBase", _THREADS, "4", home=_TORCH),
        Harness("LocalDTensorTestBase", _SIMULATED, "4", home=_TORCH),
        Harness("LocalDTensorOpTestBase", _SIMULATED, "4", home=_TORCH),
        Harness("LocalDTensorContinuousTestBase", _SIMULATED, "4", home=_TORCH),
        Harness("FSDPTest", f"{_EACH_TEST}, one per device", DEVICES, gpus="always", home=_TORCH),
        Harness("FSDPTestContinuous", f"{_EACH_CLASS}, one per device", DEVICES, gpus="always", home=_TORCH),
        Harness("FSDPTestMultiThread", f"{_THREADS}, one per device", DEVICES, home=_TORCH),
        Harness("ShardedTensorTestBase", f"{_EACH_TEST} and joins them with RPC in `with_comms`", "4", gpus="with nccl", home=_TORCH),
        Harness("SpawnHelper", f"{_EACH_TEST}, each with an RPC agent", "4", home=_TORCH),
        Harness("RpcAgentTestFixture", "joins the ranks with RPC in `dist_init`", "4", home=_TORCH),
        Harness("TestDistBackend", f"{_EACH_TEST}, by the variables BACKEND and WORLD_SIZE", "WORLD_SIZE", home=_TORCH),
        Harness("DynamoDistributedSingleProcTestCase", "runs in one process, which is a group of one rank", "1", home=_TORCH),
        Harness("DynamoDistributedMultiProcTestCase", f"{_EACH_TEST}, one per device", DEVICES, home=_TORCH),
        Harness(
            "DistributedTest",
            f"{_EACH_TEST}, and again for each world size",
            "2",
            gpus="always",
            home="unit/common.py",
            fixture="DistributedFixture",
        ),
        Harness("IsolatedAsyncioTestCase", _PLAIN),
        Harness("TestCase", _PLAIN),
        Harness("pytest", "calls it in one process; ranks only where the test starts them"),
    )
}
"""What runs ranks, by the last part of a base class's name; the nearest base class that has a row counts."""

Needs = tuple[tuple[str, str], ...]
"""Kinds and values; in a value `{0|n=2}` is the first argument, or the keyword `n`, or else 2."""


class Rule(Struct, frozen=True):
    """What a name says when it decorates or marks a test, or stands in a condition."""

    needs: Needs = ()
    """What the test needs when it is so decorated, or when the condition must be true."""
    unless: Needs = ()
    """What the test needs when the condition must be false; where it is empty, the opposite of `needs`."""
    when: tuple[str, str] | None = None
    """A value with its place as in `needs`, and what it must be for the rule to ask anything."""
    keywords: tuple[tuple[str, Needs], ...] = ()
    """What keywords ask for in place of `needs` when they are given and not false; `{}` is the keyword's value."""
    condition: bool | None = None
    """Of a decorator whose first argument is a condition: whether the test needs it to be true."""
    devices: tuple[str, ...] = ()
    """Devices whose generated tests the rule speaks of; empty for all tests."""
    otherwise: str = "skipped"
    """What becomes of the test where it is not met, as in `Requirement`."""


def opposite(kind: str, value: str) -> str | None:
    """Give the value that says that a requirement must not be met: `>= 9.0` → `< 9.0`, `Linux` → `not Linux`.

    Args:
        kind: the kind of both.
        value: the value to turn around.

    Returns:
        None when no value says so.
    """
    if kind == "gpus":
        return _other_gpus(value)
    if " or " in value or not value or "," in value:  # `>= 2.9,<2.10` is not met below or above
        return None
    match = _COMPARISON.fullmatch(value)
    if match and kind != "package":  # one that is not there meets neither
        return f"{match[1]}{NEGATED[match[2]]} {match[3]}"
    for ending, other in ((" not set", " set"), (" set", " not set")):
        if value.endswith(ending):
            return value.removesuffix(ending) + other
    if kind in ("world size", "slow", "disabled", "condition", "one of", "mark", "peer access", "memory"):
        return None
    return value.removeprefix("not ") if value.startswith("not ") else f"not {value}"


def _other_gpus(value: str) -> str | None:
    found = gpu_range(value)
    if found is None:
        return None
    low, high = found
    if high is None:
        return f"<= {low - 1}" if low > 0 else None
    return str(high + 1) if low == 0 else None


NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
"""Each comparison, and what it is when it must not hold."""
_COMPARISON = re.compile(r"(.*?)(<=|>=|==|!=|<|>) (.+)")


def joined(alternatives: Iterable[str]) -> str:
    """Write alternatives as one value: `nccl or gloo`."""
    return " or ".join(dict.fromkeys(alternatives))
