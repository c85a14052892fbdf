"""What is documented: frozen facts that the documents wing hands from room to room.

`sources` makes a `Module` from each file, `analyse` makes a `Project` from all modules, `pages` renders it. Lines are counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass

from rankbook.embedding import Embedding
from rankbook.requirements import Requirement


@dataclass(frozen=True, slots=True)
class Source:
    """One file of the tree."""

    path: str
    """Path below the root, with `/`."""
    size: int
    """Bytes."""
    sha256: str
    language: str
    """Canonical name in `languages.LANGUAGES`, or `binary`: `python`, `markdown`, `cpp`, `text`, `binary` ..."""
    type: str
    """What a reader calls it: `Python source`, `C++ header`, `PNG image`."""
    lines: int = 0
    """Number of lines; 0 for a binary file."""
    embedding: Embedding | None = None
    """How its text is embedded; None when it has no listing."""
    not_embedded: str | None = None
    """Why it has no listing, as a clause."""

    @property
    def name(self) -> str:
        """File name."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        """Path of its folder; empty for the root."""
        return self.path.rpartition("/")[0]

    @property
    def extension(self) -> str:
        """Extension with its dot; empty when there is none."""
        stem, dot, end = self.name.rpartition(".")
        return dot + end if stem else ""


@dataclass(frozen=True, slots=True)
class Expression:
    """A piece of source text with its place."""

    text: str
    """As written, on one line."""
    name: str
    """Dotted name that it starts with (`pytest.mark.skipif` of `pytest.mark.skipif(x)`); empty when it has none."""
    line: int
    arguments: tuple[str, ...] = ()
    """Positional arguments as written."""
    keywords: tuple[tuple[str, str], ...] = ()
    """Keyword arguments as written."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name."""

    module: str
    """Dotted module as written, without leading dots."""
    name: str | None
    """Name taken from it; None for `import module`."""
    alias: str | None
    """Name after `as`."""
    line: int
    level: int = 0
    """Leading dots."""

    @property
    def bound(self) -> str:
        """Name that the import binds in the module."""
        return self.alias or self.name or self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Constant:
    """A module-level or class-level assignment."""

    name: str
    value: str
    """As written, on one line."""
    line: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method."""

    name: str
    qualname: str
    """`Class.method`, `function.inner`."""
    line: int
    end_line: int
    docstring: str | None = None
    decorators: tuple[Expression, ...] = ()
    parameters: tuple[str, ...] = ()
    is_async: bool = False
    returns: str | None = None
    """Value of its only `return`, as written, when that is its whole body; None otherwise."""
    guard: str | None = None
    """Condition of the `if` in which it is defined, as written; None inside another function."""
    skips: tuple[Expression, ...] = ()
    """Conditions under which its body skips the test (`self.skipTest`, `pytest.skip`, `raise SkipTest`), as written."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class."""

    name: str
    qualname: str
    line: int
    end_line: int
    docstring: str | None = None
    bases: tuple[Expression, ...] = ()
    decorators: tuple[Expression, ...] = ()
    methods: tuple[Function, ...] = ()
    attributes: tuple[Constant, ...] = ()
    guard: str | None = None
    """Condition of the `if` in which it is defined, as written."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word of the keyword index: a real definition or use."""

    kind: str
    """A word of `kinds.KINDS`: `class`, `function`, `test`, `fixture`, `import`, `constant`, `decorator` ..."""
    name: str
    line: int
    scope: str = ""
    """Qualified name of what holds it."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a prose file."""

    level: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Module:
    """All facts of one file."""

    source: Source
    docstring: str | None = None
    """Docstring of a Python module, first paragraph of a prose file."""
    classes: tuple[Class, ...] = ()
    """All classes, nested ones too, in the order of their lines."""
    functions: tuple[Function, ...] = ()
    """Functions outside classes, nested ones too, in the order of their lines."""
    imports: tuple[Import, ...] = ()
    constants: tuple[Constant, ...] = ()
    keywords: tuple[Keyword, ...] = ()
    headings: tuple[Heading, ...] = ()
    guards: tuple[Expression, ...] = ()
    """Conditions under which the module ends early (`sys.exit`, `pytest.skip`, `raise SkipTest`), as written."""
    marks: tuple[Expression, ...] = ()
    """`pytestmark` of the module."""
    calls: tuple[Expression, ...] = ()
    """Module-level calls that stand as statements, as written: `instantiate_parametrized_tests(TestX)`."""
    deleted: tuple[str, ...] = ()
    """Module-level names that a `del` takes away."""
    owners: tuple[str, ...] = ()
    """From `# Owner(s): [...]`."""
    environment: tuple[Keyword, ...] = ()
    """Environment variables that it reads or sets (kind `environment variable`)."""
    is_script: bool = False
    """Whether it has an `if __name__ == "__main__":`."""
    error: str | None = None
    """Why it could not be parsed."""
    error_line: int | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """One test that would run, inherited ones included."""

    id: str
    """Node id within its file: `TestClass::test_name`."""
    name: str
    line: int
    """Line of the function that runs."""
    path: str
    """Source of that function: another file when it is inherited from there."""
    class_name: str | None = None
    inherited_from: str | None = None
    """Class that defines it, when that is not `class_name`."""
    docstring: str | None = None
    harness: str | None = None
    """Word of `requirements.HARNESSES` that runs it: `MultiProcessTestCase`, `pytest` ..."""
    requirements: tuple[Requirement, ...] = ()
    parameters: tuple[str, ...] = ()
    """Parametrisations as written."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Why another file is related."""

    path: str
    why: str
    """A clause: `imports it (line 7)`, `holds the base class AbstractDDPSingleRank`."""
    rank: int = 0
    """Order: lower is nearer."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the tree."""

    path: str
    """Empty for the root."""
    folders: tuple[str, ...] = ()
    """Paths of its direct subfolders."""
    files: tuple[str, ...] = ()
    """Paths of its direct files."""

    @property
    def name(self) -> str:
        """Folder name."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Project:
    """The whole tree, analysed."""

    modules: Mapping[str, Module]
    """By source path, sorted."""
    folders: Mapping[str, Folder]
    """By path, the root under the empty path."""
    tests: Mapping[str, tuple[Test, ...]] = field(default_factory=dict)
    """By source path; a file without tests has no entry."""
    unresolved: Mapping[str, tuple[Expression, ...]] = field(default_factory=dict)
    """Base classes that no file of the tree holds and no table names, by source path."""
    relations: Mapping[str, tuple[Relation, ...]] = field(default_factory=dict)
    requirements: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    """What a file as a whole needs: the union over its tests, by source path."""
    imports: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By source path: module as imported (with its leading dots) to the source of the tree that it names."""


def tree(value: object, name: str = "") -> str:
    """Print a model object as a readable tree, leaving out empty fields.

    Args:
        value: any object of this module.
        name: label of the root line.
    """
    return "\n".join(_lines(value, name, 0)) + "\n"


def _lines(value: object, name: str, depth: int) -> Iterator[str]:
    pad = "  " * depth
    label = f"{name}: " if name else ""
    if is_dataclass(value) and not isinstance(value, type):
        yield f"{pad}{label}{type(value).__name__}"
        for entry in fields(value):
            inner = getattr(value, entry.name)
            if inner not in (None, (), "", {}, False):
                yield from _lines(inner, entry.name, depth + 1)
    elif isinstance(value, tuple):
        if all(isinstance(entry, str) for entry in value):
            yield f"{pad}{label}{', '.join(value)}"
            return
        yield f"{pad}{label}".rstrip()
        for entry in value:
            yield from _lines(entry, "-", depth + 1)
    elif isinstance(value, Mapping):
        yield f"{pad}{label}".rstrip()
        for key, entry in value.items():
            yield from _lines(entry, str(key), depth + 1)
    else:
        yield f"{pad}{label}{value!r}"
