"""What is documented: frozen facts that the documents wing hands from room to room.

`sources` makes a `Module` from each file, `analyse` makes a `Project` from all modules, `pages` renders it. Lines are counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import astuple

from rankbook.collecting import MAINS
from rankbook.embedding import Embedding
from rankbook.packed import columns_of, rows_of
from rankbook.requirements import Requirement

PACKAGES = "site-packages/"
"""Start of the path of a file that is no file of the tree, but of a package that the tree imports; it has no page."""


class Source(Struct, frozen=True):
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


GPU_CALL = "a GPU"
"""Name of the expression for a call that fails without a GPU, whatever is called: no identifier has a blank."""
NCCL_CALL = "a GPU and NCCL"
"""Name of the one for a call that joins a process group of NCCL."""
RANKS_OWN = "one per rank"
"""Says of such a call that each rank takes a GPU of its own."""


class Expression(NamedTuple):
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
    guard: str | None = None
    """Of a statement that calls: condition of the `if` in which it stands, as written."""
    reason: str = ""
    """Of a condition under which a test is skipped: what the skip says of it, as written."""
    is_late: bool = False
    """Of what skips a test: whether that stands behind what may fail, so that the test is not known to be skipped."""


class Import(NamedTuple):
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
    is_system: bool = False
    """Whether C writes it `<...>`, so that it is not looked for beside the file."""

    @property
    def bound(self) -> str:
        """Name that the import binds in the module."""
        return self.alias or self.name or self.module.partition(".")[0]


class Constant(NamedTuple):
    """A module-level or class-level assignment."""

    name: str
    value: str
    """As written, on one line; `X + [1]` where `X += [1]` is written."""
    line: int
    guard: str | None = None
    """Condition of the `if` in which it stands, as written."""


class Function(Struct, frozen=True):
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
    is_twin: bool = False
    """Whether a condition decides between it and another of its name."""
    is_spare: bool = False
    """Whether another of its name is taken: it does nothing but skip, or stands in an `except` for one that asks for nothing."""
    is_either: bool = False
    """Whether one of its name that asks for the same is there where its condition does not hold."""
    skips: tuple[Expression, ...] = ()
    """Conditions under which its body skips the test (`self.skipTest`, `pytest.skip`, `raise SkipTest`), as written."""
    leaves: tuple[Expression, ...] = ()
    """Conditions under which a test returns before it has done anything, as written."""
    defaults: tuple[tuple[str, str], ...] = ()
    """What its parameters are where a call does not say it, as written, of one that skips, or that is followed to what it returns."""
    asks: tuple[Expression, ...] = ()
    """Calls in its body, under no condition, of functions that may skip the test: by their names, or because those of its file do."""
    names: tuple[tuple[str, str], ...] = ()
    """Names that its body sets once, of those that stand in `skips` and `asks`, and what they are set to, as written."""
    spawns: tuple[Expression, ...] = ()
    """Calls by which its body starts processes (`mp.spawn`); names of its own in the number of them are what they are set to.

    Of one that is no test also those by which the functions within it do.
    """
    hands: tuple[Expression, ...] = ()
    """Calls to which it hands a function that they may run in processes: `start(2)` of `start(2)(body)()`, with the text of it all."""
    gpu_calls: tuple[Expression, ...] = ()
    """What it comes to whatever happens, and what fails without GPUs: the call that needs most, and the first of name `nccl`."""
    text: str = ""
    """All of it as written, of a module's function that is worth following: plain statements, or one that parametrises or sets names."""
    case_marks: tuple[tuple[str, int], ...] = ()
    """Marks of single cases in its decorators (`pytest.param(1, marks=...)`), as Python writes them, each with its line."""
    settled: tuple[str, ...] = ()
    """Those of its parameters that have a default, or that are only told apart by their places: pytest gives them no fixture."""
    gives: tuple[str, ...] = ()
    """Names of functions within it of which it returns one, whatever happens; none where it may return anything else."""

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from all others of its file, and from itself with other decorators or with values given beforehand."""
        return self.qualname, self.line, len(self.decorators), self.decorators[0].line if self.decorators else 0, self.defaults

    @property
    def requested(self) -> tuple[str, ...]:
        """Names of its parameters for which pytest looks up fixtures."""
        return tuple(name for name in self.parameters if name not in self.settled) if self.settled else self.parameters


class Class(Struct, frozen=True):
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
    is_spare: bool = False
    """Whether another of its name is taken: it has no tests, or none that runs, or stands in an `except` for one that asks for nothing."""
    is_either: bool = False
    """Whether one of its name that asks for the same is there where its condition does not hold."""


class Overwritten(NamedTuple):
    """A definition of which nothing is left, since its name is given to another."""

    qualname: str
    line: int
    later: int
    """Line of that other one."""


class Keyword(NamedTuple):
    """A word of the keyword index: a real definition or use."""

    kind: str
    """A word of `kinds.KINDS`: `class`, `function`, `test`, `fixture`, `import`, `constant`, `decorator` ..."""
    name: str
    line: int
    scope: str = ""
    """Qualified name of what holds it."""


class Heading(Struct, frozen=True):
    """A heading of a prose file."""

    level: int
    text: str
    line: int


class Definition(Struct, frozen=True):
    """What a file that is no Python source defines: a C++ function, a CMake target, a TOML table."""

    kind: str
    """What its language calls it: `struct`, `function`, `macro`, `target`, `table`."""
    name: str
    qualname: str
    """With the names around it, joined as the language joins them."""
    line: int
    end_line: int
    depth: int = 0
    """Number of listed definitions around it."""
    docstring: str | None = None


class Module(Struct, frozen=True):
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
    definitions: tuple[Definition, ...] = ()
    """Of a file that is no Python source, in the order of its lines."""
    left_out: int = 0
    """Definitions that were found and are not among `definitions`, because a file has too many."""
    is_cut: bool = False
    """Whether the file is too long to be looked at to its end, so that it may define still more."""
    is_torn: bool = False
    """Whether parts of the file do not fit its language's grammar, so that it may define still more."""
    guards: tuple[Expression, ...] = ()
    """Conditions under which the module ends early (`sys.exit`, `pytest.skip`, `raise SkipTest`), as written."""
    gpu_calls: tuple[Expression, ...] = ()
    """What an import of it comes to, and what fails without GPUs, as for a function."""
    marks: tuple[Expression, ...] = ()
    """`pytestmark` of the module."""
    calls: tuple[Expression, ...] = ()
    """Module-level calls that stand as statements, as written: `instantiate_parametrized_tests(TestX)`."""
    loops: tuple[Expression, ...] = ()
    """Module-level loops that define something, each whole as written: `for n in (2, 4): globals()[f"Test{n}"] = type(...)`."""
    references: tuple[Keyword, ...] = ()
    """Imported names that it mentions without calling them, by full dotted name (kind `reference`); first use per scope."""
    self_calls: tuple[Keyword, ...] = ()
    """Methods that its methods call or pass on, of `self` and `cls` (kind `self call`), and call on `super()`; first per scope."""
    local_calls: tuple[Keyword, ...] = ()
    """Functions and classes of its own that it calls or passes on, by the name as written (kind `local call`); first per scope."""
    overwritten: tuple[Overwritten, ...] = ()
    """By line."""
    deleted: tuple[str, ...] = ()
    """Module-level names that a `del` takes away."""
    deleted_if: tuple[Expression, ...] = ()
    """Conditions under which a `del` takes a module-level name away, as written, each with that name."""
    unsettled: tuple[str, ...] = ()
    """Names, of those that it assigns, that are set otherwise too, or changed where they are; `.x` and `a.x` where an attribute is set."""
    owners: tuple[str, ...] = ()
    """From `# Owner(s): [...]`, or from the repository's `CODEOWNERS`."""
    environment: tuple[Keyword, ...] = ()
    """Environment variables that it reads or sets (kind `environment variable`)."""
    is_script: bool = False
    """Whether it has an `if __name__ == "__main__":`."""
    error: str | None = None
    """Why it could not be parsed."""
    error_line: int | None = None
    unread: str | None = None
    """Why the definitions of a file that is no Python source are not read, as a clause."""
    codeowners: str = ""
    """The file of the repository that gives the owners, below its top; empty when this one names them itself, or nobody does."""

    @property
    def runs_its_tests(self) -> bool:
        """Whether it is a script that has the tests in it run, as unittest does."""
        return self.is_script and any(keyword.kind == "call" and keyword.name in MAINS for keyword in self.keywords)

    def __reduce__(self) -> tuple[Callable[..., Module], tuple[Any, ...]]:
        return _module, tuple(columns_of(value) if kind else value for kind, value in zip(_ROWS, astuple(self), strict=True))


