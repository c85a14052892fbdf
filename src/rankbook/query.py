"""Questions about the suite, told once: filters choose tests, a noun says what they are counted by."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from rankbook.analyse.public import mentioned, unmentioned
from rankbook.errors import ConfigError
from rankbook.globs import matcher
from rankbook.machine import facts
from rankbook.model import Project, Test, Unfound
from rankbook.requirements import Requirement, gpus_of
from rankbook.terminal import aligned
from rankbook.verdict import verdict

_COMPARISON = re.compile(r"\s*(>=|<=|==|!=|=|>|<|)\s*(\d{1,9})\s*")
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    ">=": int.__ge__,
    "<=": int.__le__,
    ">": int.__gt__,
    "<": int.__lt__,
    "!=": int.__ne__,
    "==": int.__eq__,
    "=": int.__eq__,
    "": int.__eq__,
}
_NUMBER = re.compile(r"\d+")
_VERDICTS = ("runs", "skipped", "absent", "unknown")
"""What may become of a test on a machine."""


class Question(Struct, frozen=True):
    """What is asked."""

    noun: str
    """A key of `NOUNS`."""
    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names of `FILTERS` with their values: a test is chosen when each filter takes it by one of its values."""
    under: str = ""
    """Of `apis`: the namespace; empty for all names, as on the page that lists them."""
    untested: bool = False
    """Of `apis`: ask for the public names that no test mentions."""


class Row(Struct, frozen=True):
    """One line of an answer."""

    id: str
    """What names it: a node id, a path, a dotted name."""
    cells: tuple[str, ...]
    """What a table shows in the other columns."""
    facts: Mapping[str, Any]
    """All that is known of it, as JSON has it."""


class Answer(Struct, frozen=True):
    """What was found, sorted."""

    columns: tuple[str, ...]
    """Headings of a table."""
    rows: tuple[Row, ...]


def check(question: Question, apis: Sequence[str]) -> None:
    """Make sure that a question can be answered before the suite is surveyed for it.

    Raises:
        ConfigError: the value of a filter cannot be read, or no module is named whose names tests should mention.
    """
    for name, values in question.filters:
        for value in values:
            try:
                FILTERS[name].make(value)
            except ConfigError as error:
                raise ConfigError(f"--{name}: {error.what}", right=error.right) from error
    if question.noun == UNFOUND and (others := [name for name, _ in question.filters if name not in OF_FILES]):
        right = f"choose them by {', '.join(f'--{name}' for name in OF_FILES[:-1])} or --{OF_FILES[-1]}"
        raise ConfigError(f"--{others[0]}: of tests that pytest does not find only the name and the file are known", right=right)
    if question.untested and question.filters:
        raise ConfigError("--untested asks for names that no test mentions, so tests cannot be chosen", right="leave out the other filters")
    if question.untested and not apis:
        raise ConfigError("no module is named whose names tests should mention", right="write --under NAME, or set apis in [tool.rankbook]")


def answer(project: Project, question: Question, told: Callable[[str], str] = str) -> Answer:
    """Answer a question from what is known of the suite.

    Args:
        project: the suite, surveyed.
        question: what is asked.
        told: tells a reader where a file lies, those of packages too.

    Raises:
        ConfigError: the value of a filter cannot be read, or no public name is known that tests could mention.
    """
    suite = _Suite(project, told)
    if question.untested:
        return Answer(("name", "kind", "defined at"), tuple(_untested(suite, question.under)))
    noun = NOUNS[question.noun]
    filters = [[FILTERS[name].make(value) for value in values] for name, values in question.filters]
    asked = suite.unfound() if question.noun == UNFOUND else suite.candidates()
    chosen = [each for each in asked if all(any(takes(each) for takes in either) for either in filters)]
    return Answer(noun.columns, tuple(noun.rows(suite, chosen, question)))


def lines(found: Answer) -> Iterator[str]:
    """Write an answer as text in columns, under their headings; nothing when nothing was found."""
    return aligned([found.columns, *((row.id, *row.cells) for row in found.rows)] if found.rows else [])


# Tests, and what filters ask of them


