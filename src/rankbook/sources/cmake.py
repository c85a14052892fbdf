"""The definitions of CMake scripts: commands one after another, each with its words in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from rankbook.model import Definition, Import, Keyword, Module, Source
from rankbook.sources import comments, outline

_TOKEN = re.compile(
    r"#\[(?P<hash>=*)\[.*?\](?P=hash)\]|(?P<comment>#[^\n]*)"
    r"|\[(?P<bracket>=*)\[(?P<raw>.*?)\](?P=bracket)\]"
    r'|"(?P<quoted>[^"\\]*(?:\\.[^"\\]*)*)"'
    r"|(?P<sign>[()])"
    r'|(?P<word>[^\s()#"\\]+(?:\\.[^\s()#"\\]*)*)',
    re.DOTALL,
)
_TARGET = re.compile(r"(?:\w+_)?add_(?:library|executable|custom_target|module)$|(?:torch_)?compile_(?:kernels|library)$")
_IMPORTS = frozenset({"include", "find_package", "add_subdirectory", "find_dependency"})
_OPENING = {"function": "endfunction", "macro": "endmacro"}
_MOST_COMMANDS = 50_000


class _Command(Struct, frozen=True):
    name: str
    """In lower case."""
    words: tuple[str, ...]
    line: int
    end_line: int
    comment: str
    """Comment right above it, as written."""


def read(_data: bytes, source: Source, text: str) -> Module:
    """Read a CMake script: its functions, macros, targets, options, variables, tests and what it includes."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    draft = _Draft()
    for command in _commands(text):
        draft.add(command)
    return Module(
        source,
        docstring=_leading_comment(text),
        imports=tuple(draft.imports),
        keywords=outline.keywords_of(draft.keywords),
        definitions=outline.definitions_of(draft.definitions[: outline.MOST_DEFINITIONS]),
    )


class _Draft:
    """What is gathered from the commands of one script."""

    def __init__(self) -> None:
        self.definitions: list[Definition] = []
        self.imports: list[Import] = []
        self.keywords: list[Keyword] = []
        self._open: list[int] = []
        self._variables: set[str] = set()

    def add(self, command: _Command) -> None:
        """Take one more command."""
        name, words = command.name, command.words
        if name in _OPENING.values():
            self._close(command)
        elif not words:
            return
        elif name in _OPENING:
            self._define(name, words[0], command)
            self._open.append(len(self.definitions) - 1)
        elif name in _IMPORTS:
            self.imports.append(Import(words[0], None, None, command.line))
            self.keywords.append(Keyword("import", words[0], command.line))
        elif name == "project" or _TARGET.match(name):
            self._define("project" if name == "project" else "target", words[0], command)
        elif name in ("option", "cmake_dependent_option"):
            self._define("option", words[0], command, words[1] if len(words) > 1 else "")
        elif name == "set":
            self._set(command)
        elif name == "add_test":
            self._define("test", words[1] if words[0] == "NAME" and len(words) > 1 else words[0], command)

    def _set(self, command: _Command) -> None:
        words = command.words
        if "CACHE" in words[1:]:
            place = words.index("CACHE", 1)
            self._define("option", words[0], command, words[place + 2] if len(words) > place + 2 else "")
        elif words[0].startswith("ENV{"):
            self._define("environment variable", words[0][4:].rstrip("}"), command)
        elif not self._open and words[0] not in self._variables:
            self._variables.add(words[0])
            self._define("variable", words[0], command)

    def _define(self, kind: str, name: str, command: _Command, said: str = "") -> None:
        docstring = said or comments.documentation(command.comment, marked=False)
        scope = self.definitions[self._open[-1]].qualname if self._open else ""
        qualname = f"{scope}.{name}" if scope else name
        self.definitions.append(Definition(kind, name, qualname, command.line, command.end_line, len(self._open), docstring or None))
        word = "target" if kind == "project" else outline.KEYWORDS[kind]
        self.keywords.append(Keyword(word, name, command.line, scope))

    def _close(self, command: _Command) -> None:
        if self._open:
            index = self._open.pop()
            self.definitions[index] = replace(self.definitions[index], end_line=command.end_line)


def _commands(text: str) -> Iterator[_Command]:
    """Cut a script into its commands."""
    name, words, depth, start = "", list[str](), 0, 0
    above: list[tuple[int, str]] = []
    line, position = 1, 0
    for count, match in enumerate(_TOKEN.finditer(text)):
        if count > _MOST_COMMANDS * 8:
            return
        line += text.count("\n", position, match.start())
        position = match.start()
        kind = match.lastgroup
        if kind == "comment" and depth == 0:
            above = [*above, (line, match[0])] if above and above[-1][0] == line - 1 else [(line, match[0])]
        elif match["sign"] == "(":
            depth += 1
        elif match["sign"] == ")" and depth:
            depth -= 1
            if depth == 0:
                yield _Command(name.lower(), tuple(words), start, line, _above(above, start))
                name, words, above = "", [], []
        elif depth and kind != "comment":
            words += [word for word in (match["word"], match["quoted"], match["raw"]) if word is not None]
        elif match["word"] is not None:
            name, start = match["word"], line


def _above(found: Iterable[tuple[int, str]], line: int) -> str:
    lines = list(found)
    return "\n".join(written for _, written in lines) if lines and lines[-1][0] == line - 1 else ""


def _leading_comment(text: str) -> str | None:
    """Give the comment that the script starts with, unless it stands right above a command."""
    for block in re.split(r"\n[ \t]*\n", text[:8000]):
        lines = block.strip("\n").split("\n")
        if not all(line.lstrip().startswith("#") for line in lines if line.strip()):
            return None
        said = comments.prose("\n".join(lines))
        if said:
            return said
    return None
