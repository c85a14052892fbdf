"""Where programs run: each engine is a module of this package, found by name and imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any, cast

from rankbook.errors import EngineError
from rankbook.listing import Engine

NAMES = ("local", "fresh")
"""Engines of this machine, the default first; each module has a function `create`."""
CLUSTERS = ("ray", "slurm")
"""Engines of several machines."""
TAKES = {
    "local": ("preload", "scratch"),
    "fresh": ("preload", "scratch"),
    "ray": ("preload", "gpus", "address"),
    "slurm": ("preload", "gpus"),
}
"""What the `create` of each engine takes."""


def create(name: str, **options: Any) -> Engine:
    """Make the engine of that name.

    Args:
        name: one of `NAMES` or `CLUSTERS`.
        options: `preload`, modules that programs import besides torch and its harnesses; `gpus`, the setting of that name;
            `address` of a Ray cluster; `scratch`, folders that go when this process is killed.
            What an engine has no use for is passed over.

    Raises:
        EngineError: there is no such engine, or it cannot begin.
    """
    if name not in TAKES:
        raise EngineError(f"there is no engine '{name}'", right=f"known are {', '.join(TAKES)}")
    module = importlib.import_module(f"rankbook.engines.{name}")
    return cast("Engine", module.create(**{key: value for key, value in options.items() if key in TAKES[name]}))
