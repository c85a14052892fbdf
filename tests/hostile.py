"""Hostile trees of sources, each with a tame twin of the same shape; runs that say anything; and real files into which anything was put."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rankbook.listing import Outcome, RankEnd, Receipt, Run

CANARY = "zq"
"""Begins every hostile text, so that it is known again wherever it comes out."""
PIECES = (
    "<script>window.zq=1</script>",
    "</script><script>zq()</script>",
    '"><img src=x onerror=zq()>',
    "'><svg/onload=zq()>",
    "</code></pre></div><h2>zq</h2>",
    "</td></tr></table><h1>zq</h1>",
    "<div onclick='zq()'>",
    "<iframe src=//zq.example>",
    "<a href=javascript:zq()>zq</a>",
    "<style>*{display:none}</style>",
    "<!-- rankbook:last-run -->",
    "<!-- rankbook:proof -->",
    "<!-- rankbook-notes zq -->",
    "<!--",
    "-->",
    "--><b>zq</b>",
    "<![CDATA[ zq ]]>",
    "<?php zq ?>",
    "<br>",
    "<code>zq</code>",
    "<!-- hide -->",
    "[zq](javascript:zq())",
    "[zq](data:text/html,zq)",
    "[zq](VBSCRIPT:zq)",
    "[zq](java&#115;cript:zq())",
    "[zq](//zq.example/)",
    "![zq](http://zq.example/p.png)",
    "[zq][zq]",
    "[zq]: http://zq.example",
    "[^zq]: note",
    "[[zq]]",
    "*[zq]: abbreviation",
    "<http://zq.example>",
    "<zq@example.org>",
    "http://zq.example/",
    "www.zq.example",
    "zq@example.org",
    "](http://zq.example)",
    "`zq`",
    "``",
    "`",
    "```",
    "```python",
    "```` {#source}",
    "~~~",
    "# zq",
    "## zq {#zq onclick=zq()}",
    "{: onclick=zq() }",
    "{ #zq .zq onclick='zq()' }",
    "{{ zq.__class__ }}",
    "{% raw %}{{ zq }}",
    "{# zq #}",
    "${{ github.token }}",
    "$(touch zq)",
    "`touch zq`",
    "; touch zq #",
    "&& touch zq",
    "| zq | zq |",
    "|---|---|",
    "| a",
    "\\|",
    "\\",
    "- zq",
    "* zq",
    "1. zq",
    "> zq",
    "---",
    "===",
    "!!! danger",
    "??? zq",
    '=== "zq"',
    ":::zq",
    ": zq",
    ":smile:",
    "~~zq~~",
    "==zq==",
    "++zq++",
    "^^zq^^",
    "**zq**",
    "__zq__",
    "_zq_",
    "*zq",
    "$$zq$$",
    '--8<-- "zq"',
    "&lt;script&gt;",
    "&#60;b&#62;",
    "&amp;",
    "&",
    "&#",
    "&#x",
    "&zq",
    "<div",
    "</",
    "<!-",
    '<a b="',
    "<plaintext>",
    "<textarea>",
    "<",
    ">",
    '"',
    "'",
    "%3Cscript%3E",
    "%s%n{0}{x}",
    "a\n\n# zq\n\nb",
    "a\n\n```\nzq\n```\n",
    "a\n\n| zq | zq |\n|---|---|\n| zq | zq |\n",
    "a\n---\nzq: 1\n---\n",
    "a\r\rb",
    "\u2028# zq",
    "\x0c# zq",
    "\x0b- zq",
    "\x85# zq",
    "\x1b[31mzq\x1b]0;zq\x07",
    "\x9b31mzq",
    "\u202ezq\u202c",
    "\u2066zq\u2069",
    "\u200bzq\ufeff",
    "\x00",
    "\x02klzzwxh:0000\x03",
    "\x02wzxhzdk:0\x03",
    "\ufdd0script>zq\ufdd0/script>",
    "\ufdd0code>zq\ufdd0/code>",
    "\ufdd0listing 0>",
    "\ufdd1content\ufdd1",
    "\ufffe\uffff",
    "\ud800",
    "\U0001f4a3",
    "ﬁ№ Ⅳ",
    "x" * 300,
    "[" * 60,
    "*_" * 60,
    "<b>" * 30,
    "(" * 60 + ")" * 60,
)
"""What a hostile text may hold."""
_SHAPE = re.compile(r"((?:[<>=!]=|[<>]) ?\d)|[^\s.!?]")
_END = re.compile(r"\r\n|\n|\r")


def tame(text: str) -> str:
    """Give a harmless text of the same shape: as long, with the same spaces, ends of sentences and bounds of versions (`<1`)."""
    return _SHAPE.sub(lambda match: match[1] or "x", text)


# Trees


class Words:
    """Texts for a tree: hostile ones, or their tame twins.

    Args:
        random: where the choices come from; it is asked for the same whatever is made.
        hostile: whether texts are to be hostile.
    """

    def __init__(self, choose: random.Random, *, hostile: bool) -> None:
        self.choose = choose
        self.hostile = hostile
        self.count = 0

    def text(self, *, most: int = 3, lines: bool = True) -> str:
        """Give a text."""
        self.count += 1
        pieces = [self.choose.choice(PIECES) for _ in range(self.choose.randint(1, most))]
        head = f"{CANARY}{self.count}" + self.choose.choice((" ", "", "\n\n" if lines else " "))
        piece = self.choose.choice((" ", "")).join(pieces)
        piece = piece if lines else " ".join(piece.split())
        return head + (piece if self.hostile else tame(piece))

    def bare(self) -> str:
        """Give a text on one line that does not begin with the canary."""
        self.count += 1
        piece = " ".join(self.choose.choice(PIECES).split()) or "x"
        end = f" {CANARY}{self.count}"
        return (piece if self.hostile else tame(piece)) + end

    def name(self) -> str:
        """Give a part of a path; one that is hostile may begin with a dash."""
        self.count += 1
        piece = "".join(self.choose.choice(PIECES) for _ in range(self.choose.randint(1, 2)))
        piece = _encodable(piece).replace("/", "").replace("\0", "")[:48].rstrip(". ")
        start = self.choose.choice(("", "", "", "-", "--", "."))
        end = f"{CANARY}{self.count}"
        return f"{start if self.hostile else ''}{end}{piece}" if self.hostile else f"{end}{tame(piece)}"

    def literal(self) -> str:
        """Give a text as a Python literal."""
        text = self.text()
        if self.choose.random() < 0.5:
            return repr(text)
        written = text.replace("\\", "\\\\").replace('"', '\\"')
        return '"""' + "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in written) + '"""'

    def one(self) -> str:
        """Give a text on one line."""
        return self.text(lines=False)

    def maybe(self, make: Callable[[], str], share: float = 0.5) -> str:
        """Give what is made, or nothing."""
        made = make()
        return made if self.choose.random() < share else ""


def _encodable(text: str) -> str:
    return text.encode(errors="ignore").decode()


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())


_QUOTES = re.compile(r"""[][\\"']""")


