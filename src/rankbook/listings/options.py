"""The options that a fence may carry: one row each."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rankbook.languages import LANGUAGES, by_fence
from rankbook.terminal import STEERING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME_BREAKS = re.compile(rf"::|[\[\]/\\\s]|{STEERING.pattern}")
_HIGHLIGHTED = re.compile(r"\d+(?:-\d+)?(?:[ \t]+\d+(?:-\d+)?)*")
_NUMBER = re.compile(r"[0-9]+")
_BACKEND = re.compile(r"[a-z][a-z0-9_]*(?::[a-z0-9_]+(?:,[a-z]+:[a-z0-9_]+)*)?")
_RAISES = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:: .+)?", re.DOTALL)
_NAMES = re.compile(r"[^\W\d]\w*(?:[ ]*,[ ]*[^\W\d]\w*)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Option(Struct, frozen=True):
    """One option of a fence."""

    name: str
    meaning: str
    """What it does, as a clause."""
    check: Callable[[str], str | None]
    """What is wrong with a value, as the end of the sentence `option 'ranks' ...`; None for a right one."""
    form: Literal["key", "class"] = "key"
    """Whether it is written `{ranks=2}` or `{.no-run}`."""
    languages: frozenset[str] | None = None
    """Canonical languages on which it has a meaning; None for all."""
    beside: str = ""
    """Option without which it has no meaning."""
    against: frozenset[str] = frozenset()
    """Options beside which it has none."""

    @property
    def written(self) -> str:
        """How a sentence names it."""
        return f".{self.name}" if self.form == "class" else self.name


def _any(_value: str) -> str | None:
    return None


def _ranks(value: str) -> str | None:
    counts = [part.strip() for part in value.split(",")]
    if all(count.isascii() and count.isdigit() and int(count) > 0 for count in counts):
        return None
    return f"""is '{value}'; write a number of ranks above 0, or several: ranks=2, ranks="2,4\""""


def _gpus(value: str) -> str | None:
    right = _NUMBER.fullmatch(value) is not None and int(value) > 0
    return None if right else f"is '{value}'; write a number of GPUs above 0: gpus=2"


def _rank(value: str) -> str | None:
    return None if _NUMBER.fullmatch(value) else f"is '{value}'; write the number of a rank: rank=0"


def _backend(value: str) -> str | None:
    return None if _BACKEND.fullmatch(value) else f"is '{value}'; write a backend of torch.distributed: backend=gloo"


def _init(value: str) -> str | None:
    return None if value == "true" else f"is '{value}'; write init=true, or leave it away"


def _raises(value: str) -> str | None:
    if _RAISES.fullmatch(value):
        return None
    return f"""is '{value}'; write an exception, or one with a part of its message: raises=ValueError, raises="ValueError: too small\""""


def _session(value: str) -> str | None:
    return _name(value)


def _fixtures(value: str) -> str | None:
    return None if _NAMES.fullmatch(value) else f"""is '{value}'; write names of fixtures: fixtures=tmp_path, fixtures="tmp_path,capsys\""""


def _engine(value: str) -> str | None:
    return None if value == "fresh" else f"is '{value}'; a listing can only ask for new interpreters: engine=fresh"


def _timeout(value: str) -> str | None:
    right = re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", value) is not None and 0 < float(value) < float("inf")
    return None if right else f"is '{value}'; write a number of seconds above 0: timeout=60"


def _reason(value: str) -> str | None:
    return None if value.strip() else 'gives no reason; write why the listing is not run: skip="needs InfiniBand"'


def _name(value: str) -> str | None:
    if not value:
        return "is empty; write a name that can stand in a node id, such as first-step"
    found = _NAME_BREAKS.search(value)
    return f"holds '{found[0]}', which a node id cannot hold; write a name such as first-step" if found else None


def _line_numbers(value: str) -> str | None:
    return None if re.match(r"\d+", value) else f"is '{value}'; write the number of the first line: linenums=\"1\""


def _highlighted(value: str) -> str | None:
    return None if _HIGHLIGHTED.fullmatch(value) else f"is '{value}'; write lines and ranges: hl_lines=\"2 4-6\""


def _title_mode(value: str) -> str | None:
    return None if value in ("text", "html") else f"is '{value}'; write title_mode=text or title_mode=html"


_PYTHON = frozenset({"python"})
_IN_SESSIONS = frozenset({"python", "pycon"})
ENVIRONMENT = "env."
"""What the name of an option begins with that sets a variable of the environment."""

OPTIONS: tuple[Option, ...] = (
    Option("ranks", "runs the listing on that many ranks, once for each number given", _ranks, languages=_PYTHON),
    Option(
        "init", "makes a process group for the ranks before the listing and destroys it after", _init, languages=_PYTHON, beside="ranks"
    ),
    Option("backend", "backend of that process group", _backend, languages=_PYTHON, beside="init"),
    Option("gpus", "GPUs that the listing needs", _gpus),
    Option("share", "lets other listings use the same GPUs", _any, form="class", beside="gpus"),
    Option("timeout", "seconds that the listing, or one test of it, may take", _timeout),
    Option("raises", "passes the listing only when that exception leaves it", _raises, languages=_PYTHON),
    Option(
        "session",
        "runs the listings of the page with the same name in one process",
        _session,
        languages=_IN_SESSIONS,
        against=frozenset({"ranks"}),
    ),
    Option(
        "fixtures", "gives fixtures of pytest to the listing, under their names", _fixtures, languages=_PYTHON, against=frozenset({"ranks"})
    ),
    Option("engine", "asks for new interpreters", _engine),
    Option("output", "declares that the fence shows what the listing above it prints", _any, form="class"),
    Option("rank", "says which rank prints it", _rank, beside="output"),
    Option("no-run", "declares that the listing is not to be run", _any, form="class"),
    Option("skip", "skips the listing for the reason given", _reason),
    Option("name", "names the listing, for its node id", _name),
    Option("id", "gives the listing an anchor on the site", _any),
    Option("title", "shows a title above the listing", _any),
    Option("title_mode", "says whether the title is text or HTML", _title_mode),
    Option("linenums", "shows line numbers, from the number given", _line_numbers),
    Option("hl_lines", "highlights lines", _highlighted),
)
"""All options, besides `env.NAME`, which sets a variable of the environment; `data-*` attributes and other classes are for the site's
style and may stand beside them."""

