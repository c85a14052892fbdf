"""Listings with options, run from pages through pytest: fixtures, sessions and launchers, where a page alone cannot tell all."""

from __future__ import annotations

import contextlib
import html
import io
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from proving import Result, prove
from rankbook.cli import main
from rankbook.harness import kind_of, misplaced, shared
from rankbook.harness.import_path import ImportPath
from rankbook.harness.mirror import Mirror, modules_of
from rankbook.listings import Site, collect_text
from rankbook.listings.site import site_of

GUIDE = Path(__file__).parents[1] / "docs" / "guide" / "writing-listings.md"


def page(folder: Path, text: str) -> None:
    """Write a page two folders below the root of a project."""
    (folder / "docs" / "guide").mkdir(parents=True)
    (folder / "docs" / "guide" / "page.md").write_text(text)


FIXTURES = """# Page

```python {name=given fixtures="world,tmp_path,capsys"}
import os

assert world == 4
assert os.environ["ALWAYS"] == "yes"
assert list(tmp_path.iterdir()) == []
print("heard")
assert capsys.readouterr().out == "heard\\n"
```

```python {name=printing fixtures="world"}
print("of the listing")
```

```text {.output}
of the listing
```

```python {name=unknown fixtures=nothing}
```

```python {name=failing fixtures=failing}
```

```python {name=ill-cleaned fixtures=ill_cleaned}
```

```python {name=skipping fixtures=skipping}
```

```python {name=raising fixtures=world raises=ValueError}
raise ValueError(world)
```

```python {name=wrong fixtures=world}
number = world

assert number == 5
```

```python {name=first session=s fixtures=world}
number = world
```

```python {name=second session=s fixtures=tmp_path}
assert number == world == 4
(tmp_path / "file").touch()
```

```python {name=third session=s}
assert [path.name for path in tmp_path.iterdir()] == ["file"]
```

```python {name=last session=ill fixtures=ill_cleaned}
```
"""
OUTER = """
import pytest

@pytest.fixture
def world():
    print("of the fixture")
    yield 4

@pytest.fixture
def failing():
    raise RuntimeError("no such device")

@pytest.fixture
def ill_cleaned():
    yield
    raise RuntimeError("still in use")

@pytest.fixture
def skipping():
    pytest.skip("no fabric")
"""
INNER = """
import pytest

@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setenv("ALWAYS", "yes")
"""


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory):
    """A page whose listings ask for fixtures, run with conftest files at the root and beside the page."""
    folder = tmp_path_factory.mktemp("fixtures")
    page(folder, FIXTURES)
    (folder / "conftest.py").write_text(OUTER)
    (folder / "docs" / "guide" / "conftest.py").write_text(INNER)
    found = prove(folder, "docs")
    return {name.partition("::")[2]: report for name, report in found.ends().items()}


def test_fixtures_are_names_of_a_listing(fixtures):
    """Fixtures of pytest and of conftest files, `autouse` ones too, are there; what they print is no output of the listing."""
    passed = ["given", "printing", "raising", "first", "second", "third"]
    assert {name: fixtures[name]["outcome"] for name in passed} == dict.fromkeys(passed, "passed")


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("unknown", 21, "there is no fixture 'nothing': no conftest.py from "),
        ("failing", 24, "RuntimeError: no such device (in the setup of its fixtures)"),
        ("ill-cleaned", 27, "RuntimeError: still in use (in the teardown of its fixtures)"),
        ("wrong", 40, "assert 4 == 5"),
        ("last", 56, "RuntimeError: still in use (in the teardown of its fixtures)"),
    ],
)
def test_what_is_wrong_with_fixtures(fixtures, name, line, reason):
    """A fixture that is missing, or fails before or after the listing, fails the listing; so does the listing itself, at its line."""
    assert fixtures[name]["outcome"] == "failed"
    assert fixtures[name]["text"].startswith(f"docs/guide/page.md:{line}: ")
    assert reason in fixtures[name]["text"]


def test_a_fixture_that_skips(fixtures):
    """A fixture that skips skips the listing, with its reason."""
    assert fixtures["skipping"]["outcome"] == "skipped"
    assert "no fabric" in fixtures["skipping"]["longrepr"][2]


TORCHRUN = """# Page

```bash
cat > train.py <<'END'
import os
import signal
import sys
import time
from pathlib import Path

assert os.environ["MASTER_PORT"] != "29500"
if os.environ["RANK"] == "0":
    print(os.environ["WORLD_SIZE"], "ranks of", os.path.samefile(sys.prefix, os.environ["EXPECTED"]), flush=True)
    Path("said").touch()
else:
    while not Path("said").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
END
torchrun --nproc-per-node=2 train.py
```
"""


