"""What the rendering of a site's pages depends on besides their text: the code of its extensions and their settings.

Only what is known to render a text by itself has a fingerprint: Python-Markdown, the extensions of pymdownx and what Material's settings
name. An extension of somebody else may read other files, the clock or the network.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import markdown

_PACKAGES = {
    "markdown": "Markdown",
    "pymdownx": "pymdown-extensions",
    "material": "mkdocs-material",
    "zensical": "zensical",
}
"""Packages whose code is known, with the distributions that have their versions; the engine's own recorder counts with rankbook."""
_READERS = frozenset({"pymdownx.b64", "pymdownx.pathconverter"})
"""Extensions of theirs that look at files."""
_SNIPPETS = "pymdownx.snippets"
_SNIPPET = re.compile(r"-8<-")
"""What stands on the line of a snippet, which is read from a file."""


class _UnknownError(Exception):
    """Something of the site is not known to depend on the text alone."""


class Fingerprint(Struct, frozen=True):
    """All that the rendering of a text depends on."""

    text: str = ""
    """The same for sites that render alike; empty when more than can be known decides."""
    snippets: bool = False
    """Whether a text may name files."""

    def covers(self, page: str) -> bool:
        """Say whether the rendering of a page depends on nothing else than this and its text."""
        return bool(self.text) and not (self.snippets and _SNIPPET.search(page))


def fingerprint(md: markdown.Markdown, settings: Mapping[str, Mapping[str, Any]], left_out: tuple[str, ...]) -> Fingerprint:
    """Take the fingerprint of a site.

    Args:
        md: its Markdown, set up.
        settings: of its extensions, by name.
        left_out: what could not be had of them.
    """
    try:
        kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in map(type, [*_extensions(md, settings, left_out), *_parts(md)])]
        packages = {_package(kind) for kind in kinds} - {"rankbook"}
        said = [_described(values, packages) for values in settings.items()]
        versions = [f"{package} {importlib.metadata.version(_PACKAGES[package])}" for package in sorted(packages)]
    except (_UnknownError, importlib.metadata.PackageNotFoundError):
        return Fingerprint()
    snippets = any(kind.startswith(_SNIPPETS) for kind in kinds)
    if snippets and any(values.get("auto_append") for values in settings.values()):
        return Fingerprint()
    return Fingerprint("\n".join([*versions, *kinds, *said, *left_out]), snippets)


def _extensions(md: markdown.Markdown, names: Iterable[str], left_out: Iterable[str]) -> Iterator[object]:
    """Yield the extensions by their names: one may work without leaving a part in the Markdown."""
    for name in names:
        if any(sentence.startswith(f"extension '{name}' ") for sentence in left_out):
            continue
        try:
            yield md.build_extension(name, {})
        except Exception as error:
            raise _UnknownError(name) from error


def _parts(md: markdown.Markdown) -> Iterator[object]:
    for registry in (md.preprocessors, md.parser.blockprocessors, md.inlinePatterns, md.treeprocessors, md.postprocessors):
        yield from registry


def _package(name: str) -> str:
    """Give the package of a class or a function that is known."""
    package = name.partition(".")[0]
    if package not in {*_PACKAGES, "rankbook"} or any(name.startswith(f"{reader}.") for reader in _READERS):
        raise _UnknownError(name)
    return package


def _described(value: object, packages: set[str]) -> str:
    """Write a setting down; the packages of functions that it names are added."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_described(key, packages)}: {_described(inner, packages)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_described(inner, packages) for inner in value)}]"
    if isinstance(value, functools.partial):
        return f"partial({_described([value.func, value.args, value.keywords], packages)})"
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    if callable(value) and isinstance(getattr(value, "__qualname__", None), str) and "<" not in name:
        packages.add(_package(name))
        return name
    raise _UnknownError(repr(value))
