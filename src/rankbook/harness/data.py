"""Listings of data: JSON, TOML, YAML and XML must parse."""

from __future__ import annotations

import configparser
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

import yaml

from rankbook.languages import by_fence
from rankbook.listing import Listing, Program, Runtime


def _xml(text: str) -> None:
    # expat itself resolves no external entity.
    expat.ParserCreate().Parse(text.encode(), True)  # noqa: FBT003 - the parser takes no keywords


def _ini(text: str) -> None:
    configparser.RawConfigParser(strict=False, allow_no_value=True).read_string(text)


def _yaml(text: str) -> None:
    # Composing checks the syntax and builds nothing, so tags of other programs are no error.
    for _ in yaml.compose_all(text, Loader=yaml.SafeLoader):
        pass


PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": _yaml,
    "xml": _xml,
    "ini": _ini,
}


def accepts(listing: Listing) -> bool:
    """Say whether a listing is data with a parser."""
    language = by_fence(listing.language)
    return language is not None and language.name in PARSERS


def arguments(listing: Listing) -> Mapping[str, Any]:
    """Give the name of the parser."""
    language = by_fence(listing.language)
    return {"parser": language.name if language else ""}


def run(program: Program, runtime: Runtime) -> int:
    """Parse the listing."""
    text = (Path(program.root) / program.path).read_text(encoding="utf-8")
    try:
        PARSERS[program.arguments["parser"]](text)
    except (ValueError, yaml.YAMLError, expat.ExpatError, configparser.Error, RecursionError) as error:
        runtime.emit({"type": "report", "id": "", "when": "call", "outcome": "failed", **_failure(error, program.arguments["parser"])})
        return 1
    runtime.emit({"type": "report", "id": "", "when": "call", "outcome": "passed"})
    return 0


def _failure(error: Exception, parser: str) -> dict[str, Any]:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else getattr(error, "lineno", None)
    reason = f"not valid {parser.upper()}: {' '.join(str(error).split())}"
    return {"reason": reason, "line": line, "text": reason}