def _module(*values: Any) -> Module:
    made: list[Any] = [rows_of(kind, value) if kind else value for kind, value in zip(_ROWS, values, strict=True)]
    return Module(*made)


_BY_FIELD: dict[str, type[tuple[Any, ...]]] = {
    "imports": Import,
    "constants": Constant,
    **dict.fromkeys(("keywords", "references", "self_calls", "local_calls", "environment"), Keyword),
}
_ROWS = tuple(map(_BY_FIELD.get, Module.__struct_fields__))
"""For each value of a module, the class of its rows when it is made of many; None for others."""


class Test(Struct, frozen=True):
    """One test that would run, inherited and generated ones included."""

    id: str
    """Node id within its file: `TestClass::test_name`, `test_name[gloo-2]`."""
    name: str
    """What stands last in the node id: `test_name_backend_gloo`."""
    line: int
    """Line of the function that runs."""
    path: str
    """Source of that function: another file when it is inherited from there."""
    function: str = ""
    """Name of that function; differs from `name` in a generated test."""
    class_name: str | None = None
    """Class under which it is collected; a generated one has no definition of its own."""
    inherited_from: str | None = None
    """Class that defines it, when that is not `class_name`."""
    docstring: str | None = None
    harness: str | None = None
    """Word of `requirements.HARNESSES` that runs it: `MultiProcessTestCase`, `pytest` ..."""
    requirements: tuple[Requirement, ...] = ()
    parameters: tuple[str, ...] = ()
    """Parametrisations as written."""
    case: tuple[tuple[str, str], ...] = ()
    """Of a generated test: its parameters and what they are, as written; the device comes as `device`."""
    family: str = ""
    """Why this entry stands for several tests whose names cannot be read, as a clause; empty when it is one test."""
    idle: str = ""
    """Why it tests nothing, though pytest finds it, as a clause; empty when it may test something."""
    marks: tuple[str, ...] = ()
    """Pytest marks by which it can be selected, sorted: its own, those of its case, its classes and its module."""
    decorators: tuple[str, ...] = ()
    """Full names of what decorates it and its classes, sorted, without marks and what pytest and Python themselves have."""


