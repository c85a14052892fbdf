"""Which files belong to the book, and what is read from each."""

import ast
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name

from rankbook import front_matter, languages
from rankbook.cli import main
from rankbook.config import Settings
from rankbook.errors import SourceError
from rankbook.globs import matcher
from rankbook.kinds import KINDS
from rankbook.model import Keyword, Module, tree
from rankbook.sources import discover, parse
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


PIECES = [
    ("(1,\n 2)", "(1, 2)"),
    ("[  # comment\n    'a',\n\n    # comment (\n    'b#',\n]", "['a', 'b#']"),
    ("f(\n    a,\n    b=1,\n)", "f(a, b=1)"),
    ("(\n    1,\n)", "(1,)"),
    ("{\n    'a': '''x\n  y''',\n}", "{'a': '''x\\n  y'''}"),
    ("g(\n    'a\\\nb',\n    \"it's\", '(' # it's\n)", "g('ab', \"it's\", '(')"),
    ("a + \\\n    b", "a + b"),
    ("not (\n    a  and  b\n)", "not (a  and  b)"),
    ("r(\n    r'''x\n\\y''')", "r('x\\n\\\\y')"),
    ("f'''{\na}\n'''", "f'{a}\\n'"),
    ("x[\n    1,\n]", "x[1,]"),
    ("f(\n    f'{a}',  # it's\n    \"b\",\n)", "f(f'{a}', \"b\")"),
    ("{\n    rF'{a}#': \"b\", # x\n}", "{rF'{a}#': \"b\"}"),
]
if sys.version_info >= (3, 12):
    PIECES += [("x[f'a',  # it's\n  f'b']", "x[f'a', f'b']"), ("f(*f'a',  # it's\n  **x)", "f(*f'a', **x)")]
    PIECES += [("f(\n    f'{a['#']}', # it's\n    \"b\",\n)", ast.unparse(ast.parse("f(f'{a['#']}', 'b')")))]


@pytest.mark.parametrize(("written", "shown"), PIECES, ids=[shown for _, shown in PIECES])
def test_a_piece_that_spans_lines_is_joined(written: str, shown: str) -> None:
    """A value is shown on one line, without comments, and means what it means in the source."""
    module = parse_bytes("a.py", f"value = {written}\n".encode())
    assert [constant.value for constant in module.constants] == [shown]
    assert ast.dump(ast.parse(shown)) == ast.dump(ast.parse(written))


def test_long_pieces_are_whole() -> None:
    """Decorators, calls, bases and values are kept whole as long as they can be read again; what is endless is cut."""
    cases = ",\n    ".join(f"({number}, 'case {number}')" for number in range(300))
    source = f"VALUES = [\n    {cases},\n]\n@parametrize('x', [\n    {cases},\n])\nclass A(make([{cases}])): ...\nregister([{cases}])\n"
    module = parse_bytes("a.py", source.encode())
    (decorator,), (base,), (call,), (constant,) = module.classes[0].decorators, module.classes[0].bases, module.calls, module.constants
    for text in (decorator.arguments[1], base.arguments[0], call.arguments[0], constant.value):
        assert ast.literal_eval(text) == [(number, f"case {number}") for number in range(300)]
    for text in (decorator.text, base.text, call.text):
        ast.parse(text)
    endless = parse_bytes("a.py", b"x = [f'a', # it's\n" + b"  1,\n" * 50_000 + b"]\ny = '" + b"z" * 50_000 + b"'\n")
    assert [len(constant.value) <= 20_002 and constant.value.endswith(" …") for constant in endless.constants] == [True, True]
    assert "# it's" in endless.constants[0].value  # cut as it is written, whichever Python reads it


USES = """
import os, torch.distributed as dist
from torch import nn
from pytest import mark

@mark.slow
@dist.record
class A(nn.Module, metaclass=dist.Meta):
    size: nn.Linear = dist.ReduceOp.SUM

    def setUp(self):
        super().setUp()
        self.helper(dist.ReduceOp.SUM)
        self.helper(dist.ReduceOp.SUM, self.model.run(), super(A, self).check(nn.init))
        dist.all_reduce(x, op=dist.ReduceOp.MAX)[0].wait(nn.GELU().weight)
        nn = dist.flag = 1

    @classmethod
    def run(cls, timeout=dist.TIMEOUT) -> dist.Work:
        def inner():
            return [helper(y) for y in cls.all()]
        return A.run(inner, spawn(target=helper), inner())

def helper(y):
    return helper, os.environ
"""


