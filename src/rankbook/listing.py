"""What is executed: frozen facts that the proof wing hands from room to room, and the two contracts that its rooms meet at.

`listings` makes a `Listing` from each fence of a page, `harness` a `Program` from a listing, `engines` an `Execution` from a program.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import asdict

from rankbook.embedding import Embedding, restore
from rankbook.requirements import Requirement

Event = dict[str, Any]
"""What a program says while it runs: a JSON object with the key `type`.

The first, but for `alive` while it waits for a port, is `began`: with the `engine` that really runs it, a `note` why, the `isolation` of
its ports, and the `node` of a cluster. When a node was lost, `again` says that the program starts anew. All others come from the program:
`item`, `start`, `report`, `finished`.
"""


SAME_RUN = "the same run as"
"""How the reason of a command begins whose run is that of its page's own source."""


class Outcome(enum.StrEnum):
    """The ways in which a listing ends; the first four are what its program says, the others are found from outside."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """It cannot run here; the reason says why."""
    NOT_CODE = "not code"
    """Declared as such: `text`, `{.no-run}`."""
    CRASHED = "crashed"
    """A process of it died by a signal or left by `os._exit`."""
    HUNG = "hung"
    """It had not ended within its timeout."""
    VACUOUS = "vacuous"
    """The harness called it passed, but no rank ran it."""
    DEGENERATE = "degenerate"
    """A test of several ranks that passed on one: nothing passed between ranks."""
    NOT_RUN = "not run"
    """Its harness gave it up because another test had failed before it."""
    PROVED = "proved earlier"
    """Not run again, because the ledger has a run of the same listing that passed."""

    @property
    def is_failure(self) -> bool:
        """Whether the book is wrong about it."""
        return self in (Outcome.FAILED, Outcome.CRASHED, Outcome.HUNG)

    @property
    def is_skip(self) -> bool:
        """Whether pytest shows it as skipped: neither green nor red."""
        return self in (Outcome.SKIPPED, Outcome.VACUOUS, Outcome.DEGENERATE, Outcome.NOT_RUN, Outcome.PROVED)


class RankEnd(Struct, frozen=True):
    """How one rank, a process or a thread, ended."""

    name: str
    """`rank 1`."""
    exit_code: int | None = 0
    """Exit status: negative for a signal, None for one that was alive when its program was ended."""
    started: float = 0.0
    """Seconds after the start of the program's main process."""
    duration: float = 0.0
    """Seconds that it lived."""
    entered: float | None = None
    """Seconds after the start of the program's main process at which it entered the test's body; None when that is not known."""
    doing: str = ""
    """What it was doing when the program was ended: `waits in all_reduce (train.py:12)`."""
    called: str = ""
    """Function of torch.distributed that it has called last, and where: `all_reduce (train.py:12)`; empty when that is not known."""
    called_at: float | None = None
    """Seconds after the start of the program's main process at which it has called that."""

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object that leaves out what is not known."""
        return {key: value for key, value in asdict(self).items() if key not in ("entered", "doing", "called", "called_at") or value}


class Receipt(Struct, frozen=True):
    """The evidence that a run leaves behind."""

    ranks: tuple[RankEnd, ...] = ()
    world_size: int | None = None
    """Of the largest process group that its ranks made, or that its harness names; None when it made none."""
    backend: str = ""
    """Of its process groups: `gloo`; several with a comma."""
    device: str = ""
    """Kind of device that its ranks used: `cpu`, `cuda`."""
    gpus: tuple[str, ...] = ()
    """GPUs granted to it: `0: NVIDIA H200`."""
    seed: int | None = None
    """Seed of torch's default generator when it ended; None without torch."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of `python`, `torch`, `cuda`, `nccl`, as far as they are there."""
    engine: str = ""
    """Engine that really ran it."""
    note: str = ""
    """Why that is another one than was asked for."""
    isolation: str = ""
    """How its ports were kept apart from those of others: `network namespace`, `port lease`; empty when they were not."""
    node: str = ""
    """Node of a cluster that it ran on."""

    def as_json(self) -> dict[str, Any]:
        """Give it as a JSON object that leaves out what is empty."""
        found = asdict(self) | {"ranks": tuple(rank.as_json() for rank in self.ranks)}
        return {key: value for key, value in found.items() if value not in ((), "", None, {})}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Receipt:
        """Read it from a JSON object; what a newer version has added is passed over."""
        known = set(cls.__struct_fields__)
        found: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items() if key in known}
        parts = set(RankEnd.__struct_fields__)
        ranks = found.get("ranks", ())
        found["ranks"] = tuple(RankEnd(**{key: value for key, value in dict(rank).items() if key in parts}) for rank in ranks)
        return cls(**found)