class Use(Struct, frozen=True):
    """An imported name that a file uses: one row of the API index."""

    name: str
    """Full dotted name: `torch.distributed.all_reduce`."""
    lines: tuple[int, ...]
    """Lines of the file, sorted; none when only base classes and helpers in other files use it."""
    tests: tuple[str, ...] = ()
    """Node ids of the tests of the file that reach it: by their body, by helpers, by what is set up around them, by fixtures."""
    is_called: bool = True
    """Whether some use is a call."""
    places: tuple[tuple[str, int], ...] = ()
    """Paths and lines in other files, of base classes and of helpers, at which tests of this one reach it."""
    home: tuple[str, int] | None = None
    """Path and line at which it is defined, where a file of the tree does."""


class PublicName(Struct, frozen=True):
    """A name that a module of the setting `apis` offers to others."""

    name: str
    """Full dotted name: `torch.distributed.all_reduce`."""
    path: str
    """File that defines it, or the one that imports it where no known file does."""
    line: int
    kind: str
    """`class`, `function` or `constant`; `name` for one that no known file defines."""


class Descent(Struct, frozen=True):
    """A class of the file that derives, near or far, from a class of another."""

    name: str
    """Qualified name of the class of this file."""
    line: int
    """Where it is defined."""
    ancestor: str
    """Qualified name of the other."""
    path: str
    """Its file."""
    distance: int
    """Place in the order in which Python looks attributes up."""