def _python(words: Words) -> str:
    one, literal = words.one, words.literal
    quoted = [literal() for _ in range(14)]
    return f"""\
# Owner(s): ["{_printable(_QUOTES.sub("", one()))}", "oncall: {words.count}"]
# {_printable(one())}
{literal()}
import argparse
import os
import unittest

import pytest
import torch
import torch.distributed as dist
{words.maybe(lambda: f"importlib.import_module({quoted[0]})")}

NAME = {quoted[1]}
OTHER: {quoted[2]} = os.environ.get({quoted[3]}, {literal()})
pytest.importorskip({quoted[4]}, reason={literal()})


class TestFirst{words.count}(unittest.TestCase):
    {literal()}

    @unittest.skipIf(os.environ[{quoted[5]}] == {quoted[6]}, {literal()})
    @unittest.skipIf(torch.cuda.device_count() < 2, {literal()})
    def test_one(self, x={quoted[7]}):
        {literal()}
        dist.all_reduce(x, {quoted[8]})
        torch.linalg.norm({quoted[9]})

    @unittest.skip({literal()})
    def test_two(self): pass


@pytest.mark.parametrize("y", [{quoted[11]}, {literal()}], ids=[{quoted[12]}, {literal()}])
@pytest.mark.parametrize("x", [{literal()}, 2])
@pytest.mark.skipif({quoted[13]} in os.environ, reason={literal()})
@pytest.mark.slow({literal()})
def test_three(x, y={literal()}) -> {literal()}:
    {literal()}
    raise ValueError({literal()})


def helper(*, a: {literal()} = {literal()}):
    {literal()}
    # {_printable(one())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description={literal()})
    parser.add_argument({literal()}, help={literal()})
    unittest.main()
"""