def test_what_a_scope_mentions() -> None:
    """What is imported and not called, the methods of its own class and the functions of its file: each once, by scope."""
    module = parse_bytes("a.py", USES.encode())

    def names(keywords: tuple[Keyword, ...]) -> list[tuple[str, str, int]]:
        return [(keyword.name, keyword.scope, keyword.line) for keyword in keywords]

    assert names(module.references) == [
        ("torch.distributed.record", "", 7),
        ("torch.distributed.Meta", "", 8),
        ("torch.nn.Module", "", 8),
        ("torch.distributed.ReduceOp.SUM", "A", 9),
        ("torch.nn.Linear", "A", 9),
        ("torch.distributed.ReduceOp.SUM", "A.setUp", 13),
        ("torch.nn.init", "A.setUp", 14),
        ("torch.distributed.ReduceOp.MAX", "A.setUp", 15),
        ("torch.distributed.flag", "A.setUp", 16),
        ("torch.distributed.TIMEOUT", "A", 19),
        ("torch.distributed.Work", "A", 19),
        ("os.environ", "helper", 25),
    ]
    assert names(module.self_calls) == [
        ("setUp", "A.setUp", 12),
        ("helper", "A.setUp", 13),
        ("check", "A.setUp", 14),
        ("all", "A.run.inner", 21),
    ]
    assert [keyword.kind for keyword in module.self_calls] == ["super call", "self call", "super call", "self call"]
    assert names(module.local_calls) == [
        ("A", "A.setUp", 14),
        ("helper", "A.run.inner", 21),
        ("A.run", "A.run", 22),
        ("helper", "A.run", 22),
        ("inner", "A.run", 22),
        ("helper", "helper", 25),
    ]
    assert not {"reference", "self call", "super call", "local call"} & {keyword.kind for keyword in module.keywords}


LOOPS = """
for name in "ab":
    print(name)
if True:
    for n in (2,
              4):  # ranks
        class C:
            text = '''
  kept'''
for n in (2, 4):
    for m in (1, 2):
        globals()[f"Test{n}{m}"] = type(f"Test{n}{m}", (Base,), {})
try:
    for n in (2, 4): setattr(A, f"test_{n}", type(n))
finally:
    for n in (2, 4): type(n)
def f():
    for n in (2, 4): vars()[n] = n
if __name__ == "__main__":
    for n in (2, 4): vars()[n] = n
"""