def test_torchrun_in_a_shell(tmp_path):
    """`torchrun` is that of the Python that runs pytest, on a port of its own; the failure names the line and the rank that died."""
    pytest.importorskip("torch")
    import sys

    page(tmp_path, TORCHRUN)
    (report,) = prove(tmp_path, "docs", env={"EXPECTED": sys.prefix, "PATH": "/usr/bin:/bin"}).ends().values()
    assert report["outcome"] == "failed"
    assert report["text"].startswith("docs/guide/page.md:20: exit status 1: torchrun --nproc-per-node=2 train.py; rank 1 died by SIGKILL")
    assert "2 ranks of True" in dict(report["sections"])["Captured output"]


def test_a_part_of_a_session_alone(tmp_path):
    """A listing of a session that is selected alone runs after those before it, and they are not reported."""
    page(tmp_path, "# P\n\n```python {session=a name=one}\nx = 1\n```\n\n```python {session=a name=two}\nassert x == 1\n```\n")
    assert prove(tmp_path, "docs/guide/page.md::two").outcomes() == {"docs/guide/page.md::two": "passed"}


def test_a_session_has_one_file_with_the_lines_of_the_page():
    """In the file of a session each line of its parts stands at the line that it has on the page."""
    hidden, script = "<!-- rankbook: hidden\nz = 0\n-->\n", "```python {session=a}\nx = 1\n```\n\n"
    text = f"# P\n\n{hidden}{script}```pycon {{session=a}}\n>>> x\n1\n```\n".replace("\n", "\r\n")
    found = collect_text(text, "p.md", Site())
    (whole,) = {id(whole): whole for whole in shared.wholes(found).values()}.values()
    lines = re.split(r"\r\n|\n", whole.data().decode())
    page_lines = text.split("\r\n")
    assert {number: line for number, line in enumerate(lines, 1) if line} == {number: page_lines[number - 1] for number in (4, 7, 11, 12)}
    assert whole.children == found


SNIPPETS = """# Snippets

```python {name=inside}
--8<-- "failing.py"
```

```python {name=behind}
--8<-- "part.py"
assert b == 3
```

```python {session=one name=first}
--8<-- "part.py"
```

```python {session=one name=second}
assert b == 2
```

```pycon {session=one name=third}
>>> a
0
```

```python {name=prints}
print("7\\n9")
```

```text {.output}
--8<-- "out.txt"
```

--8<-- "failing.md"

```python {name=below}
assert not 1
```
"""


def test_a_failure_behind_a_snippet_names_the_line_of_the_page(tmp_path):
    """Lines of a snippet are told at the line that brings them in, those behind it at their own; a session runs what its parts show."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text(SNIPPETS)
    (tmp_path / "mkdocs.yml").write_text("site_name: S\nmarkdown_extensions: [attr_list, pymdownx.superfences, pymdownx.snippets]\n")
    (tmp_path / "part.py").write_text("a = 1\nb = 2\nc = 3\n\nd = 4\n")
    (tmp_path / "failing.py").write_text("a = 1\nb = 2\nc = 3\nd = 4\n\nassert not a\n")
    (tmp_path / "failing.md").write_text("Words.\n\n```python {name=brought}\nassert not 2\n```\n")
    (tmp_path / "out.txt").write_text("7\n8\n")
    done = prove(tmp_path, "docs")
    lines = SNIPPETS.splitlines()
    texts = {name.rpartition("::")[2]: report["text"] for name, report in done.ends().items() if report["outcome"] == "failed"}
    places = {name: {int(line) for line in re.findall(r'page\.md(?:", line |:)(\d+)', text)} for name, text in texts.items()}
    expected = {
        "inside": 4,
        "behind": lines.index("assert b == 3") + 1,
        "third": lines.index(">>> a") + 1,
        "prints": lines.index('--8<-- "out.txt"') + 1,
        "brought": lines.index('--8<-- "failing.md"') + 1,
        "below": lines.index("assert not 1") + 1,
    }
    assert places == {name: {line} for name, line in expected.items()}, done.output
    assert [done.outcomes()[f"docs/page.md::{name}"] for name in ("first", "second")] == ["passed", "passed"]


ENDS = """# Ends

<!-- rankbook: hidden
set -e
-->

```bash {name=shell}
cat > told.txt <<END
one
END
test "$(cat told.txt)" = one
true
```

```console {name=prompt}
$ echo one
one
```

