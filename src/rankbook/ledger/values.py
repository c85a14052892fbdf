"""A run as a JSON object: what a line of an export holds, and what travels between processes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import asdict

from rankbook.listing import Outcome, RankEnd, Receipt, Run

Values = dict[str, Any]
"""A run by the names of its fields; what is empty is left out. In a ledger it has `id` and `session` too."""
_CORES = re.compile(r", \d+ cores?\b")
_MOST = 2**53
"""Beyond it a number in JSON is not exact everywhere."""
_MOST_SECONDS = 1e9
"""About thirty years: no run takes longer."""


def values_of(run: Run) -> Values:
    """Give a run as a JSON object."""
    found = asdict(run)
    found |= {
        "outcome": str(run.outcome),
        "duration": float(run.duration),
        "receipt": run.receipt.as_json() if isinstance(run.receipt, Receipt) else dict(run.receipt),
        "modules": dict(run.modules),
        "needs": list(run.needs),
        "case": dict(run.case),
    }
    return compact(found)


def compact(values: Mapping[str, Any]) -> Values:
    """Leave out what is empty, except what each run has."""
    return {name: value for name, value in values.items() if value or name in _ALWAYS}


def run_of(values: Mapping[str, Any]) -> Run:
    """Make a run from its JSON object.

    Raises:
        ValueError: it is none.
    """
    found = {**_EMPTY, **{name: value for name, value in values.items() if name in _NAMES}}
    try:
        return Run(
            **{
                **found,
                "outcome": Outcome(found["outcome"]),
                "receipt": Receipt.of(found.get("receipt", {})),
                "needs": tuple(found.get("needs", ())),
            }
        )
    except (TypeError, KeyError) as error:
        raise ValueError(f"it is no run: {error}") from error


_NAMES = frozenset(Run.__struct_fields__)
_ALWAYS = frozenset(Run.__struct_fields__[: -len(Run.__struct_defaults__)]) - {"source", "line", "kind"}
_EMPTY: Mapping[str, Any] = {"page": "", "node_id": "", "listing": "", "source": "", "line": 0, "kind": ""}


def hardware_class(machine: str) -> str:
    """Give the part of a machine's name that decides what a proof is worth: GPUs by number and model, or the kind of CPU, not its cores."""
    return _CORES.sub("", machine)


def setting(machine: str, python: str, torch: str) -> str:
    """Name the circumstances under which a run counts for another: hardware class, minor version of Python, version of torch.

    Args:
        machine: name of the hardware, as a run has it.
        python: version of Python.
        torch: version of torch; empty where there is none.
    """
    minor = ".".join(python.split(".")[:2])
    return " | ".join((hardware_class(machine), f"Python {minor}", f"torch {torch}"))


def setting_of(values: Mapping[str, Any]) -> str:
    """Name the circumstances of a run."""
    versions = values.get("receipt", {}).get("versions", {})
    return setting(values.get("machine", ""), versions.get("python", ""), values.get("torch", ""))


def moment(written: str) -> str:
    """Write a date, or a date with a time, as runs have it: UTC, ISO 8601.

    Args:
        written: `2026-11-20`, `2026-11-20T14:05+01:00`; without an offset it is UTC.

    Raises:
        ValueError: it is no date.
    """
    found = datetime.fromisoformat(written)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def is_ahead(when: str) -> bool:
    """Say whether a run is dated ahead of every clock that goes right: more than a day after the present time of this machine.

    Args:
        when: time of the run, as `moment` gives it.
    """
    return when > (datetime.now(UTC) + timedelta(days=1)).isoformat()


def checked(values: object) -> Values:
    """Check a run that comes from a file.

    Args:
        values: what was read.

    Returns:
        The same run, with its time in UTC.

    Raises:
        ValueError: it is no run; the sentence says why.
    """
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - one kind of error for all that is wrong with a line
    for name, value in values.items():
        if name not in _CHECKS:
            raise ValueError(f"it has a field '{name}', which this rankbook does not know")
        wanted, is_right = _CHECKS[name]
        if not is_right(value):
            raise ValueError(f"its '{name}' is not {wanted}")
    for name in ("id", "page", "node_id", "outcome"):
        if not values.get(name):
            raise ValueError(f"it has no '{name}'")
    run_of(values)
    return values | ({"when": moment(values["when"])} if values.get("when") else {})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_SECONDS


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(not value or moment(value))
    except (ValueError, OverflowError):
        return False


def _is_receipt(value: object) -> bool:
    try:
        found = Receipt.of(value) if isinstance(value, dict) else None
    except (TypeError, ValueError):
        return False
    return found is not None and _is_mapping(found.versions) and all(map(_is_end, found.ranks))


def _is_end(rank: RankEnd) -> bool:
    moments = rank.started, rank.duration, *(each for each in (rank.entered, rank.called_at) if each is not None)
    return all(map(_is_seconds, moments))


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_case(value: object) -> bool:
    counts = ("of", "place", "page")
    return isinstance(value, dict) and _is_text(value.get("id", "")) and all(_is_count(value.get(name, 0)) for name in counts)


_Check = tuple[str, Callable[[object], bool]]
_TEXT: _Check = ("a text", _is_text)
_COUNT: _Check = ("a whole number", _is_count)
_CHECKS: Mapping[str, _Check] = {
    **dict.fromkeys(("session", "page", "node_id", "listing", "source", "kind", "reason", "machine", "engine", "torch", "commit"), _TEXT),
    "id": ("32 digits of base 16", lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None),
    "line": _COUNT,
    "ranks": _COUNT,
    "outcome": ("an outcome", lambda value: value in set(Outcome)),
    "when": ("a time in ISO 8601", _is_moment),
    "duration": ("a number of seconds", _is_seconds),
    "needs": ("a list of texts", lambda value: isinstance(value, list) and all(map(_is_text, value))),
    "modules": ("an object of texts", _is_mapping),
    "case": ("what pytest collected of a test", _is_case),
    "receipt": ("a receipt", _is_receipt),
}
"""Each field of a line: what it must be, in words and as a check."""