def _markdown(words: Words) -> str:
    body = "\n\n".join(words.choose.choice((words.text, words.bare, words.one))() for _ in range(8))
    return (
        f"# {words.one()}\n\n{words.bare()}\n\n## {words.bare()}\n\n- {words.one()}\n\n{body}\n\n"
        f"```python\n{words.one()}\n```\n\n{words.bare()}\n===\n\n{words.text()}\n"
    )


def _shell(words: Words) -> str:
    return (
        f"#!/bin/bash\n# {words.one()}\nexport {words.one()}=1\n{words.one()}() {{ :; }}\nfunction f {words.one()}\nsource {words.one()}\n"
    )


def _cpp(words: Words) -> str:
    one = words.one
    return (
        f"// {one()}\n/* {one()} */\n#include <{one()}>\n#define {one()} 1\nTEST(A, {one()}) {{ }}\nnamespace {one()} {{ class B; }}\n"
        f"/// {one()}\n__global__ void f(int {one()}) {{}}\nstruct C : {one()} {{}};\n"
        f"int operator<({one()});\ntemplate <{one()}> void g();\n"
    )


def _cmake(words: Words) -> str:
    one = words.one
    quoted = [json.dumps(one()) for _ in range(4)]
    tests = f"add_executable({quoted[0]} a.cpp)\nadd_test(NAME {quoted[1]} COMMAND {quoted[2]})\n"
    return f"# {one()}\n{tests}option({quoted[3]} {one()})\ninclude({one()})\n"


def _toml(words: Words) -> str:
    return (
        f"# {words.one()}\n[{json.dumps(_encodable(words.one()))}]\n{json.dumps(words.one())} = {json.dumps(words.one())}\n{words.one()}\n"
    )


def _yaml(words: Words) -> str:
    return (
        f"# {words.one()}\n{json.dumps(words.one())}: {json.dumps(words.one())}\n{words.one()}:\n  - {words.bare()}\n&a {words.one()}: *a\n"
    )


def _json(words: Words) -> str:
    return json.dumps({words.text(): {words.one(): [words.text()]}, words.text(): 1}, indent=1)


def _javascript(words: Words) -> str:
    one = words.one
    return (
        f"// {one()}\nimport x from {json.dumps(one())};\nexport class A extends {one()} {{}}\nfunction {one()}() {{}}\n"
        f"test({json.dumps(one())}, () => {{}});\nconst {one()} = `{one()}`;\n"
    )


def _rust(words: Words) -> str:
    one = words.one
    tests = f"/// {one()}\n#[test]\nfn {one()}() {{}}\n"
    return f"//! {one()}\nuse {one()};\n{tests}struct {one()};\nmacro_rules! {one()} {{}}\n"


def _rst(words: Words) -> str:
    title = words.one()
    directives = f".. {words.one()}:: {words.one()}\n\n.. include:: {words.one()}\n"
    return f"{title}\n{'=' * len(title)}\n\n{words.text()}\n\n{directives}\n{words.bare()}\n----\n"


def _docker(words: Words) -> str:
    return f"# {words.one()}\nFROM {words.one()} AS {words.one()}\nRUN {words.one()}\n"


def _make(words: Words) -> str:
    return f"# {words.one()}\n{words.one()}: {words.one()}\n\t{words.one()}\n{words.one()} := {words.one()}\ninclude {words.one()}\n"