```python {name=script}
assert "\\r" not in open(__file__, newline="").read()
```
"""


@pytest.mark.parametrize("end", ["\r\n", "\r"], ids=["crlf", "cr"])
def test_a_listing_has_the_line_ends_that_the_site_shows(tmp_path, end):
    """A page whose lines end otherwise gives its listings as the site does, whose reader copies lines that end in LF."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/ends.md").write_bytes(ENDS.replace("\n", end).encode())
    done = prove(tmp_path, "docs")
    assert done.outcomes() == {f"docs/ends.md::{name}": "passed" for name in ("shell", "prompt", "script")}, done.output


def test_a_source_keeps_its_line_ends(tmp_path):
    """A shell script with CRLF fails as it does in its tree; a listing in a Markdown file with CRLF is that of its page."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s/run.sh").write_bytes(b"true\r\n")
    (tmp_path / "s/README.md").write_bytes(b"# R\r\n\r\n```bash {name=inner}\r\ntrue\r\n```\r\n")
    ends, done = executed(tmp_path, {"pyproject.toml": "[tool.rankbook]\nsources = ['s']\n"})
    assert (ends["run.sh"], ends["inner"]) == ("failed", "passed"), done.output


def test_the_site_shows_what_is_executed_and_hides_what_is_hidden():
    """On the built guide each option is gone, each listing and each output is shown, and no hidden line can be read."""
    text = GUIDE.read_text()
    md, _ = site_of(GUIDE).markdown()
    shown = html.unescape(re.sub(r"<!--.*?-->|<[^>]*>", "", md.convert(text), flags=re.DOTALL))
    listings = collect_text(text, "guide.md", site_of(GUIDE))
    assert [listing.problem or misplaced(listing, kind_of(listing)) for listing in listings] == [None] * len(listings)
    assert sum(bool(listing.hidden) for listing in listings) == 1
    assert sum(len(listing.outputs) for listing in listings) >= 5
    for listing in listings:
        assert all(line in shown for line in listing.text.splitlines())
        hidden = "".join(line for _, line in listing.hidden)
        assert not hidden or shown.count(hidden) == 1  # once, in the listing that tells how it is written


class Files(dict):
    """Sources from a dictionary."""

    data = dict.get
    import_path = ImportPath()

    def gone_through(self) -> list[str]:
        return []

    def compiled_in(self, folder: str) -> list[Path]:
        return []

    def place(self, path: str) -> str:
        return path

    def is_data(self, path: str) -> bool:
        return False

    def data_in(self, folder: str, *, deep: bool, patterns: Sequence[str] = (), few: bool = False) -> list[str]:
        return []

    def names(self, folder: str) -> list[str]:
        return [Path(name).name for name in self if str(Path(name).parent) == (folder or ".")]


def test_what_is_placed_beside_a_listing(tmp_path):
    """The hashes of the other files are those of what was written, and can be had without writing; trees of threads do not mix."""
    from concurrent.futures import ThreadPoolExecutor
    from hashlib import sha256

    from rankbook.listing import About, Listing

    own = Listing("p.md", "x", "python", {}, "import other\nopen('data.txt')\n", 1, 2, About("pkg/own.py"))
    sources = Files({"pkg/other.py": b"import conftest\n", "pkg/data.txt": b"data", "pkg/unused.py": b"", "conftest.py": b"# c\n"})
    expected = {path: sha256(sources[path]).hexdigest() for path in ("conftest.py", "pkg/data.txt", "pkg/other.py")}
    assert modules_of(own, sources) == expected
    mirror = Mirror(tmp_path / "tree")
    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(lambda _: mirror.place(own, sources), range(32)))
    assert len({entry.root for entry in placed}) == 32
    for entry in placed:
        files = {path.relative_to(entry.root).as_posix(): path.read_bytes() for path in entry.root.rglob("*") if path.is_file()}
        assert files.pop(entry.path) == own.data()
        assert {path: sha256(data).hexdigest() for path, data in files.items()} == entry.modules == expected
    beside = Listing("p.md", "y", "bash", {}, "python pkg/own.py\n", 5, 6)
    assert modules_of(beside, sources, own) == {**expected, "pkg/own.py": sha256(own.data()).hexdigest()}


README = """# Ring

```bash {name=beside}
python train.py
torchrun --nproc-per-node=1 train.py > ranks.txt
test -f ranks.txt
```

```bash {name=from-the-root}
python examples/ring/train.py
```

```bash {name=there}
cd examples/ring && python ./train.py
```

```console {name=prompt}
$ python train.py
trained in ring
```

