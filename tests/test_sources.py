"""Which files belong to the book, and what is read from each."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name

from rankbook import front_matter, languages
from rankbook.config import Settings
from rankbook.errors import SourceError
from rankbook.kinds import KINDS
from rankbook.model import tree
from rankbook.sources import discover, parse
from rankbook.sources.globs import matcher
from rankbook.sources.parse import parse_bytes

CASES = sorted((Path(__file__).parent / "cases" / "sources").glob("*.case"))
RULE = "======== model\n"


def make(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x = 1\n")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, "-c", "user.name=n", "-c", "user.email=e@e", *arguments], check=True, capture_output=True)


def found(root: Path, *sources: str, **changes: object) -> list[str]:
    return list(discover(Settings(root=root, sources=sources or (".",), **changes)).paths)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case: Path) -> None:
    """The facts of a file are those that its case shows."""
    head, _, rest = case.read_text().partition("\n")
    source, _, expected = rest.partition(RULE)
    module = parse_bytes(head.removeprefix("path: "), source.encode())
    actual = tree(module)
    if os.environ.get("RANKBOOK_UPDATE_CASES") == "1":
        case.write_text(f"{head}\n{source}{RULE}{actual}")
        expected = actual
    assert actual == expected
    assert {keyword.kind for keyword in module.keywords} <= KINDS.keys()
    assert pickle.loads(pickle.dumps(module)) == module


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=400), name=st.sampled_from(["a.py", "a.md", "a.rst", "a.bin", "a", "a.cu", "a.h.in"]))
def test_no_bytes_make_parse_raise(data: bytes, name: str) -> None:
    """Whatever bytes a file holds, it gives a module that says its size."""
    assert parse_bytes(name, data).source.size == len(data)


SNIPPETS = st.sampled_from(
    [
        "import os",
        "from a.b import c as d",
        "if x:",
        "    pass",
        "class A(B, metaclass=M):",
        "    def f(self, *a, k=1): return k",
        "@d(1)",
        "def g(): ...",
        "os.environ['Ä'] = 'b'",
        "x: int = (1,\n 2)",
        "try:",
        "except ImportError:",
        "    raise SkipTest",
        "else:",
        "\tq = f'''{a}\n'''",
        "\f",
        "del x",
        "é = 'é'; é.b(c)",
        "a, (b, *c) = d = 1, (2, 3)",
    ]
)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(SNIPPETS, max_size=12), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_no_python_makes_parse_raise(lines: list[str], end: str) -> None:
    """Python put together at random gives either facts or an error with its line."""
    module = parse_bytes("a.py", end.join(lines).encode())
    assert module.error is None or module.error_line is not None


def test_text_is_cut_by_characters_not_by_bytes() -> None:
    """Letters beyond ASCII before an expression do not shift its text."""
    module = parse_bytes("a.py", b"# coding: latin-1\n\xe9 = '\xe4'; b = f(\xe9)\n")
    assert [(constant.name, constant.value) for constant in module.constants] == [("é", "'ä'"), ("b", "f(é)")]


@pytest.mark.parametrize(
    ("data", "error", "line"),
    [
        (b"def f(:\n", "invalid syntax", 1),
        (b"x = 1\n\0", "null bytes", None),
        (b"# coding: nonsense\n", "nonsense", None),
        (b"x = '\xff'\n", "encoding", None),
        (b"(" * 400 + b")" * 400 + b"\n", "too many nested parentheses", 1),
    ],
)
def test_broken_python_keeps_its_source(data: bytes, error: str, line: int | None) -> None:
    """A file that does not parse says why, and where when that is known."""
    module = parse_bytes("a.py", data)
    assert error in (module.error or "")
    assert line is None or module.error_line == line
    assert module.source.size == len(data)


def test_deep_nesting_costs_one_file() -> None:
    """A tree too deep for the interpreter's own parser is an error of the file; a long chain of operators is none."""
    assert parse_bytes("deep.py", b"-" * 200_000 + b"1\n").error
    chain = parse_bytes("chain.py", b"x = " + b" + ".join([b"f(1)"] * 600) + b"\n")
    assert chain.error is None or "deep" in chain.error
    branches = parse_bytes("branches.py", b"if a:\n  pass\n" + b"elif b:\n  pass\n" * 300 + b"else:\n  class C: pass\n")
    assert [each.name for each in branches.classes] == ["C"]