_KEYS: Mapping[str, Option] = {option.name: option for option in OPTIONS if option.form == "key"}
_CLASSES: Mapping[str, Option] = {option.name: option for option in OPTIONS if option.form == "class"}


def is_name(value: str) -> bool:
    """Tell whether a text can be a listing's name, a part of a node id."""
    return _name(value) is None


def as_name(text: str) -> str:
    """Turn a text into one that can be a listing's name."""
    return _NAME_BREAKS.sub("-", text) or "listing"


def is_option(name: str, language: str) -> bool:
    """Tell whether a word on a fence is an option that has a meaning on its language.

    Args:
        name: a key, or a class.
        language: the word that the fence carries.
    """
    option, known = _KEYS.get(name) or _CLASSES.get(name), by_fence(language)
    if option is None:
        return name.startswith(ENVIRONMENT)
    return option.languages is None or (known is not None and known.name in option.languages)


def problem_of(classes: tuple[str, ...], values: Mapping[str, str | None], language: str) -> str | None:
    """Say what is wrong with the language and the options of a listing.

    Args:
        classes: its classes, without the one that is the language.
        values: its keys and their values.
        language: the language, empty when there is none.

    Returns:
        A sentence, or None.
    """
    written = {*classes, *values}
    problems = (
        _language(language),
        *(_misplaced_class(name) for name in classes),
        *(_value(key, value, language) for key, value in values.items()),
        *(_company(option, written) for option in OPTIONS if option.name in written),
    )
    return next(filter(None, problems), None)


def environment(options: Mapping[str, str]) -> dict[str, str]:
    """Give the variables of the environment that the options of a listing set."""
    return {key.removeprefix(ENVIRONMENT): value for key, value in options.items() if key.startswith(ENVIRONMENT)}


def _language(word: str) -> str | None:
    if not word:
        return "this listing names no language; write `text` when it is not code"
    if by_fence(word) is not None:
        return None
    near = difflib.get_close_matches(word.lower(), sorted({word for row in LANGUAGES for word in row.fences}), 1)
    return f"unknown language '{word}'; " + (f"did you mean '{near[0]}'? write" if near else "write") + " `text` when it is not code"


def _misplaced_class(name: str) -> str | None:
    if name in _KEYS and _KEYS[name].check is not _any:
        return f"option '{name}' is written as a class; write {name}=value instead of .{name}"
    near = next((known for known in _CLASSES if name not in _CLASSES and _letters(name) == _letters(known)), None)
    return f"class '.{name}' is nearly an option; write .{near}, or give the class another name" if near else None


def _letters(name: str) -> str:
    """Give what is left of a name without marks, in small letters: `No_Run` and `norun` are read as `no-run`."""
    return re.sub(r"[\W_]", "", name).lower()


def _company(option: Option, written: set[str]) -> str | None:
    """Say what an option lacks beside it, or beside which it cannot stand."""
    if option.beside and option.beside not in written:
        other = next(entry for entry in OPTIONS if entry.name == option.beside)
        near = "; did you mean 'ranks'?" if option.name == "rank" else ""
        return f"option '{option.written}' has a meaning beside '{other.written}' only{near}"
    wrong = next((name for name in sorted(option.against) if name in written), None)
    return f"options '{option.written}' and '{wrong}' cannot stand together; take one of them away" if wrong else None


def _value(key: str, value: str | None, language: str) -> str | None:
    if key.startswith("data-"):
        return None
    if key.startswith(ENVIRONMENT):
        return _variable(key.removeprefix(ENVIRONMENT), value)
    if key in _CLASSES:
        return f"option '{key}' is a class; write .{key}"
    option = _KEYS.get(key)
    if option is None:
        return _unknown(key)
    row = by_fence(language)
    if option.languages is not None and row is not None and row.name not in option.languages:
        return f"option '{key}' has no meaning on a {language} listing; it belongs on {' or '.join(sorted(option.languages))} listings"
    wrong = option.check(value or "")
    return f"option '{key}' {wrong}" if wrong else None


def _variable(name: str, value: str | None) -> str | None:
    if not _VARIABLE.fullmatch(name):
        return f"option '{ENVIRONMENT}{name}' names no variable; write {ENVIRONMENT}NAME=value"
    return f"option '{ENVIRONMENT}{name}' has no value; write {ENVIRONMENT}{name}=value" if value is None else None


def _unknown(key: str) -> str:
    known = [*_KEYS, f"{ENVIRONMENT}NAME", *(f".{name}" for name in _CLASSES)]
    near = difflib.get_close_matches(key, known, 1)
    hint = f"did you mean '{near[0]}'? known are" if near else "known are"
    return f"unknown option '{key}'; {hint} {', '.join(known)}"
