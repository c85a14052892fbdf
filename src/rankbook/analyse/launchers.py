"""How many ranks a test starts itself: by `mp.spawn`, by a process for each, or by a function of its suite that does so.

Such a function is handed what the ranks are to run: `launch(body, world_size=2)`, `launch(2)(body)()`, `@launch(2)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rankbook.analyse.helpers import called
from rankbook.analyse.rules import Evidence, made
from rankbook.analyse.values import Values
from rankbook.model import Expression, Function
from rankbook.requirements import Requirement

PER_GPU = re.compile(r"{0}|min\([\w.]+, *{0}\)|min\({0}, *[\w.]+\)".format(r"[\w.]*\bdevice_count\(\)"))
"""World sizes that are 0 without a GPU, so that no rank is started: `min(2, torch.cuda.device_count())`."""
_COUNTS = ("nprocs", "nproc_per_node")
"""Names of the argument that says how many processes a call starts."""
_SPAWNS = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"})
_DEPTH = 3
"""Functions that are followed from one to the next."""
_MOST_NAMES = 4
"""Parameters that are followed from one to the next."""


def may_start(function: Function) -> bool:
    """Tell whether a test may start ranks."""
    return bool(function.spawns or function.hands or function.decorators)


def of_starts(function: Function, values: Values) -> Iterator[Requirement]:
    """Give the world size of a test, and that it needs a GPU where it starts no rank without one.

    Args:
        function: the test.
        values: reads the arguments of its calls.
    """
    found = [(spawn, _started(spawn, values)) for spawn in function.spawns]
    found += [(call, size) for call in (*function.hands, *function.decorators) for size in _through(call, values, _DEPTH)]
    sizes = [(call, size) for call, size in found if size]
    if not sizes:
        return
    first = sizes[0][0]
    said = Evidence(first.text, values.path, first.line)
    yield made("world size", ", ".join(dict.fromkeys(size for _, size in sizes)), said, "")
    if len(sizes) == len(found) and all(PER_GPU.fullmatch(size) for _, size in sizes):
        yield made("gpus", "1", said)


def _through(call: Expression, values: Values, depth: int) -> Iterator[str]:
    """Yield the numbers of processes that a function starts for what it is handed; empty for one that is not known before the run."""
    found = called(call, values) if call.name else None
    if found is None:
        return
    launcher, inner = found
    for spawn in launcher.spawns:
        yield _started(spawn, inner)
    for each in launcher.hands if depth > 1 else ():
        yield from _through(each, inner, depth - 1)


def _started(spawn: Expression, values: Values) -> str:
    """Give the number of processes that a call starts, or each of a loop around it; empty when it is not known before the run."""
    named = dict(spawn.keywords)
    place = _place_of_count(spawn, values)
    text = next((named[name] for name in _COUNTS if name in named), spawn.arguments[place] if place < len(spawn.arguments) else "")
    size = values.of(text) if text else None
    sizes = size if isinstance(size, tuple) else (size,)
    if sizes and all(isinstance(each, int) and not isinstance(each, bool) for each in sizes):
        return ", ".join(map(str, sizes))
    for _ in range(_MOST_NAMES):
        text, values = values.bound.get(text, (text, values))
    return text if PER_GPU.fullmatch(text) else ""


def _place_of_count(spawn: Expression, values: Values) -> int:
    """Tell which argument says how many processes a call starts; one beyond all for a function of which that is not known."""
    if values.names.full(values.path, spawn.name) in _SPAWNS:
        return 2
    place = values.names.find(values.path, spawn.name)
    parameters = place.definition.parameters if place is not None and isinstance(place.definition, Function) else ()
    return next((parameters.index(name) for name in _COUNTS if name in parameters), len(spawn.arguments))