def test_a_missing_file_is_a_module_with_an_error(tmp_path: Path) -> None:
    """A file that went away, and a folder in its place, are told, not raised."""
    assert "cannot be read" in (parse(tmp_path, "gone.py").error or "")
    assert "cannot be read" in (parse(tmp_path, "").error or "")


def test_syntax_warnings_stay_silent(recwarn: pytest.WarningsRecorder) -> None:
    """A source with a wrong escape does not warn the person who documents it."""
    assert parse_bytes("a.py", b"x = '\\d'\nassert (x, 1)\n").error is None
    assert not recwarn.list


def test_binary_files_have_metadata_only() -> None:
    """A picture has a type and a reason why it has no listing."""
    source = parse_bytes("a.png", b"\x89PNG\r\n\x1a\n\0\0").source
    assert (source.language, source.type, source.embedding) == ("binary", "PNG image", None)
    assert "binary" in (source.not_embedded or "")


def test_templates_of_python_are_not_parsed() -> None:
    """A file that becomes Python when it is filled in is shown as Python, and is not in error."""
    module = parse_bytes("a.py.in", b"x = @VALUE@\n")
    assert (module.source.language, module.source.type, module.error) == ("python", "Python source template", None)


# Which files


def test_git_leaves_out_what_it_ignores(tmp_path: Path) -> None:
    """In a work tree, tracked and new files are found; ignored and deleted ones are not."""
    make(tmp_path, "a.py", "sub/b.py", "build/c.py", "gone.py")
    (tmp_path / ".gitignore").write_text("build/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "a.py", "gone.py")
    (tmp_path / "gone.py").unlink()
    assert found(tmp_path) == [".gitignore", "a.py", "sub/b.py"]
    assert found(tmp_path, "build") == ["build/c.py"]
    assert found(tmp_path, "sub/b.py", "sub") == ["sub/b.py"]


def test_git_of_another_repository_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that a Git hook sets for its repository do not change what is found here."""
    root = make(tmp_path / "here", "a.py")
    git(root, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert found(root) == ["a.py"]


def test_without_git_caches_are_left_out(tmp_path: Path) -> None:
    """A walk leaves out caches and the folders of version control."""
    make(tmp_path, "a.py", "__pycache__/a.pyc", ".hg/x", "sub/.venv/y.py", "sub/.hidden/z.py")
    assert found(tmp_path) == ["a.py", "sub/.hidden/z.py"]


def test_links_never_lead_out(tmp_path: Path) -> None:
    """A link to a file outside the root is left out with a warning, one within is taken, a loop is harmless."""
    root = make(tmp_path / "root", "a.py")
    make(tmp_path, "outside.py")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    (root / "in.py").symlink_to(root / "a.py")
    (root / "loop").symlink_to(root)
    (root / "self.py").symlink_to(root / "self.py")
    result = discover(Settings(root=root, sources=(".",)))
    assert result.paths == ("a.py", "in.py")
    assert result.warnings == ("out.py is left out: it is a link to a file outside the root",)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("with_git", [False, True])
def test_odd_names(tmp_path: Path, with_git: bool) -> None:
    """Spaces, newlines and globs in names are names; one that is not UTF-8 is left out with a warning, a pipe without."""
    make(tmp_path, "a b.py", "new\nline.py", "[x]*.py", "-f.py")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")).write_text("")
    if with_git:
        git(tmp_path, "init", "-q")
    os.mkfifo(tmp_path / "pipe.py")
    result = discover(Settings(root=tmp_path, sources=(".",)))
    assert result.paths == ("-f.py", "[x]*.py", "a b.py", "new\nline.py")
    assert result.warnings == ("\\xff.py is left out: its name is not UTF-8",)
    assert found(tmp_path, "[x]*.py") == ["[x]*.py"]


def test_generated_pages_are_no_sources(tmp_path: Path) -> None:
    """Neither pages under the output folder nor pages that say they are generated are documented again."""
    make(tmp_path, "a.py", "docs/suite/a.py_docs.md", "docs/guide.md")
    stamp = front_matter.Stamp("file", "a.py", "a.py", 6, "0")
    (tmp_path / "docs/moved.md").write_text(front_matter.write(stamp) + "# a.py\n")
    (tmp_path / "docs/talks.md").write_text("---\ntitle: x\n---\nrankbook: is a tool\n")
    assert found(tmp_path) == ["a.py", "docs/guide.md", "docs/talks.md"]


@pytest.mark.parametrize("source", ["nowhere", "..", "/", "../other.py"])
def test_wrong_sources_are_refused(tmp_path: Path, source: str) -> None:
    """A source that does not exist or lies outside is refused with one sentence."""
    with pytest.raises(SourceError, match=r"does not exist|outside the root"):
        found(make(tmp_path / "root", "a.py"), source)


def test_no_sources_are_refused(tmp_path: Path) -> None:
    """Without any source there is nothing to document, and that is said."""
    with pytest.raises(SourceError, match="no sources"):
        discover(Settings(root=tmp_path))


@pytest.mark.parametrize(
    ("pattern", "matches", "misses"),
    [
        ("*.py", ["a.py", "d/a.py"], ["a.pyi"]),
        ("d/*.py", ["d/a.py"], ["d/e/a.py", "x/d/a.py"]),
        ("d/**/*.py", ["d/a.py", "d/e/f/a.py"], ["a.py"]),
        ("**/test_*.py", ["test_a.py", "d/test_b.py"], ["d/a.py"]),
        ("build", ["build/a.py", "d/build/e/a.py"], ["builds/a.py"]),
        ("d/**", ["d/a.py", "d/e/a.py"], ["a.py"]),
        ("[!a]?.py", ["bc.py"], ["ab.py", "b.py"]),
        ("a[.py", ["a[.py"], ["a.py"]),
        ("[z-a].py", ["[z-a].py"], ["z.py"]),
    ],
)
def test_globs(pattern: str, matches: list[str], misses: list[str]) -> None:
    """Globs match as `.gitignore` users expect: a bare name anywhere, a path from the root, a folder with all it holds."""
    match = matcher([pattern])
    assert [path for path in matches if not match(path)] == []
    assert [path for path in misses if match(path)] == []


def test_include_and_exclude(tmp_path: Path) -> None:
    """Files are taken that an include matches and no exclude does."""
    make(tmp_path, "a.py", "b.py", "c.md", "old/d.py")
    assert found(tmp_path, include=("*.py",), exclude=("old", "b.*")) == ["a.py"]


# Languages


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("a.py", "python", "Python source"),
        ("d/a.pyi", "python", "Python type stub"),
        ("kernel.cu", "cuda", "CUDA source"),
        ("kernel.cuh", "cuda", "CUDA header"),
        ("a.H", "cpp", "C or C++ header"),
        ("a.mm", "objective-c++", "Objective-C++ source"),
        ("CMakeLists.txt", "cmake", "CMake script"),
        ("d.h.in", "cpp", "C or C++ header template"),
        ("BUCK.oss", "starlark", "Buck build file"),
        ("Dockerfile.gpu", "dockerfile", "Dockerfile"),
        (".gitignore", "ignore list", "Ignore list"),
        ("a.png", "text", "PNG image"),
        ("TestX.test_py", "text", "Text file"),
        (".py", "text", "Text file"),
    ],
)
def test_language_of_a_path(path: str, name: str, kind: str) -> None:
    """A file's language and type follow from its name."""
    assert (languages.by_path(path).name, languages.type_of(path)) == (name, kind)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("#!/usr/bin/env python3.11", "python"),
        ("#!/bin/sh -e", "bash"),
        ("#! /usr/bin/env -S bash", "bash"),
        ("#!", "text"),
        ("echo", "text"),
    ],
)
def test_language_of_a_script(line: str, name: str) -> None:
    """A script without a suffix says its language in its first line."""
    assert languages.by_path("tool", line).name == name


def test_fences() -> None:
    """Every word of the table is one that Pygments knows, whatever its case; other words are unknown."""
    for language in languages.LANGUAGES:
        for word in language.fences:
            get_lexer_by_name(word)
            assert languages.by_fence(word.upper()) is not None
    assert languages.by_fence("Python3") is languages.by_path("a.py")
    assert languages.by_fence("text") is languages.by_path("a.txt")
    assert languages.by_fence("pythn") is None