def test_loops_that_define_something_are_whole() -> None:
    """A loop of the module that makes classes or sets names stands as it is written, and can be read again."""
    loops = parse_bytes("a.py", LOOPS.encode()).loops
    assert [(loop.name, loop.line) for loop in loops] == [("for", 5), ("for", 10), ("for", 14)]
    assert loops[0].text == "for n in (2,\n          4):  # ranks\n    class C:\n        text = '''\n  kept'''"
    assert [type(ast.parse(loop.text).body[0]) for loop in loops] == [ast.For] * 3


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """Python that is laid out in one of many ways: line ends, comments and blanks where they mean nothing."""
    blank = st.sampled_from(["", " ", "\n", "\n        ", "  # it's \"odd\n  ", "\n\n# (\n", " \\\n "])
    leaf = st.sampled_from(
        ["dist.ReduceOp.SUM", "dist.barrier()", "1", "'a # b'", '"""x\n  y"""', "'''\\\n'''", "rb'''\n'''", "f'{nn.x}'", "self.go()"]
    )

    def inside(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        entries = st.lists(st.tuples(blank, inner, blank).map("".join), min_size=1, max_size=3)
        shapes = st.sampled_from(["nn.f({})", "[{}]", "({},)", "helper({},)", "{{{}}}", "(lambda: ({}))", "super().go({})"])
        return st.tuples(shapes, entries).map(lambda pair: pair[0].format(",".join(pair[1])))

    piece = draw(st.recursive(leaf, inside, max_leaves=8))
    value = draw(st.recursive(leaf, inside, max_leaves=8))
    head = "import torch.distributed as dist\nfrom torch import nn\ndef helper(*a): ...\n"
    body = f"class A(nn.B[{value}]):\n    y = {piece}\n    def f(self):\n        return {piece}\n"
    return f"{head}helper({value})\nx = {value}\n@nn.mark({piece})\n{body}"


@settings(max_examples=60, deadline=None)
@given(source=layouts())
def test_facts_do_not_depend_on_layout(source: str) -> None:
    """However a file is laid out, what it says is the same."""
    written, plain = parse_bytes("a.py", source.encode()), parse_bytes("a.py", ast.unparse(ast.parse(source)).encode())
    for facts in ("keywords", "references", "self_calls", "local_calls"):
        mentioned = [{(use.kind, use.name, use.scope) for use in getattr(module, facts)} for module in (written, plain)]
        assert mentioned[0] == mentioned[1]
    for module in (written, plain):
        assert [constant.name for constant in module.constants] == ["x"]
    for one, other in zip(_texts(written), _texts(plain), strict=True):
        assert "\n" not in one
        assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


def _texts(module: Module) -> list[str]:
    (each,) = module.classes
    expressions = [*module.calls, *each.bases, *each.decorators]
    return [
        *(text for expression in expressions for text in (expression.text, *expression.arguments)),
        *(constant.value for constant in (*module.constants, *each.attributes)),
        *(method.returns or "" for method in each.methods),
    ]


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
    """In a work tree, tracked and new files are found; ignored and deleted ones are not, nor what Python and its tools leave."""
    make(tmp_path, "a.py", "sub/b.py", "build/c.py", "gone.py", "sub/__pycache__/b.cpython-311.pyc", ".hypothesis/examples/1")
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


def book(root: Path) -> set[str]:
    """Make the book by the command, and name the files that have a page."""
    assert main(["gen", "--root", str(root)]) == 0
    pages = root / "docs/suite"
    return {path.relative_to(pages).as_posix().removesuffix("_docs.md") for path in pages.rglob("*_docs.md")}


def with_submodules(tmp_path: Path) -> Path:
    """Make a project with a submodule in a submodule, each with a file that it ignores."""
    for name in ("inner", "outer", "project"):
        git(make(tmp_path / name, f"tests/test_{name}.py"), "init", "-q")
        if name != "project":
            (tmp_path / name / ".gitignore").write_text(".env\n")
        if name == "project":
            (tmp_path / name / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nfindings = []\ntitle = "x"\n')
            git(tmp_path / name, "-c", "protocol.file.allow=always", "submodule", "add", "../outer", "tests/outer")
        if name == "outer":
            git(tmp_path / name, "-c", "protocol.file.allow=always", "submodule", "add", "../inner", "inner")
        git(tmp_path / name, "add", "-A")
        git(tmp_path / name, "commit", "-qm", "x")
    root = tmp_path / "project"
    git(root, "-c", "protocol.file.allow=always", "submodule", "update", "--init", "--recursive")
    for folder in ("tests/outer", "tests/outer/inner"):
        (root / folder / ".env").write_text("SECRET = 1\n")
    return root


OUTER = {f"tests/outer/{name}" for name in (".gitignore", ".gitmodules", "tests/test_outer.py")}
INNER = {f"tests/outer/inner/{name}" for name in (".gitignore", "tests/test_inner.py")}


def test_a_submodule_says_what_it_ignores(tmp_path: Path) -> None:
    """What a submodule ignores has no page, nor has its `.git`; what it ignores from now on, or no longer, is seen by the next run."""
    root = with_submodules(tmp_path)
    assert book(root) == {"tests/test_project.py"} | OUTER | INNER
    (root / "tests/outer/inner/.gitignore").write_text(".env\ntest_inner.py\n")
    git(root / "tests/outer/inner", "rm", "-q", "--cached", "tests/test_inner.py")
    assert book(root) == {"tests/test_project.py"} | OUTER | INNER - {"tests/outer/inner/tests/test_inner.py"}
    (root / "tests/outer/.gitignore").write_text("")
    assert book(root) >= {"tests/outer/.env"}
    exclude = root / ".git/modules/tests/outer/info/exclude"
    exclude.write_text(".env\n")
    assert "tests/outer/.env" not in book(root)
    assert main(["check", "--root", str(root)]) == 0


@pytest.mark.parametrize("source", ["tests/outer", "tests/outer/inner/tests", "tests/outer/inner"])
def test_a_source_within_a_submodule(tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    """The repository that a source lies in is asked, not the one around it."""
    root = with_submodules(tmp_path)
    assert main(["gen", "--root", str(root), "--out", "out", source]) == 0
    assert "warning" not in capsys.readouterr().err
    expected = {path for path in OUTER | INNER if path.startswith(f"{source}/")}
    assert {path.relative_to(root / "out").as_posix() for path in root.rglob("*_docs.md")} == {f"{path}_docs.md" for path in expected}


def test_repositories_in_an_ignored_folder_say_what_they_ignore(tmp_path: Path) -> None:
    """A folder that Git ignores may be documented; a clone within it keeps its own secrets."""
    make(tmp_path, ".git/x", "vendor/a.py", "vendor/clone/b.py", "vendor/clone/.env", "vendor/linked/.git")
    (tmp_path / ".gitignore").write_text("vendor/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path / "vendor/clone", "init", "-q")
    (tmp_path / "vendor/clone/.gitignore").write_text(".env\n")
    assert found(tmp_path, "vendor") == ["vendor/a.py", "vendor/clone/.gitignore", "vendor/clone/b.py"]


def test_git_is_asked_little_about_repositories_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search asks Git at most twice for each repository within another, and what these ignore stays out, now and later."""
    root = make(tmp_path / "project", "tests/test_a.py", "tests/build/test_b.py")
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nfindings = []\ntitle = "x"\n')
    (root / ".gitignore").write_text("build/\n")
    git(root, "init", "-q")
    for number in range(10):
        within = make(root / f"tests/n{number}", "build/test_c.py", "new/.env")
        (within / ".gitignore").write_text("build/\n.env\n")
        git(within, "init", "-q")
        git(make(root / f"tests/e{number}", ".keep"), "init", "-q")
        (root / f"tests/e{number}/.keep").unlink()
    log = tmp_path / "calls"
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$2" >> {log}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    mine = {"tests/test_a.py", *(f"tests/n{number}/.gitignore" for number in range(10))}
    assert book(root) == mine
    calls = log.read_text().splitlines()
    assert all(calls.count(f"{root}/tests/e{number}") == 1 for number in range(10))
    assert all(calls.count(f"{root}/tests/n{number}") <= 2 for number in range(10))
    make(root, "tests/n3/new/test_d.py", "tests/e4/test_e.py", "tests/n5/build/test_f.py")
    assert book(root) == {*mine, "tests/n3/new/test_d.py", "tests/e4/test_e.py"}
    (root / "tests/e4/.git/info").mkdir(exist_ok=True)
    (root / "tests/e4/.git/info/exclude").write_text("test_e.py\n")
    assert book(root) == {*mine, "tests/n3/new/test_d.py"}


def test_what_is_no_repository_is_not_taken_for_one(tmp_path: Path) -> None:
    """A folder `.git` that Git does not know as its own leaves the word to the repository around it."""
    make(tmp_path, "vendor/.git/x", "vendor/a.py", "other/.git/x", "other/b.py", "other/c.pyc")
    (tmp_path / ".gitignore").write_text("vendor/\n*.pyc\n")
    git(tmp_path, "init", "-q")
    assert found(tmp_path, "vendor") == ["vendor/a.py"]
    assert found(tmp_path, "other") == ["other/b.py"]


def test_a_file_that_has_become_a_folder(tmp_path: Path) -> None:
    """What Git ignores in it stays out although Git still tracks the file."""
    git(make(tmp_path, "a"), "init", "-q")
    git(tmp_path, "add", "a")
    (tmp_path / "a").unlink()
    make(tmp_path, "a/b.py", "a/c.py")
    (tmp_path / ".gitignore").write_text("c.py\n")
    assert found(tmp_path) == [".gitignore", "a/b.py"]


def test_what_is_ignored_from_above_the_sources_is_seen_by_the_next_run(tmp_path: Path) -> None:
    """Git reads the files above a folder too, and a file may appear in a folder that holds only ignored ones."""
    root = make(tmp_path, "tests/test_a.py", "tests/test_b.py", "tests/new/test_b.py")
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nfindings = []\ntitle = "x"\n')
    git(root, "init", "-q")
    assert book(root) == {"tests/test_a.py", "tests/test_b.py", "tests/new/test_b.py"}
    (root / ".gitignore").write_text("test_b.py\n")
    assert book(root) == {"tests/test_a.py"}
    make(root, "tests/new/test_c.py")
    assert book(root) == {"tests/test_a.py", "tests/new/test_c.py"}
    (root / ".gitignore").write_text("")
    assert book(root) == {"tests/test_a.py", "tests/test_b.py", "tests/new/test_b.py", "tests/new/test_c.py"}


CONFTEST = """\
import pytest
@pytest.fixture(params=["cpu", "cuda"])
def device(request): return request.param
@pytest.fixture
def gpu():
    import torch
    if not torch.cuda.is_available(): pytest.skip("no GPU")
"""


@pytest.mark.parametrize("source", ["t/unit", "t/unit/test_a.py"])
def test_conftest_files_above_count(tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    """Their fixtures and hooks make tests and skip them; one comes and goes, and what Git ignores or a pattern leaves out is none."""
    root = make(tmp_path, "t/unit/test_a.py", "t/other.py", "lib/a.py")
    (root / "t/unit/test_a.py").write_text("def test_device(device): ...\ndef test_gpu(gpu): ...\n")
    settings = f'[tool.rankbook]\nsources = ["{source}"]\nfindings = []\ntitle = "x"\n'
    (root / "pyproject.toml").write_text(settings)
    git(root, "init", "-q")

    def listed() -> list[str]:
        capsys.readouterr()
        assert main(["query", "tests", "--root", str(root), "--format", "json"]) == 0
        return [f"{test['id']} {[need['text'] for need in test['needs']]}" for test in json.loads(capsys.readouterr().out)]

    plain = ["t/unit/test_a.py::test_device []", "t/unit/test_a.py::test_gpu []"]
    several = [f"t/unit/test_a.py::test_device[{name}] []" for name in ("cpu", "cuda")] + ["t/unit/test_a.py::test_gpu ['1 GPU']"]
    assert book(root) == {"t/unit/test_a.py"}
    assert listed() == plain
    (root / "conftest.py").write_text(CONFTEST)
    assert book(root) == {"conftest.py", "t/unit/test_a.py"}
    assert listed() == several
    (root / "conftest.py").rename(root / "t/conftest.py")
    assert book(root) == {"t/conftest.py", "t/unit/test_a.py"}
    assert listed() == several
    (root / ".gitignore").write_text("conftest.py\n")
    assert book(root) == {"t/unit/test_a.py"}
    (root / ".gitignore").write_text("")
    (root / "pyproject.toml").write_text(f'{settings}exclude = ["conftest.py"]\n')
    assert book(root) == {"t/unit/test_a.py"}
    (root / "pyproject.toml").write_text(settings.replace(source, "lib"))
    assert book(root) == {"lib/a.py"}
    make(root, "conftest.py")
    (root / "pyproject.toml").write_text(f'{settings.replace(source, "lib")}[tool.pytest.ini_options]\npython_files = ["a.py"]\n')
    assert book(root) == {"conftest.py", "lib/a.py"}


def test_without_git_caches_are_left_out(tmp_path: Path) -> None:
    """A walk leaves out caches and the folders of version control."""
    make(tmp_path, "a.py", "__pycache__/a.pyc", ".hg/x", "sub/.venv/y.py", "sub/.hidden/z.py")
    assert found(tmp_path) == ["a.py", "sub/.hidden/z.py"]


@pytest.mark.parametrize("tool", ["git", "none"])
def test_what_editors_put_beside_an_open_file_is_no_source(tmp_path: Path, tool: str) -> None:
    """Swap files, locks and backups come and go while somebody edits: their names leave them out, unless they are named as sources."""
    kept = make(tmp_path, "a.py", "a~b.py", "#c.py", ".swp", "sub/.d.swift", "sub/e.swp")
    if tool == "git":
        git(kept, "init", "-q")
    make(
        tmp_path,
        ".a.py.swp",
        ".a.py.swo",
        "a.py~",
        "#a.py#",
        "a.py___jb_tmp___",
        "sub/.goutputstream-1X",
        "sub/.e.py.kate-swp",
        ".DS_Store",
    )
    (tmp_path / ".#a.py").symlink_to("somebody@somewhere.17:42")
    assert found(tmp_path) == ["#c.py", ".swp", "a.py", "a~b.py", "sub/.d.swift", "sub/e.swp"]
    assert found(tmp_path, "a.py~") == ["a.py~"]
    assert discover(Settings(root=tmp_path, sources=(".",))).warnings == ()


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
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    folder.mkdir()
    (folder / "a.py").write_text("")
    if with_git:
        git(tmp_path, "init", "-q")
    os.mkfifo(tmp_path / "pipe.py")
    result = discover(Settings(root=tmp_path, sources=(".",)))
    assert result.paths == ("-f.py", "[x]*.py", "a b.py", "new\nline.py")
    assert result.warnings == tuple(f"{name} is left out: its name is not UTF-8" for name in ("d\\xff/a.py", "\\xff.py"))
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
