"""Listings of data, which must parse: JSON, also line by line, TOML, YAML, XML, INI, and stubs of Python."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

import yaml

from rankbook.languages import by_fence, is_of_lines, is_stub
from rankbook.listing import Listing, Program, Runtime
from rankbook.syntax import syntax_tree

_BELOW_NOTHING = (AttributeError, getattr(configparser, "MultilineContinuationError", AttributeError))
"""What the parser of INI ends in there: until Python 3.13 it fails itself."""


def _xml(text: str) -> None:
    # expat itself resolves no external entity.
    expat.ParserCreate().Parse(text.encode(), True)  # noqa: FBT003 - the parser takes no keywords


def _ini(text: str) -> None:
    try:
        configparser.RawConfigParser(strict=False, allow_no_value=True).read_string(text)
    except _BELOW_NOTHING as error:
        raise ValueError("a value goes on below a key that has none") from error


def _yaml(text: str) -> None:
    # Composing checks the syntax and builds nothing, so tags of other programs are no error.
    for _ in yaml.compose_all(text, Loader=yaml.SafeLoader):
        pass


def _json_lines(text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        try:
            json.loads(line if line.strip() else "null")
        except json.JSONDecodeError as error:
            raise json.JSONDecodeError(error.msg, "\n" * (number - 1) + line, number - 1 + error.pos) from error


PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "json lines": _json_lines,
    "toml": tomllib.loads,
    "yaml": _yaml,
    "xml": _xml,
    "ini": _ini,
    "python": syntax_tree,
}
_NAMES = {"python": "Python", "json lines": "JSON"}
"""What data is called that is not called as its parser, in capitals."""


def accepts(listing: Listing) -> bool:
    """Say whether a listing is data with a parser."""
    name = _parser(listing)
    return name in PARSERS and (name != "python" or (listing.about is not None and is_stub(listing.about.source)))


def arguments(listing: Listing) -> Mapping[str, Any]:
    """Give the name of the parser."""
    return {"parser": _parser(listing)}


def _parser(listing: Listing) -> str:
    language = by_fence(listing.language)
    name = language.name if language else ""
    return "json lines" if name == "json" and listing.about is not None and is_of_lines(listing.about.source) else name


def run(program: Program, runtime: Runtime) -> int:
    """Parse the listing."""
    text = (Path(program.root) / program.path).read_text(encoding="utf-8")
    try:
        PARSERS[program.arguments["parser"]](text)
    except (ValueError, yaml.YAMLError, expat.ExpatError, configparser.Error, SyntaxError, RecursionError) as error:
        runtime.emit({"type": "report", "id": "", "when": "call", "outcome": "failed", **_failure(error, program.arguments["parser"])})
        return 1
    runtime.emit({"type": "report", "id": "", "when": "call", "outcome": "passed"})
    return 0


def _failure(error: Exception, parser: str) -> dict[str, Any]:
    what, line, column = _told(error)
    reason = f"not valid {_NAMES.get(parser, parser.upper())}: {' '.join(what.split())}{f' (column {column})' if column else ''}"
    return {"reason": reason, "line": line, "text": reason}


_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
"""What the reader of TOML says of a place."""


def _told(error: Exception) -> tuple[str, int | None, int | None]:
    """Take apart what a parser says.

    Returns:
        What is wrong, the line, and the column, both counted from 1; None for each that the parser does not tell.
    """
    what = str(error)
    line: Any = None  # of exceptions whose attributes have no types
    column: int | None = None
    match error:
        case json.JSONDecodeError():
            what, line, column = error.msg, error.lineno, error.colno
        case tomllib.TOMLDecodeError() if found := _PLACE.search(what):
            what, line, column = what[: found.start()], int(found[1]), int(found[2])
        case SyntaxError():
            what, line, column = error.msg, error.lineno, error.offset
        case yaml.MarkedYAMLError(problem_mark=yaml.Mark() as mark):
            what, line, column = ": ".join(filter(None, (error.context, error.problem))), mark.line + 1, mark.column + 1
        case expat.ExpatError():
            what, line, column = expat.ErrorString(error.code), error.lineno, error.offset + 1
        case configparser.MissingSectionHeaderError():
            what, line = "no section begins above it", error.lineno
        case configparser.ParsingError(errors=[(line, text), *_]):
            what = f"neither a section nor a key: {text}"
    return what, line, column
