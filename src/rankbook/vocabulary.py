"""Finds what a name means: in the rows that come with rankbook, and in those of `[tool.rankbook.requirements]`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rankbook.errors import ConfigError
from rankbook.requirements import KINDS, Rule, joined
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


def rule_of(name: str, row: object) -> Rule:
    """Read a row of `[tool.rankbook.requirements]`.

    Args:
        name: what the row is for.
        row: the value as TOML gives it: a table of kinds and values, or `"condition"` or `"not condition"`.

    Raises:
        ConfigError: the row says nothing that a row can say; what is wrong is a clause.
    """
    if not _DOTTED.fullmatch(name):
        raise ConfigError("is for no name", right='write the end of a dotted name, such as needs_two_gpus or "mark.h100"')
    if isinstance(row, str):
        if row in ("condition", "not condition"):
            return Rule(condition=row == "condition")
        raise ConfigError("is neither a table nor 'condition' or 'not condition'", right=f"write {ROW}, say")
    if not isinstance(row, dict):
        raise ConfigError("is not a table", right=f"write {ROW}, say")
    unknown = [key for key in row if key not in _ROW_KEYS]
    if unknown:
        raise ConfigError(f"has the unknown kind '{unknown[0]}'", right=f"known are {', '.join(_ROW_KEYS)}")
    needs = tuple((kind, _value(kind, value)) for kind, value in row.items() if kind not in ("when", "otherwise"))
    return Rule(needs, when=_when(row.get("when")), otherwise=_otherwise(row.get("otherwise", "skipped")))


ROW = 'needs_two_gpus = { gpus = "2" }'
"""A row of `[tool.rankbook.requirements]`, as an example."""
_DOTTED = re.compile(r"\w+(\.\w+)*")


def _value(kind: str, value: object) -> str:
    form, examples = _FORMS[kind]
    entries = value if isinstance(value, list) else [value]
    if kind == "gpus" and isinstance(value, list):
        raise ConfigError("gives 'gpus' a list of values", right=f"write {examples}, say")
    for entry in entries or [None]:
        if not isinstance(entry, (str, int)) or isinstance(entry, bool):
            what = f"gives '{kind}' a value that is no string, whole number or list of them"
            raise ConfigError(what, right=f"write {examples}, say")
        if not form.fullmatch(_PLACE.sub("1", str(entry))):
            raise ConfigError(f"gives '{kind}' the value '{entry}', which says nothing of that kind", right=f"write {examples}, say")
    return joined(map(str, entries))


_PLACE = re.compile(r"\{\d[^}]*\}")
"""What stands in a value for an argument of the call."""
_SIGN = r"(?:<=|>=|==|!=|<|>) "
_VARIABLE = r"\w+ (?:(?:not )?set|(?:==|!=|starts with|does not start with) .+)"
_FORMS: Mapping[str, tuple[re.Pattern[str], str]] = {
    kind: (re.compile(form, re.IGNORECASE if kind == "memory" else 0), examples)
    for kind, form, examples in (
        ("gpus", r"(?:(?:==|<=|>=) )?\d{1,6}|\d{1,6} to \d{1,6}", 'gpus = 2, "== 1" or "2 to 4"'),
        ("world size", rf"(?:{_SIGN})?\d{{1,6}}|even", '"world size" = 4, ">= 4" or "even"'),
        ("backend", r".*\S.*", 'backend = "nccl"'),
        ("device", r".*\S.*", 'device = "cuda"'),
        ("peer access", r".*", '"peer access" = ""'),
        ("capability", rf"{_SIGN}\d+(?:\.\d+)?|\d+\.x", 'capability = ">= 9.0"'),
        ("memory", r"\d+(?:\.\d+)? ?(?:bytes|[KMGT]?B)", 'memory = "40GB"'),
        ("library", rf"[^<>=!]*[^<>=! ](?: {_SIGN}\S.*)?", 'library = "cuDNN" or "NCCL >= 2.19"'),
        ("package", rf"(?:not )?[\w.-]+(?: {_SIGN}\S.*)?", 'package = "triton" or "numpy >= 1.24"'),
        ("platform", r".*\S.*", 'platform = "Linux"'),
        ("environment", _VARIABLE, 'environment = "CI set" or "MODE == fast"'),
        ("slow", rf"(?:{_VARIABLE})?", 'slow = "RUN_SLOW == 1"'),
        ("disabled", r".*", 'disabled = "its server is gone"'),
        ("mark", r".*\S.*", 'mark = "nightly"'),
    )
}
"""Which values a kind has, and how a row gives it one."""


def _when(value: object) -> tuple[str, str] | None:
    if value is None:
        return None
    place, equals, wanted = str(value).partition(" == ")
    if not equals:
        raise ConfigError("has a 'when' that is not of the form 'PLACE == VALUE'", right='write when = "{0|backend} == nccl", say')
    return place, wanted


def _otherwise(value: object) -> str:
    words = {"skipped": "skipped", "absent": "absent", "runs": ""}
    if value not in words:
        raise ConfigError(f"has the 'otherwise' {value!r}", right="known are skipped, absent, runs")
    return words[str(value)]