def _plain(words: Words) -> str:
    return "\n".join(words.choose.choice((words.text, words.bare))() for _ in range(12))


MAKERS: Mapping[str, Callable[[Words], str]] = {
    ".py": _python,
    ".md": _markdown,
    ".sh": _shell,
    ".cpp": _cpp,
    ".cu": _cpp,
    ".cmake": _cmake,
    ".toml": _toml,
    ".yaml": _yaml,
    ".json": _json,
    ".js": _javascript,
    ".ts": _javascript,
    ".rs": _rust,
    ".rst": _rst,
    ".dockerfile": _docker,
    ".mk": _make,
    ".txt": _plain,
    ".go": _rust,
    ".java": _javascript,
    ".ipynb": _json,
    "": _plain,
}
"""What writes a file, by the end of its name."""


def tree(seed: object, *, hostile: bool = True, files: int = 8, suffixes: Sequence[str] = ()) -> dict[str, bytes]:
    """Make a tree of sources.

    Args:
        seed: of the choices; the tree and its tame twin have the same one.
        hostile: whether its texts are hostile.
        files: how many it has.
        suffixes: ends of their names; by default of all kinds. Where they are Python sources alone, both twins hold the same statements.
    """
    choose = random.Random(f"{seed}")
    words = Words(choose, hostile=hostile)
    folders = ["s", f"s/{words.name()}", f"s/{words.name()}/{words.name()}"]
    made: dict[str, bytes] = {
        "s/test_plain.py": b"import unittest\n\n\nclass TestPlain(unittest.TestCase):\n    def test_it(self):\n        pass\n"
    }
    for suffix in (choose.choice(suffixes or [*MAKERS]) for _ in range(files)):
        folder = choose.choice(folders)
        start = choose.choice(("", "test_"))
        name = f"{start}{words.name()}{suffix}"
        made[f"{folder}/{name}"] = _encodable(MAKERS[suffix](words)).encode()
    modules = [path for path in made if path.endswith(".py")]
    for path in modules[1:]:
        made[path] = made[path].replace(
            b"import argparse\n", b"import argparse\nfrom test_plain import TestPlain\nimport s.test_plain\n", 1
        )
    return made


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """Write a tree."""
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


# Runs


def runs_of(files: Mapping[str, bytes], seed: object, *, hostile: bool = True, is_timed: bool = True) -> list[Run]:
    """Make runs of the sources of a tree, whatever a program may have printed in them.

    Args:
        files: the tree.
        seed: of the choices.
        hostile: whether the texts are hostile.
        is_timed: whether the times of the runs are times.
    """
    choose = random.Random(f"runs of {seed}")
    words = Words(choose, hostile=hostile)
    made = []
    for path, data in files.items():
        for number in range(choose.randint(0, 3)):
            outcome = choose.choice([each for each in Outcome if each is not Outcome.PROVED])
            ranks = tuple(RankEnd(words.one(), choose.choice((0, 1, -9, None)), 0.0, number + 1.0) for _ in range(choose.choice((0, 2, 3))))
            said = f"rank 0 waits in {words.text()}; rank 1 died {words.text()}"
            made.append(
                Run(
                    page=f"docs/{path}_docs.md",
                    node_id=f"docs/{path}_docs.md::{words.one()}[{words.text()}]",
                    listing=choose.choice((hashlib.sha256(data).hexdigest(), "0" * 64)),
                    source=path,
                    line=number + 1,
                    kind="test",
                    outcome=outcome,
                    reason=choose.choice((words.text(), said)),
                    duration=choose.random() * 100,
                    ranks=len(ranks),
                    when="2026-11-20T14:05:00+00:00" if is_timed else choose.choice(("2026-11-20T14:05:00+00:00", words.text())),
                    machine=choose.choice((words.one(), "2 × NVIDIA H200")),
                    engine=words.one(),
                    torch=words.one(),
                    commit=words.one(),
                    receipt=Receipt(ranks=ranks, backend=words.one(), device=words.one(), gpus=(words.one(),), note=words.one()),
                    needs=(words.one(), "2 GPUs"),
                    case={"id": words.one(), "line": number + 1, "marks": [words.one()]},
                )
            )
    return made


