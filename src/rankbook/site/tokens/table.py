"""What a language's table of tokens is, and how it becomes one regular expression.

The expression passes over all that is no token at one go and stops only where a token begins: that is where its speed comes from. Every
repetition is possessive and every token takes at least one character, so that no text makes it go back: time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from msgspec import Struct, field

from rankbook.patterns import compiled

Written = Callable[[re.Match[str], str], str]
"""Writes a token: the match, of which the first group is the text passed over before it, and the token."""

ENTITY = r"&\w++;"
"""An escaped `<`, `>` or `&`: texts are escaped before they are looked at."""
NEWLINE = r"\n"
WORD = r"[^\W\d]\w*+"
NUMBER = r"0[xX][\da-fA-F_]++|0[bBoO][\d_]++|\d[\d_]*+(?:\.\d[\d_]*+|\.(?!\w|\.))?+(?:[eE][+-]?+\d[\d_]*+)?+[jJ]?+"

_ASCII = ((WORD, "[A-Za-z_][A-Za-z0-9_]*+"), (r"[^\w&", "[^A-Za-z0-9_&"), (r"(?!\w)", "(?![A-Za-z0-9_])"))
"""Parts of expressions, and what says the same of ASCII, for which no character has to be looked up."""


def double(quote: str, *, over_lines: bool = False) -> str:
    """Give the expression of a string between `quote`s with backslash escapes; one without an end ends with its line, or with the text."""
    return rf"{quote}(?>[^{quote}\\{'' if over_lines else chr(92) + 'n'}]++|\\.?+)*+{quote}?+"


_PLAIN = {
    "b": "k kd kn kp kr kt nd ni nl nt ow",
    "i": "cpf l s s1 s2 sb sc si ss",
    "u": "c c1 ch cm cs sd",
    "em": "il m mb mf mh mi mo",
    "var": "nb",
}
"""Elements that need no class: `<b>` is a keyword, `<i>` a string, `<u>` a comment, `<em>` a number, `<var>` a builtin. These are most of
all tokens; a word such as `not` is a keyword."""
_ELEMENT_OF = {name: element for element, names in _PLAIN.items() for name in names.split()}
UNCOLOURED = frozenset({"", "bp", "err", "esc", "kc", "n", "nx", "o", "p", "pm", "w", "x"})
"""Classes that say nothing of a text (`self` is a name like others), or to which themes give the colour of a name."""

ESCAPE = "k"
"""Class of an escape in a string: no keyword stands in there, so that `<b>` can be one."""


class _Tags(dict[str, tuple[str, str]]):
    """The start and the end of a token, by its class."""

    def __missing__(self, name: str) -> tuple[str, str]:
        self[name] = self._made(name)
        return self[name]

    def _made(self, name: str) -> tuple[str, str]:
        if name in UNCOLOURED:
            return "", ""
        element = _ELEMENT_OF.get(name)
        return (f"<{element}>", f"</{element}>") if element else (f"<i class={name}>", "</i>")


TAGS: Mapping[str, tuple[str, str]] = _Tags()


def tagged(name: str, token: str) -> str:
    """Put a token that lies on one line into its element.

    Args:
        name: its class.
        token: its escaped text.
    """
    start, end = TAGS[name]
    return f"{start}{token}{end}"


class Rule(Struct, frozen=True):
    """One kind of token."""

    name: str
    """Short class name of Pygments, which themes colour."""
    expression: str
    """What it looks like, in escaped text, without a numbered group."""
    written: Written | None = None
    """Writes it where it is more than one element."""
    groups: int = 0
    """Number of named groups inside of the expression, to which it refers back."""
    needs: str = ""
    """A character without which the token is one element after all."""


def escaped(text: str) -> str:
    """Escape what HTML reads as markup in a text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Table(Struct, frozen=True, dict=True):
    """The tokens of a language."""

    rules: tuple[Rule, ...]
    """Tokens that are no words of a fixed list, in the order in which they are tried."""
    starts: str
    """Characters with which one of them may begin, as inside of a character class; digits always may."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Words of a fixed list, apart by spaces, by their class."""
    stops: tuple[str, ...] = ()
    """Further expressions of words at which a token may begin: the prefix of a string, the name of a function."""
    after: str = r"(?<!\.)"
    """What must hold before a word of the list."""
    behind: str = r"(?!\w)"
    """What must hold behind it."""
    word: str = WORD
    """What a word looks like."""
    lines: str = ""
    """What a line looks like that begins with a token whose rule begins with `^`."""
    entity: str = ENTITY
    """The escaped characters that no token begins with."""
    flags: int = 0

    @cached_property
    def _expression(self) -> str:
        """What is passed over, then one group for each rule, a word, and any other character."""
        listed = [rf"{self.after}(?:{trie(self.classes)}){self.behind}"] if self.classes else []
        stops = "|".join([*listed, *self.stops])
        passed = rf"(?!{stops}){self.word}" if stops else self.word
        passed = rf"(?>[^\w&{self.starts}{NEWLINE if self.lines else ''}]++|{passed}{f'|{self.entity}' if self.entity else ''}"
        passed += rf"|\n(?!{self.lines}))*+" if self.lines else ")*+"
        passed = rf"(?!^(?:{self.lines})){passed}|" if self.lines else passed
        groups = "|".join(f"({rule.expression})" for rule in self.rules)
        return rf"({passed})(?:{groups}|({self.word})|\Z|(.))"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression."""
        return compiled(self._expression, re.DOTALL | re.MULTILINE | self.flags)

    @cached_property
    def ascii_pattern(self) -> re.Pattern[str]:
        """The same expression for texts of ASCII alone, which is quicker."""
        made = self._expression
        for general, plain in _ASCII:
            made = made.replace(general, plain)
        return compiled(made, re.DOTALL | re.MULTILINE | self.flags)

    @cached_property
    def classes(self) -> dict[str, str]:
        """The class of each word."""
        return {word: name for name, words in self.words.items() if name not in UNCOLOURED for word in words.split()}

    def spans(self, escaped: str) -> str:
        """Put each token into its element.

        Args:
            escaped: the text, with `<`, `>` and `&` escaped.
        """
        pattern = self.ascii_pattern if escaped.isascii() else self.pattern
        return pattern.sub(self._write, escaped)

    @cached_property
    def _write(self) -> Callable[[re.Match[str]], str]:
        rules = [Rule("", ""), Rule("", ""), *(rule for rule in self.rules for _ in range(1 + rule.groups))]
        kinds = [(rule.name, *TAGS[rule.name], rule.written, rule.needs) for rule in rules]
        last = len(kinds) - 1
        word = self._word

        def write(match: re.Match[str]) -> str:
            group = match.lastindex or 1
            if group > last:
                before, token = match.group(1, group)
                return before + word(token, token)
            if group == 1:
                return match[1]
            before, token = match.group(1, group)
            name, start, end, written, needs = kinds[group]
            if written is not None and needs in token:
                return before + written(match, token)
            if "\n" in token:
                return before + spanned(name, token)
            return f"{before}{start}{token}{end}"

        return write

    @property
    def _word(self) -> Callable[[str, str], str]:
        """Give what writes a word, with itself for one that is not of the list."""
        written = {word: tagged(name, word) for word, name in self.classes.items()}
        if not self.flags & re.IGNORECASE:
            return written.get
        tags = {word.lower(): TAGS[name] for word, name in self.classes.items()}

        def folded(word: str, _: str) -> str:
            start, end = tags.get(word.lower(), ("", ""))
            return f"{start}{word}{end}"

        return folded


def spanned(name: str, token: str) -> str:
    """Put a token into an element on each of its lines.

    Args:
        name: its class.
        token: its escaped text, which may be empty.
    """
    if "\n" not in token:
        return tagged(name, token) if token else ""
    start, end = TAGS[name]
    return "\n".join([f"{start}{line}{end}" if line else "" for line in token.split("\n")])


def nested(name: str, inner: str, pattern: re.Pattern[str], token: str) -> str:
    """Write a token that has parts of another class.

    Args:
        name: its class.
        inner: theirs.
        pattern: finds them, as its only group.
        token: its escaped text.
    """
    parts = pattern.split(token)
    parts[1::2] = [spanned(inner, part) for part in parts[1::2]]
    return spanned(name, "".join(parts))


def starts_line(match: re.Match[str]) -> bool:
    """Say whether nothing but blanks stands before the token on its line."""
    before = match[1]
    newline = before.rfind("\n")
    if newline < 0 and match.start() and match.string[match.start() - 1] != "\n":
        return False
    rest = before[newline + 1 :]
    return not rest or rest.isspace()


def trie(words: Iterable[str]) -> str:
    """Give an expression that matches any of the words and looks at each character once."""
    heads: dict[str, list[str]] = {}
    for word in sorted(words):
        heads.setdefault(word[:1], []).append(word[1:])
    optional = heads.pop("", None) is not None
    branches = [re.escape(head) + trie(rest) for head, rest in heads.items()]
    if len(branches) < 2 and not optional:
        return "".join(branches)  # a group in a group for each letter would take a regular expression thrice as long to compile
    if not branches:
        return ""
    return f"(?:{'|'.join(branches)}){'?+' if optional else ''}"