class Finding(Struct, frozen=True):
    """What a linter says of a line."""

    rule: str
    """Its code: `S301`."""
    name: str
    """Its name in words: `suspicious-pickle-usage`."""
    message: str
    line: int
    url: str
    """Page that explains the rule; empty when there is none."""


class Unfound(NamedTuple):
    """Tests that stand in a file, and that pytest does not find there."""

    name: str
    """Of the class or the function, with the classes around it."""
    line: int
    tests: int
    """How many there are."""
    why: str
    """`function`: a decorator makes its class one. `constructor`: its class has one. `again`: the name is given to something else later."""
    by: str
    """Decorator as written, or class with the constructor; empty where the name is given again."""
    at: int
    """Line of what keeps them out; 0 when that stands in another file."""

    @property
    def says(self) -> str:
        """Why they are not found, as a clause."""
        if self.why == "function":
            return f"{self.by} makes the class a function"
        if self.why == "again":
            return f"the name is defined again in line {self.at}"
        return f"{'the class' if self.by == self.name else self.by} has a constructor"


class Survey(Struct, frozen=True):
    """What one file says, read together with the files that it names."""

    path: str
    imports: Mapping[str, str] = field(default_factory=dict)
    """Module as imported (with its leading dots) to the source of the tree that it names."""
    import_lines: Mapping[str, int] = field(default_factory=dict)
    """By source that is imported: the first line that names it."""
    descents: tuple[Descent, ...] = ()
    unresolved: tuple[Expression, ...] = ()
    """Base classes that no known file holds and no table names."""
    cut_short: tuple[tuple[str, int], ...] = ()
    """Classes that have more ancestors than are looked at, and their lines."""
    tests: tuple[Test, ...] = ()
    unfound: tuple[Unfound, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    """What the file as a whole needs: the union over its tests."""
    uses: tuple[Use, ...] = ()
    """By name."""
    reads: frozenset[str] = frozenset()
    """Other files that these answers were read from."""
    asked: frozenset[str] = frozenset()
    """Last parts of the modules that were looked for, so that a new file of such a name may change the answers."""


class Relation(Struct, frozen=True):
    """Why another file is related."""

    path: str
    why: str
    """A clause: `imports it`, `holds the base class AbstractDDPSingleRank`."""
    rank: int = 0
    """Order: lower is nearer."""
    line: int = 0
    """Line that says so; 0 when no single line does."""
    where: str = ""
    """File of that line."""


class Folder(Struct, frozen=True):
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


class Project(Struct, frozen=True, dict=True):
    """The whole tree, analysed."""

    modules: Mapping[str, Module]
    """By source path, sorted."""
    folders: Mapping[str, Folder]
    """By path, the root under the empty path."""
    surveys: Mapping[str, Survey] = field(default_factory=dict)
    """By source path; a file of which nothing is said has an empty one."""
    relations: Mapping[str, tuple[Relation, ...]] = field(default_factory=dict)
    """By source path, nearest first; a file without any has no entry."""
    findings: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    """By source path; a file without any has no entry."""
    public: tuple[PublicName, ...] = ()
    """What the modules of the setting `apis` offer, by name."""

    @cached_property
    def tests(self) -> Mapping[str, tuple[Test, ...]]:
        """Tests by source path; a file without tests has no entry."""
        return {path: survey.tests for path, survey in self.surveys.items() if survey.tests}

    @cached_property
    def requirements(self) -> Mapping[str, tuple[Requirement, ...]]:
        """What a file as a whole needs, by source path; a file that needs nothing has no entry."""
        return {path: survey.requirements for path, survey in self.surveys.items() if survey.requirements}


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
    names = _names(value)
    if names:
        yield f"{pad}{label}{type(value).__name__}"
        for entry in names:
            inner = getattr(value, entry)
            if inner not in (None, (), "", {}, False):
                yield from _lines(inner, entry, depth + 1)
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


def _names(value: object) -> tuple[str, ...]:
    """Name the fields of an object of this module."""
    return value.__struct_fields__ if isinstance(value, Struct) else getattr(value, "_fields", ())