class About(Struct, frozen=True):
    """The source file that a page, and its listing under `Original Source`, is about."""

    source: str
    """Path below the root of the sources, with `/`."""
    size: int | None = None
    """Bytes that the page says it has."""
    embedding: Embedding | None = None
    """From the page's front matter; None on a page that another generator made."""
    needs: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    """What its tests need, by node id, as the page's front matter says it: see `rankbook.needs`."""


class ExpectedOutput(Struct, frozen=True):
    """An output fence: what the listing above it prints."""

    rank: str
    """Rank that prints it; empty for what all processes of the listing print, in rank order."""
    text: str
    """As it stands on the page, with the page's own line ends."""
    line: int
    """Line of its opening fence on the page."""
    first_line: int
    """Line of the first line of its text on the page."""
    lines: tuple[int, ...] = ()
    """Line on the page of each line of its text, where not all of them stand there: what a snippet brings in has its line."""


class Listing(Struct, frozen=True):
    """One fence that the site renders as a listing, at its exact place."""

    page: str
    """Path of the page, as the user names it."""
    name: str
    """Unique on the page: a part of the node id."""
    language: str
    """As written, lower case; empty when the fence names none."""
    options: Mapping[str, str]
    """Options of the fence, as written: `{"ranks": "2"}`; a class such as `.no-run` is `{"no-run": ""}`."""
    text: str
    """Exactly the listing's text, with the page's own line ends."""
    line: int
    """Line of the opening fence on the page."""
    first_line: int
    """Line of the first line of the text on the page."""
    about: About | None = None
    """The source file that the listing shows whole; None for a listing of a hand-written page."""
    children: tuple[Listing, ...] = ()
    """Listings inside a Markdown file that this listing shows; their lines are lines of the page too."""
    problem: str | None = None
    """Why the page is wrong here, as a sentence; such a listing fails."""
    heading: str = ""
    """Text of the nearest heading above it."""
    refused: bool = False
    """Whether the site shows it as text, because it does not take its opening line; that is its problem."""
    custom: bool = False
    """Whether the site renders it by a formatter of its own, as a diagram, say, and its language is none that is run: it is not code."""
    hidden: tuple[tuple[int, str], ...] = ()
    """Lines above it that run first and that the site does not show: their place on the page, and their text with its line end."""
    outputs: tuple[ExpectedOutput, ...] = ()
    """What it is to print, by the output fences below it."""
    output_of: int = 0
    """For an output fence, the line of the listing that it belongs to; 0 for all others."""
    lines: tuple[int, ...] = ()
    """Line on the page of each line of its text, where not all of them stand there: what a snippet brings in has its line."""

    @property
    def lines_above(self) -> int:
        """Lines of its file above its text: the hidden ones, and what stands between."""
        return self.first_line - 1 - self.hidden[-1][0] + len(self.hidden) if self.hidden else 0

    def page_line(self, line: int) -> int:
        """Give the line of the page at which a line of its file stands."""
        if 0 < line <= len(self.hidden):
            return self.hidden[line - 1][0]
        place = line - 1 - self.lines_above
        return self.lines[min(place, len(self.lines) - 1)] if self.lines and place >= 0 else self.first_line + place

    def data(self) -> bytes:
        """Bytes of the file that the listing stands for; one that is no source has the line ends that the site shows."""
        if self.hidden:
            between = "\n" * (self.first_line - self.hidden[-1][0] - 1)
            return _as_shown("".join(text for _, text in self.hidden) + between + self.text)
        if self.about is None:
            return _as_shown(self.text)
        if self.about.embedding is not None:
            return restore(self.text, self.about.embedding)
        text = self.text
        if self.about.size == len(text.encode()) - 1:
            text = text[:-1]
        return text.encode()


def _as_shown(text: str) -> bytes:
    """Give a text with the line ends that Markdown makes of those of a page."""
    return text.replace("\r\n", "\n").replace("\r", "\n").encode()


class Program(Struct, frozen=True):
    """What an engine runs: plain data, so that it can travel to another process or machine."""

    name: str
    """Node id of the listing, for messages."""
    entry: str
    """Function that runs it, as `package.module:function`: called in the main process with `(program, runtime)`, gives an exit status."""
    root: str
    """Mirror tree: working directory, and what paths of the program start from."""
    path: str
    """File of the listing, below `root`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What else the entry wants; JSON values only."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for it, on top of the caller's."""
    timeout: float = 300.0
    """Seconds without an event after which it counts as hung."""
    preload: bool = True
    """Whether it gains from a process that has imported what it may import."""
    torch: bool = True
    """Whether torch is of that."""
    harnesses: bool = True
    """Whether torch's own test harnesses are of that too."""
    gpus: tuple[str, ...] | None = None
    """GPUs that it may use, as `CUDA_VISIBLE_DEVICES` names them; None leaves that variable as the caller has it."""
    fresh: str = ""
    """Why it must be run by new interpreters, as a clause; empty when it need not."""
    taken: tuple[str, ...] = ()
    """Dotted names that it takes from packages by attributes and imports nowhere; whether they are modules an engine knows."""
    imports_first: tuple[str, ...] = ()
    """Folders in which its imports are looked up before those of the interpreter."""
    imports_last: tuple[str, ...] = ()
    """Folders in which they are looked up behind those."""