# Mutations

_BYTES = tuple(piece.encode(errors="surrogatepass") for piece in PIECES)


def mutated(data: bytes, choose: random.Random) -> bytes:
    """Change a file in a few places: hostile texts put in, lines repeated, moved and lost, bytes changed."""
    for _ in range(choose.randint(1, 8)):
        data = choose.choice(_CHANGES)(data, choose)
    return data


def _insert(data: bytes, choose: random.Random) -> bytes:
    place = choose.randint(0, len(data))
    return data[:place] + choose.choice(_BYTES) + data[place:]


def _insert_line(data: bytes, choose: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    place = choose.randint(0, len(lines))
    indent = b" " * choose.choice((0, 0, 1, 3, 4, 8))
    return b"".join([*lines[:place], indent + choose.choice(_BYTES) + choose.choice((b"\n", b"\r\n", b"\r", b"")), *lines[place:]])


def _insert_into_word(data: bytes, choose: random.Random) -> bytes:
    words = list(re.finditer(rb"\w+", data[: 1 << 20]))
    if not words:
        return data + choose.choice(_BYTES)
    match = choose.choice(words)
    return data[: match.start()] + choose.choice(_BYTES) + data[match.end() :]


def _insert_into_string(data: bytes, choose: random.Random) -> bytes:
    quotes = list(re.finditer(rb"[\"']", data[: 1 << 20]))
    if not quotes:
        return data
    place = choose.choice(quotes).end()
    return data[:place] + choose.choice(_BYTES) + data[place:]


def _repeat(data: bytes, choose: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    place = choose.randrange(len(lines))
    return b"".join([*lines[:place], *lines[place : place + choose.randint(1, 9)] * choose.randint(1, 5), *lines[place:]])


def _lose(data: bytes, choose: random.Random) -> bytes:
    start = choose.randint(0, len(data))
    return data[:start] + data[start + choose.randint(1, 200) :]


def _move(data: bytes, choose: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    line = lines.pop(choose.randrange(len(lines)))
    lines.insert(choose.randint(0, len(lines)), line)
    return b"".join(lines)


def _byte(data: bytes, choose: random.Random) -> bytes:
    place = choose.randint(0, len(data))
    return data[:place] + bytes([choose.randrange(256)]) + data[place + 1 :]


_CHANGES = (
    _insert,
    _insert,
    _insert_line,
    _insert_line,
    _insert_into_word,
    _insert_into_string,
    _insert_into_string,
    _repeat,
    _lose,
    _move,
    _byte,
)


def mutated_tree(originals: Sequence[tuple[str, bytes]], seed: object, *, files: int = 8) -> dict[str, bytes]:
    """Make a tree of mutated files.

    Args:
        originals: names and contents of real files.
        seed: of the choices.
        files: how many it has.
    """
    choose = random.Random(f"mutations {seed}")
    words = Words(choose, hostile=True)
    folders = ["s", f"s/{words.name()}"]
    made = {}
    for number in range(files):
        name, data = choose.choice(originals)
        name = choose.choice((f"{number}{name}", f"{words.name()}{Path(name).suffix}"))
        made[f"{choose.choice(folders)}/{name}"] = mutated(data, choose)
    return made


def changed_tree(files: Mapping[str, bytes], seed: object) -> dict[str, bytes]:
    """Change a tree as people do: files go, come, are moved and are edited.

    Args:
        files: the tree.
        seed: of the choices.
    """
    choose = random.Random(f"changes {seed}")
    made = dict(files)
    for path in files:
        what = choose.choice(("", "", "go", "move", "edit", "edit"))
        if what == "edit":
            made[path] = mutated(made[path], choose)
        elif what:
            data = made.pop(path)
            if what == "move" and len(path.encode()) < 200:
                made[f"{path}-{choose.randint(0, 9)}{Path(path).suffix}"] = data
    for path, data in tree(f"more {seed}", files=2).items():
        if not any(path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in made):
            made[path] = data
    return made