class Candidate(Struct, frozen=True):
    """A test that filters look at."""

    suite: _Suite
    path: str
    """File under which it is collected."""
    test: Test
    unfound: Unfound | None = None
    """Why pytest does not find it; None for one that it finds."""

    @property
    def id(self) -> str:
        """Its node id, below the root."""
        return f"{self.path}::{self.test.id}"

    @property
    def owners(self) -> tuple[str, ...]:
        """Who answers for its file."""
        return self.suite.project.modules[self.path].owners

    @property
    def needs(self) -> tuple[str, ...]:
        """What it needs, as a reader says it."""
        return tuple(dict.fromkeys(need.text for need in self.test.requirements))

    @property
    def apis(self) -> tuple[str, ...]:
        """Names that it reaches."""
        return self.suite.apis(self.path).get(self.test.id, ())

    def values(self, *kinds: str) -> Iterator[str]:
        """Give what it needs of some kinds."""
        return (need.value for need in _flat(self.test.requirements) if need.kind in kinds)


class _Suite:
    """The suite, as filters look at it.

    Args:
        project: the suite, surveyed.
        told: tells a reader where a file lies.
    """

    def __init__(self, project: Project, told: Callable[[str], str]) -> None:
        self.project = project
        self.told = told
        self._apis: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def candidates(self) -> Iterator[Candidate]:
        """Give all tests, file by file."""
        for path in sorted(self.project.surveys):
            for test in self.project.surveys[path].tests:
                yield Candidate(self, path, test)

    def unfound(self) -> Iterator[Candidate]:
        """Give all that pytest does not find, each as one test of its name."""
        for path in sorted(self.project.surveys):
            for each in self.project.surveys[path].unfound:
                name = each.name.replace(".", "::")
                yield Candidate(self, path, Test(name, name.rpartition("::")[2], each.line, path), each)

    def apis(self, path: str) -> Mapping[str, tuple[str, ...]]:
        """Give the names that each test of a file reaches, by its node id."""
        if path not in self._apis:
            found: defaultdict[str, list[str]] = defaultdict(list)
            for use in self.project.surveys[path].uses:
                for test in use.tests:
                    found[test].append(use.name)
            self._apis[path] = {test: tuple(names) for test, names in found.items()}
        return self._apis[path]


def _flat(needs: Iterable[Requirement]) -> Iterator[Requirement]:
    """Give requirements with the alternatives of those that have some."""
    for need in needs:
        yield need
        for alternative in need.either:
            yield from _flat(alternative)


def fewest_gpus(needs: Iterable[Requirement]) -> int:
    """Count the GPUs without which a test does not run; a number that only a run knows counts as one."""
    fewest = 0
    for need in needs:
        found = gpus_of(need) if need.otherwise or need.kind == "gpus" else None
        if found is not None:
            fewest = max(fewest, found[0])
        elif need.either:
            fewest = max(fewest, min(fewest_gpus(alternative) for alternative in need.either))
    return fewest


class Filter(Struct, frozen=True):
    """A way to choose tests."""

    metavar: str
    help: str
    make: Callable[[str], Callable[[Candidate], bool]]
    """Reads a value and gives what tells whether a test is taken."""


