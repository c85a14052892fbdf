"""Finds what a name means: in the rows that come with rankbook, and in those of `[tool.rankbook.requirements]`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rankbook.requirements import KINDS, Rule
from rankbook.words import NAMES, PASSED_OVER


def find(table: Mapping[str, object], name: str) -> str | None:
    """Find the row for a dotted name: the longest end of it that has one.

    Args:
        table: one of the tables of this module.
        name: `torch.testing._internal.common_distributed.requires_nccl`, say.

    Returns:
        The row's key, or None.
    """
    while name:
        if name in table:
            return name
        name = name.partition(".")[2]
    return None


def looks_like_requirement(name: str) -> bool:
    """Tell whether a decorator or a mark that no row names seems to say what a test needs."""
    last = name.rpartition(".")[2]
    return last not in PASSED_OVER and _LOOKS.search(last) is not None


_LOOKS = re.compile(r"(?i)skip|^require|^needs?_|^only[A-Z_]|_only$|^unless|^run_?(on|if)|^disabled|(gpu|cuda)s?_test")


class Vocabulary:
    """The rows that come with rankbook, and those of the project before them.

    Args:
        own: rows of the project, by name.
    """

    def __init__(self, own: Mapping[str, Rule] | None = None) -> None:
        self._rows = {**NAMES, **(own or {})}
        self.called = frozenset(name for name, rule in (own or {}).items() if rule.needs)
        """Names of the project whose calls need something."""

    def rule(self, name: str) -> Rule | None:
        """Give the row for a dotted name: that of the longest end of it that has one."""
        key = find(self._rows, name)
        return None if key is None else self._rows[key]


BUILT_IN = Vocabulary()
"""The rows that come with rankbook."""

_ROW_KEYS = (*(kind for kind in KINDS if kind not in ("one of", "condition")), "when", "otherwise")


def rule_of(row: object) -> Rule:
    """Read a row of `[tool.rankbook.requirements]`.

    Args:
        row: the value as TOML gives it: a table of kinds and values, or `"condition"` or `"not condition"`.

    Raises:
        ValueError: the row says nothing that a row can say; the message is a clause.
    """
    if isinstance(row, str):
        if row in ("condition", "not condition"):
            return Rule(condition=row == "condition")
        raise ValueError("is neither a table nor 'condition' or 'not condition'")
    if not isinstance(row, dict):
        raise ValueError("is not a table")  # noqa: TRY004 - the caller says what would be right
    unknown = [key for key in row if key not in _ROW_KEYS]
    if unknown:
        raise ValueError(f"has the unknown kind '{unknown[0]}'")
    needs = tuple((kind, _value(kind, value)) for kind, value in row.items() if kind not in ("when", "otherwise"))
    return Rule(needs, when=_when(row.get("when")), otherwise=_otherwise(row.get("otherwise", "skipped")))


def _value(kind: str, value: object) -> str:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(entry, (str, int)) and not isinstance(entry, bool) for entry in values):
        raise ValueError(f"gives '{kind}' a value that is no string, whole number or list of them")
    if kind == "gpus" and not all(_GPU_VALUE.fullmatch(str(entry)) for entry in values):
        raise ValueError(f"gives 'gpus' the value '{values[0]}', which is no number of GPUs")
    return " or ".join(map(str, values))


_GPU_VALUE = re.compile(r"(?:(?:==|<=|>=) )?(?:\d{1,6}|\{\d[^}]*\})(?: to \d{1,6})?")


def _when(value: object) -> tuple[str, str] | None:
    if value is None:
        return None
    place, equals, wanted = str(value).partition(" == ")
    if not equals:
        raise ValueError("has a 'when' that is not of the form 'PLACE == VALUE'")
    return place, wanted


def _otherwise(value: object) -> str:
    words = {"skipped": "skipped", "absent": "absent", "runs": ""}
    if value not in words:
        raise ValueError("has an 'otherwise' that is neither 'skipped', 'absent' nor 'runs'")
    return words[str(value)]