```bash {name=nothing-of-it}
basename "$(dirname "$(pwd)")"
```
"""


def executed(folder: Path, files: dict[str, str]) -> tuple[dict[str, str], Result]:
    """Write a tree, make its book and run it; gives the outcomes by the names of listings, too."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["gen", "--root", str(folder)]) == 0
    done = prove(folder, "docs")
    return {name.rpartition("::")[2]: outcome for name, outcome in done.outcomes().items()}, done


def test_a_command_starts_where_the_files_are_that_it_names(tmp_path):
    """A listing of a README runs the files beside it by their names or from the root, a script finds its own; the tree stays as it is."""
    files = {
        "pyproject.toml": "[tool.rankbook]\nsources = ['examples']\n",
        "examples/ring/README.md": README,
        "examples/ring/train.py": "import os\n\nif __name__ == '__main__':\n    print('trained in', os.path.basename(os.getcwd()))\n",
        "examples/ring/run.sh": "python train.py\n",
        "examples/ring/own.sh": 'cd "$(dirname "$0")"\npython train.py\n',
    }
    ends, done = executed(tmp_path, files)
    listings = ["beside", "from-the-root", "there", "prompt", "nothing-of-it"]
    assert ends == dict.fromkeys(["train.py", "how-to-run-it", "run.sh", "own.sh", *listings], "passed"), done.output
    assert {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "examples").rglob("*.*")} == files.keys() - {"pyproject.toml"}


def test_data_is_judged_where_its_format_is_strict(tmp_path):
    """JSON lines are parsed one by one; what has comments, or no section, by right is no code, and has no last run."""
    loose = {
        "x.json5": "{a: 1, /* why */}\n",
        ".eslintrc": '{"a": 1} // why\n',
        "tsconfig.json": '{"a": 1} // why\n',
        ".editorconfig": "root = true\n[*]\nindent_size = 4\n",
        ".npmrc": "a=b\n",
        "nginx.conf": "http {\n  server { }\n}\n",
    }
    judged = {
        "d.jsonl": '{"a": 1}\n\n{"a": 2}\n',
        "wrong.jsonl": '{"a": 1}\n{"b": }\n',
        "x.json": "[1]\n",
        "wrong.json": "[1] // why\n",
        "wrong.ini": "a = 1\n",
    }
    settings = {"pyproject.toml": "[tool.rankbook]\nsources = ['src']\nfindings = []\n"}
    ends, done = executed(tmp_path, settings | {f"src/{name}": text for name, text in (loose | judged).items()})
    assert ends == {name: "failed" if "wrong" in name else "passed" for name in judged}, done.output
    assert re.search(r"wrong.jsonl_docs.md:\d+: not valid JSON: Expecting value \(column 7\)", done.output), done.output
    for name in loose | judged:
        assert ("## Last run" in (tmp_path / f"docs/suite/src/{name}_docs.md").read_text()) is (name in judged), name


def test_a_source_is_executed_for_what_its_name_makes_of_it(tmp_path):
    """Python that no import finds is a program, one in a package too; a stub is parsed, and a template is no code."""
    files = {
        "pyproject.toml": "[tool.rankbook]\nsources = ['src']\nfindings = []\n",
        "src/beside.py": "x = 1\n",
        "src/run": "#!/usr/bin/env python3\nimport beside\nassert __name__ == '__main__'\n",
        "src/gui.pyw": "import beside\n",
        "src/X.PY": "assert __name__ == '__main__'\n",
        "src/a.b.py": "assert __name__ == '__main__'\n",
        "src/package/__init__.py": "",
        "src/package/c.d.py": "assert __name__ == '__main__'\n",
        "src/of_tests": "#!/usr/bin/env python3\nimport unittest\nclass T(unittest.TestCase): ...\nif __name__ == '__main__':\n"
        "    unittest.main(exit=False)\n",
        "src/stub.pyi": "def f(x: int) -> int: ...\nunknown: Unknown\n",
        "src/wrong.pyi": "x: int\ndef f(\n",
        "src/filled.py.in": "x = @x@\n",
        "src/filled.json.in": "{@x@}\n",
        "src/filled.sh.in": "exit @x@\n",
    }
    ends, done = executed(tmp_path, files)
    passed = ["beside.py", "how-to-run-it", "run", "gui.pyw", "X.PY", "a.b.py", "c.d.py", "of_tests", "stub.pyi"]
    assert ends == dict.fromkeys(passed, "passed") | {"wrong.pyi": "failed"}, done.output
    assert "docs/suite/src/wrong.pyi_docs.md:41: not valid Python: " in done.output
    for name in files.keys() - {"pyproject.toml", "src/package/__init__.py"}:
        text = (tmp_path / f"docs/suite/{name}_docs.md").read_text()
        assert ("## Last run" in text) is not name.endswith(".in"), text