def _glob(pattern: str) -> Callable[[str], object]:
    """Compare with a pattern in which only `*` and `?` are special: node ids have brackets."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL).fullmatch


def _any_name(given: Callable[[Candidate], Iterable[str]]) -> Callable[[str], Callable[[Candidate], bool]]:
    """Compare names, with `*` and `?` for what may stand there, and small letters as large ones."""

    def make(value: str) -> Callable[[Candidate], bool]:
        takes = _glob(value.lower())
        return lambda each: any(takes(name.lower()) for name in given(each))

    return make


def _number(given: Callable[[Candidate], Iterable[int]]) -> Callable[[str], Callable[[Candidate], bool]]:
    def make(value: str) -> Callable[[Candidate], bool]:
        match = _COMPARISON.fullmatch(value)
        if match is None:
            raise ConfigError(f"'{value}' is no comparison with a number", right="write 2, '>=2' or '<4', say")
        compare, limit = _COMPARED[match[1]], int(match[2])
        return lambda each: any(compare(number, limit) for number in given(each))

    return make


def _api(value: str) -> Callable[[Candidate], bool]:
    """Take a name and all that lies below it."""
    takes = _glob(value)
    return lambda each: any(takes(name) or name.startswith(f"{value}.") for name in each.apis)


def _path(value: str) -> Callable[[Candidate], bool]:
    takes = matcher([value])
    return lambda each: takes(each.path)


def _here(value: str) -> Callable[[Candidate], bool]:
    if value not in _VERDICTS:
        raise ConfigError(f"'{value}' does not become of a test", right=f"write {', '.join(_VERDICTS[:-1])} or {_VERDICTS[-1]}")
    return lambda each: verdict(each.test.requirements, facts()).word == value


def _world_sizes(each: Candidate) -> Iterator[int]:
    return (int(number) for value in each.values("world size") for number in _NUMBER.findall(value))


def _words(*kinds: str) -> Callable[[Candidate], Iterator[str]]:
    """Give the single words of what a test needs: `nccl or gloo` is two."""
    return lambda each: (word for value in each.values(*kinds) for word in value.replace(",", " or ").split(" or "))


def _needs(each: Candidate) -> Iterator[str]:
    for need in _flat(each.test.requirements):
        yield from (need.text, need.kind)


def _decorators(each: Candidate) -> Iterator[str]:
    for name in each.test.decorators:
        yield from (name, name.rpartition(".")[2])


FILTERS: Mapping[str, Filter] = {
    "gpus": Filter("N", "needs so many GPUs: 2, '>=2', '<4'; 0 for none", _number(lambda each: [fewest_gpus(each.test.requirements)])),
    "world-size": Filter("N", "runs with so many ranks: 4, '>2'", _number(_world_sizes)),
    "backend": Filter("NAME", "runs with this backend: nccl", _any_name(_words("backend"))),
    "device": Filter("NAME", "runs on this kind of device: cpu, xpu", _any_name(_words("device"))),
    "need": Filter(
        "TEXT", "has this need, as its page says it, or one of this kind: 'capability >= 9.0', 'peer access'", _any_name(_needs)
    ),
    "api": Filter("NAME", "reaches this name or one below it: torch.distributed.all_reduce", _api),
    "owner": Filter("NAME", "stands in a file of this owner: 'oncall: distributed'", _any_name(lambda each: each.owners)),
    "mark": Filter("NAME", "has this pytest mark: slow", _any_name(lambda each: each.test.marks)),
    "decorator": Filter("NAME", "has this decorator, or its class: skip_if_lt_x_gpu", _any_name(_decorators)),
    "harness": Filter("NAME", "is run by this harness: MultiProcessTestCase", _any_name(lambda each: [each.test.harness or ""])),
    "here": Filter("WORD", "runs on this machine, or is skipped, absent or unknown, as far as its needs tell", _here),
    "path": Filter("GLOB", "stands in a file that matches: 'test/distributed/**'", _path),
    "name": Filter(
        "GLOB", "has a node id, or a name, that matches: 'test_*barrier*'", _any_name(lambda each: [each.id, each.test.id, each.test.name])
    ),
}
"""Filters by name; each may be given several times and takes what one of its values takes."""


# Nouns, and how tests are counted by them

_Rows = Callable[[_Suite, list[Candidate], Question], Iterable[Row]]


class Noun(Struct, frozen=True):
    """Something that is asked for."""

    help: str
    columns: tuple[str, ...]
    """Headings of its table."""
    rows: _Rows


def _tests(suite: _Suite, chosen: list[Candidate], _question: Question) -> Iterator[Row]:
    for each in chosen:
        test = each.test
        facts = {
            "id": each.id,
            "path": suite.told(test.path),
            "line": test.line,
            "class": test.class_name,
            "harness": test.harness,
            "gpus": fewest_gpus(test.requirements),
            "needs": [_need(need, suite.told) for need in test.requirements],
            "owners": list(each.owners),
            "marks": list(test.marks),
            "decorators": list(test.decorators),
        }
        yield Row(each.id, (test.harness or "", ", ".join(each.needs)), facts)


def _need(need: Requirement, told: Callable[[str], str]) -> dict[str, object]:
    path = told(need.path)
    return {"kind": need.kind, "value": need.value, "text": need.text, "evidence": need.evidence, "path": path, "line": need.line}


def _files(_suite: _Suite, chosen: list[Candidate], _question: Question) -> Iterator[Row]:
    groups: dict[str, list[Candidate]] = {}
    for each in chosen:
        groups.setdefault(each.path, []).append(each)
    for path, tests in groups.items():
        most = max(fewest_gpus(each.test.requirements) for each in tests)
        facts = {"path": path, "tests": len(tests), "gpus": most, "owners": list(tests[0].owners)}
        yield Row(path, (str(len(tests)), str(most), ", ".join(tests[0].owners)), facts)


def _counted(given: Callable[[Candidate], Iterable[str]], label: str) -> _Rows:
    """Count tests, and the files that they stand in, by names that they have."""

    def rows(_suite: _Suite, chosen: list[Candidate], _question: Question) -> Iterator[Row]:
        tests: Counter[str] = Counter()
        files: defaultdict[str, set[str]] = defaultdict(set)
        for each in chosen:
            for name in dict.fromkeys(given(each)):
                tests[name] += 1
                files[name].add(each.path)
        for name in sorted(tests):
            facts = {label: name, "tests": tests[name], "files": len(files[name])}
            yield Row(name, (str(tests[name]), str(len(files[name]))), facts)

    return rows


def _apis(suite: _Suite, chosen: list[Candidate], question: Question) -> Iterable[Row]:
    def given(each: Candidate) -> Iterator[str]:
        return (name for name in each.apis if _is_under(name, question.under))

    return _counted(given, "name")(suite, chosen, question)


def _is_under(name: str, under: str) -> bool:
    return not under or name == under or name.startswith(f"{under}.")


def _untested(suite: _Suite, under: str) -> Iterator[Row]:
    if not suite.project.public:
        right = "name modules of the sources, or say by package-path where their packages lie"
        raise ConfigError(f"no public name of {under or 'the modules in the setting apis'} is known", right=right)
    names = mentioned(suite.project.surveys.values())
    for each in unmentioned(suite.project.public, names):
        if _is_under(each.name, under):
            path = suite.told(each.path)
            facts = {"name": each.name, "kind": each.kind, "path": path, "line": each.line}
            yield Row(each.name, (each.kind, f"{path}:{each.line}"), facts)


def _unfound(suite: _Suite, chosen: list[Candidate], _question: Question) -> Iterator[Row]:
    for each in chosen:
        assert each.unfound is not None
        one, path = each.unfound, suite.told(each.path)
        facts = {
            "id": each.id,
            "path": path,
            "line": one.line,
            "tests": one.tests,
            "why": one.says,
            "at": one.at,
            "owners": list(each.owners),
        }
        yield Row(each.id, (str(one.tests), one.says), facts)


UNFOUND = "unfound"
"""The noun that asks for what no filter on tests can choose."""
OF_FILES = ("path", "owner", "name")
"""Filters that can choose it."""

NOUNS: Mapping[str, Noun] = {
    "tests": Noun("The tests, with what each needs.", ("test", "harness", "needs"), _tests),
    "files": Noun("The files that hold them.", ("file", "tests", "gpus", "owners"), _files),
    "apis": Noun("The names that they reach, or that no test mentions.", ("name", "tests", "files"), _apis),
    "needs": Noun("What they need.", ("need", "tests", "files"), _counted(lambda each: each.needs, "need")),
    "owners": Noun("Who answers for them.", ("owner", "tests", "files"), _counted(lambda each: each.owners, "owner")),
    "marks": Noun("The pytest marks that they have.", ("mark", "tests", "files"), _counted(lambda each: each.test.marks, "mark")),
    "decorators": Noun(
        "What decorates them and their classes.", ("decorator", "tests", "files"), _counted(lambda each: each.test.decorators, "decorator")
    ),
    UNFOUND: Noun("Tests that pytest does not find, and why: nobody ever runs them.", ("test or class", "tests", "why"), _unfound),
}
"""What may be asked for; all but `tests` and `unfound` are counted over the tests that the filters choose."""