class RankRecord(Struct):
    """A rank that the program's main process has started (a child process through `multiprocessing`)."""

    name: str
    """Its process name: `process 0`."""
    pid: int | None
    output: str | None
    """File that holds what it wrote; None when it wrote to its parent's streams."""
    exit_code: Callable[[], int | None]
    """Exit status so far: None while it lives, negative for a signal."""
    ended: Callable[[], float | None]
    """When it was seen to end, on the machine's monotonic clock; None when it lives or only the main process has seen it."""


class Runtime(Protocol):
    """What an engine gives a program's entry while it runs in the main process of the listing."""

    def emit(self, event: Event) -> None:
        """Report an event at once; it also says that the program is alive."""

    def pardon(self, pid: int | None) -> None:
        """Say that the death of a rank is expected: of the one with this process id, or of any rank that runs now when it is None."""

    def show(self, pid: int) -> None:
        """Have a process of the program write its stacks, and wait until they are among the output."""

    @property
    def ranks(self) -> list[RankRecord]:
        """All ranks started so far, oldest first."""


class Ended(Struct, frozen=True):
    """How a program's processes ended, as seen from outside."""

    exit_code: int | None
    """Of the main process: negative for a signal; None when the supervisor itself was lost."""
    hung: bool = False
    """Whether it was ended because it had not ended within its timeout."""
    duration: float = 0.0
    """Seconds."""
    output: str = ""
    """What the main process wrote outside its own captures, head and tail, and the stacks of a hung program."""
    left: tuple[str, ...] = ()
    """Command lines of processes that were still alive when the main process had ended; they were killed."""
    engine: str = ""
    note: str = ""
    """Why another engine than the one asked for ran it; empty when it did not."""
    ranks: tuple[RankEnd, ...] = ()
    """Its ranks, in the order of their starts."""
    death: RankEnd | None = None
    """Rank after whose death the program was ended, because others waited for it in vain."""
    waiting: tuple[str, ...] = ()
    """What each process was doing when the program was ended: `rank 0 waits in all_reduce (train.py:12)`."""
    isolation: str = ""
    """How its ports were kept apart from those of other programs; empty when they were not."""


class Execution(Protocol):
    """A program under way."""

    def events(self) -> Iterator[Event]:
        """Yield the program's events as they come; ends when all its processes have ended."""

    @property
    def ended(self) -> Ended:
        """How it ended; only after `events` is exhausted or `stop` was called."""

    def stop(self) -> None:
        """End all its processes now."""


class Engine(Protocol):
    """Where programs run."""

    name: str

    def start(self, program: Program) -> Execution:
        """Start a program.

        Raises:
            EngineError: no process could be started.
        """

    def close(self) -> None:
        """End everything that the engine has started."""


class Run(Struct, frozen=True):
    """One outcome as the ledger keeps it."""

    page: str
    node_id: str
    listing: str
    """SHA-256 of the listing, with its options, expected outputs and session where it has any."""
    source: str
    """Source that the listing shows; empty for a hand-written page."""
    line: int
    kind: str
    """`test`, `script`, `session`, `shell`, `data`, `import`."""
    outcome: Outcome
    reason: str = ""
    duration: float = 0.0
    """Seconds."""
    ranks: int = 0
    """Ranks that ran."""
    when: str = ""
    """UTC, ISO 8601."""
    machine: str = ""
    """`2 × NVIDIA H200`, `CPU, 2 cores`."""
    engine: str = ""
    torch: str = ""
    commit: str = ""
    receipt: Receipt = field(default_factory=Receipt)
    modules: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file of the tree that it was run beside, by path: what it imports and names."""
    needs: tuple[str, ...] = ()
    """What it needs, as its page says it: `2 GPUs`, `backend nccl`; what it lacked, for one that was skipped without a page's word."""
    case: Mapping[str, Any] = field(default_factory=dict)
    """What pytest has collected of a test: `id`, `line`, `marks`; empty for a whole listing."""


class Gone(Struct, frozen=True):
    """What is found on a page no more."""

    nodes: frozenset[str] = frozenset()
    """Node ids."""
    listings: frozenset[str] = frozenset()
    """SHA-256 of the listings in which they were looked for last: of another text nobody knows."""
