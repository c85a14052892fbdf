"""Nothing is green that was not run as it stands: pages, folders, the front page and the command for debt say the same."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers import rankbook
from nursery import run_module
from rankbook.ledger import Ledger
from tiny_site import environment

FILES = {
    "pyproject.toml": "[tool.rankbook]\nsources = ['tests']\ngpus = '0'\n",
    "mkdocs.yml": (
        "site_name: P\nuse_directory_urls: false\ntheme: {name: material, font: false}\nplugins: [search, rankbook]\n"
        "markdown_extensions: [admonition, attr_list, tables, {toc: {permalink: true}}, pymdownx.highlight, pymdownx.superfences]\n"
    ),
    "docs/index.md": "# Front\n\n<!-- rankbook:proof -->\n",
}
PASSES = "def test_a():\n    pass\n"
BOTH = f"{PASSES}\n\ndef test_b():\n    pass\n"


class Book:
    """A small project with its book.

    Args:
        folder: where it lies.
        files: its files, by path.
    """

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        for name, text in (FILES | files).items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a module; pytest in a new interpreter, for it looks at what is imported."""
        env = environment() | variables
        if command[0] != "pytest":
            return run_module(self.folder, *command, environment=env)
        return subprocess.run([sys.executable, "-m", *command], cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def gen(self) -> None:
        """Bring the pages up to date."""
        rankbook("gen", cwd=self.folder)

    def prove(self, *options: str, **variables: str) -> int:
        """Generate the pages and run their listings; gives pytest's exit status."""
        self.gen()
        return self.run("pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs", *options, **variables).returncode

    def badges(self) -> dict[str, str]:
        """Build the site; gives what stands beside the title of each page that shows something."""
        done = self.run("mkdocs", "build", "-q")
        assert done.returncode == 0, done.stdout + done.stderr
        found = {}
        for page in sorted((self.folder / "site").rglob("*.html")):
            if head := re.search(r"<span class=\"?rankbook-head\"?>(.*?)(?: <small>|</h1>|<a class=headerlink)", page.read_text()):
                name = page.relative_to(self.folder / "site").as_posix().removesuffix(".html")
                if page.name != "doc.html":  # what it shows is what its folder's index does
                    found[name.removeprefix("suite/").removeprefix("tests/")] = html.unescape(re.sub(r"<[^>]*>", "", head[1])).strip()
        return found

    def page(self, name: str) -> str:
        """Give the text of a built page."""
        return html.unescape(re.sub(r"<[^>]*>", "", (self.folder / "site" / name).read_text()))

    def debt(self) -> tuple[int, str]:
        """Ask for the skip debt; gives the exit status and what is said."""
        done = self.run("rankbook.cli", "ledger", "debt", "--fail-on-debt")
        return done.returncode, done.stdout


@pytest.fixture
def book_of(tmp_path):
    """A function that writes a project."""
    return lambda files, name="book": Book(tmp_path / name, files)


def test_a_ledger_in_the_place_of_another(book_of):
    """A ledger of as many runs as that of the last build is another one all the same."""
    book = book_of({"tests/test_f.py": "import os\n\n\ndef test_net():\n    assert 'BROKEN' not in os.environ\n"})
    assert book.prove() == 0
    assert set(book.badges().values()) == {"passed"}
    shutil.rmtree(book.folder / ".rankbook")
    assert book.prove(BROKEN="1") == 1
    assert set(book.badges().values()) == {"failed"}


def test_a_listing_that_is_edited_on_its_page(book_of):
    """Its proof is gone with the first character, and what runs is what the page shows, until its source says the same again."""
    book = book_of({"tests/test_b.py": "def test_b(): pass\n"})
    assert book.prove() == 0
    page = book.folder / "docs/suite/tests/test_b.py_docs.md"
    page.write_text(page.read_text().replace("def test_b(): pass", "def test_b(): 1/0;", 1))
    assert set(book.badges().values()) == {"older version"}
    assert "how-to-run-itpassed" not in re.sub(r"\s", "", book.page("suite/tests/test_b.py_docs.html"))
    status, said = book.debt()
    assert (status, said.partition(";")[0], "before the listing changed" in said) == (1, "1 test needs no GPU", True)
    assert book.prove() == 1
    assert set(book.badges().values()) == {"failed"}
    page.write_text(page.read_text().replace("def test_b(): 1/0;", "def test_b(): pass", 1))
    assert book.prove() == 0
    assert set(book.badges().values()) == {"passed"}


def test_a_conftest_file_that_is_new(book_of):
    """One that appears above a test takes its proof, with a page or without, as `--stale` runs the test again; so does one that goes."""
    book = book_of({"tests/test_y.py": PASSES, "tests/sub/test_z.py": PASSES})
    assert book.prove() == 0
    for place in ("tests/sub/conftest.py", "conftest.py"):
        book.write(place, "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef f():\n    raise RuntimeError('no')\n")
        book.gen()
        badges = book.badges()
        assert badges["sub/test_z.py_docs"] == "older version", place
        assert badges["test_y.py_docs"] == ("passed" if "sub" in place else "older version"), place
        assert f"but {place} has changed since" in book.page("suite/tests/sub/test_z.py_docs.html")
        (book.folder / place).unlink()
        book.gen()
        assert book.debt()[0] == 0, place
    badges = book.badges()
    assert {badges[name] for name in ("test_y.py_docs", "sub/test_z.py_docs")} == {"passed"}


STRICT = "[pytest]\nxfail_strict = true\n"
SETTINGS = {
    "tests/ini/pytest.ini": STRICT,
    "tests/tox/tox.ini": STRICT,
    "tests/path/pytest.ini": "[pytest]\npythonpath = lib\n",
    "tests/toml/pyproject.toml": "[tool.pytest.ini_options]\nxfail_strict = true\n",
}
AT_THE_ROOT = {
    "pytest.ini": STRICT,
    ".pytest.toml": "[pytest]\nxfail_strict = true\n",
    "setup.cfg": "[tool:pytest]\nxfail_strict = true\n",
}


def test_a_file_of_settings_of_pytest_that_is_new(book_of):
    """One that appears above a test takes its proof, as `--stale` runs the test again, wherever it lies."""
    text = f"import pytest\n\n\n@pytest.mark.xfail\n{PASSES}"
    folders = [Path(place).parent.name for place in SETTINGS]
    tests = {f"tests/{name}/sub/test_x.py": text for name in folders}
    book = book_of({**tests, "tests/other/test_y.py": PASSES})
    assert book.prove() == 0
    pages = [f"{name}/sub/test_x.py_docs" for name in folders]
    for place, settings in SETTINGS.items():
        book.write(place, settings)
    badges = book.badges()
    assert badges["other/test_y.py_docs"] == "passed"
    assert {badges[page] for page in pages} == {"older version"}
    for place, page in zip(SETTINGS, pages, strict=True):
        assert f"but {place} [pytest] has changed since" in book.page(f"suite/tests/{page}.html")
    said = book.debt()[1]
    assert "before a file beside the listing changed" in said
    assert said.splitlines()[-1] == f"skip debt: {len(pages)} of {len(pages) + 1} tests and listings"
    for place in SETTINGS:
        (book.folder / place).unlink()
    for place, settings in AT_THE_ROOT.items():
        assert book.debt()[0] == 0, place
        book.write(place, settings)
        said = book.debt()[1]
        assert "before a file beside the listing changed" in said, place
        assert said.splitlines()[-1] == f"skip debt: {len(pages) + 1} of {len(pages) + 1} tests and listings", place
        if place == "setup.cfg":
            badges = book.badges()
            assert {badges[page] for page in (*pages, "other/test_y.py_docs")} == {"older version"}
            assert "but pyproject.toml [pytest] has changed since" in book.page(f"suite/tests/{pages[0]}.html")
        (book.folder / place).unlink()
    badges = book.badges()
    assert {badges[page] for page in (*pages, "other/test_y.py_docs")} == {"passed"}
    book.write("tests/ini/pytest.ini", STRICT)
    assert book.prove("--stale") == 1
    assert book.badges()[pages[0]] == "failed"


def test_what_git_ignores_now_and_did_not_before(book_of):
    """A file beside a test counts no more once Git ignores it, and counts again when it does not, though it has not changed since."""
    book = book_of(
        {
            "pyproject.toml": f"{FILES['pyproject.toml']}[tool.pytest.ini_options]\npythonpath = ['src']\n",
            "src/pk.py": "V = 1\n",
            "tests/test_p.py": "import pk\n\n\ndef test_p():\n    assert pk.V\n",
        }
    )

    def git(*words):
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b", *words], cwd=book.folder, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", "--all")
    assert book.prove() == 0
    book.write("src/pk.py", "V = 2\n")
    book.write("tests/conftest.py", "")
    ways = {".gitignore": "src/\nconftest.py\n", ".git/info/exclude": "/src\nconftest.py\n"}
    for place, text in ways.items():
        book.gen()
        assert book.debt()[0] == 1, place
        book.write(place, text)
        assert book.badges()["test_p.py_docs"] == "older version", place  # Git tracks it all the same
        git("rm", "-rfq", "--cached", "--ignore-unmatch", "src", "tests/conftest.py")
        book.gen()
        assert book.badges()["test_p.py_docs"] == "passed", place
        book.write(place, "")
        book.gen()
        assert book.debt()[0] == 1, place
        git("add", "--all")
    (book.folder / "tests/conftest.py").unlink()
    for place in ("src/.gitignore", "tests/.gitignore"):
        book.write(place, "*\n")
    git("rm", "-rfq", "--cached", "src")
    book.write("tests/pytest.ini", STRICT)
    book.gen()
    assert book.debt()[0] == 0
    (book.folder / "tests/.gitignore").unlink()
    assert book.badges()["test_p.py_docs"] == "older version"


def test_a_program_that_fails_below_tests_that_pass(book_of):
    """A folder is not green while anything in it fails."""
    program = "import sys\n\nif __name__ == '__main__':\n    sys.exit(3)\n"
    book = book_of({"tests/scripts/bad.py": program, "tests/scripts/test_s.py": PASSES, "tests/fine/test_t.py": PASSES})
    assert book.prove() == 1
    badges = book.badges()
    assert {badges[name] for name in ("index", "scripts/index", "scripts/bad.py_docs")} <= {"failed", "1 failed"}
    assert {badges[name] for name in ("fine/index", "fine/test_t.py_docs", "scripts/test_s.py_docs")} == {"passed"}


def test_listings_inside_a_markdown_source(book_of):
    """They stand by their own text and options, are added up, are found by their document, and lose their proof when it changes."""
    text = "# T\n\n```python\nassert 1\n```\n\n```python {timeout=60 name=two}\nassert 2\n```\n"
    book = book_of({"tests/README.md": text})
    assert book.prove() == 0
    _, *rows = rankbook("ledger", "show", "tests/README.md", cwd=book.folder).splitlines()
    assert sorted(row.split()[0] for row in rows) == ["passed", "passed"]
    assert book.badges() == {"README.md_docs": "passed", "index": "passed"}
    book.write("tests/README.md", text.replace("assert 2", "assert not 2"))
    book.gen()
    assert set(book.badges().values()) == {"older version"}
    assert book.prove() == 1
    assert book.badges() == {"README.md_docs": "1 failed", "index": "1 failed"}
    assert "README.md::two" in book.page("suite/tests/index.html") + book.page("index.html")


def test_debt_of_tests_that_want_no_gpu_at_all(book_of):
    """What is skipped as soon as there is a GPU is told apart from what needs none, in debt and on the site."""
    alone = "@pytest.mark.skipif(torch.cuda.is_available(), reason='x')\ndef test_alone():\n    pass\n"
    book = book_of({"tests/test_d.py": f"import pytest\nimport torch\n\n\n{BOTH}\n\n{alone}"})
    assert book.prove("-k", "test_a and not alone") == 0
    assert book.debt()[1].splitlines()[:2] == [
        "1 test needs no GPU; last run: never; smallest machine: CPU",
        "1 test needs no GPU at all; last run: never; smallest machine: CPU",
    ]
    assert book.badges()
    rows = re.findall(r"no GPU(?: at all)?(?=1 test)", book.page("index.html"))
    assert sorted(rows) == ["no GPU", "no GPU at all"]


def test_debt_counts_what_the_pages_show(book_of):
    """Tests without a run, and those whose source has changed since, owe one, whatever part was run last; those that are gone do not."""
    book = book_of({"tests/test_d.py": BOTH})
    assert book.prove("-k", "test_a") == 0
    assert book.debt() == (1, "1 test needs no GPU; last run: never; smallest machine: CPU\nskip debt: 1 of 2 tests and listings\n")
    assert book.prove() == 0
    assert book.debt()[0] == 0
    book.write("tests/test_d.py", BOTH.replace("def test_b():\n    pass", "def test_b():\n    assert 0"))
    assert book.prove("-k", "test_a and not how") == 0
    status, said = book.debt()
    assert (status, said.count("\n")) == (1, 2)
    assert said.startswith("1 test needs no GPU; last run: ")
    assert "before the listing changed" in said
    book.write("tests/test_d.py", PASSES)
    assert book.prove("-k", "test_a") == 0
    assert book.debt()[0] == 0


BASE = """\
import unittest


class Base(unittest.TestCase):
    value = 0

    def test_value(self):
        assert self.value
"""
CHILD = "import common_base\n\n\nclass TestChild(common_base.Base):\n    value = 1\n"
MAINS = (
    "if __name__ == '__main__':\n    unittest.main()\n",
    "from unittest import main as start\nif '__main__' == __name__:\n    start(verbosity=2)\n",
    "import unittest as u\ndef all_of_them():\n    u.main()\nif 1:\n    if __name__ == '__main__':\n        all_of_them()\n",
)
NO_MAINS = (
    "def main(): pass\nif __name__ == '__main__':\n    main()\n",
    "if __name__ == '__main__':\n    print(unittest.main)\n",
    "if 0:\n    unittest.main()\n",
)


def test_what_a_page_lists_is_what_runs(book_of):
    """Tests of base classes are those of the files that inherit them; a file that is no test module by its name may run its own."""
    case = "import unittest\n\n\nclass Checks(unittest.TestCase):\n    def test_c(self):\n        pass\n\n\n"
    scripts = {f"tests/script_{number}.py": case + main for number, main in enumerate((*MAINS, *NO_MAINS))}
    book = book_of({"tests/common_base.py": f'"""A base.\n\n>>> 1\n1\n"""\n{BASE}', "tests/test_child.py": CHILD, **scripts})
    book.write("pytest.ini", "[pytest]\naddopts = --doctest-modules\n")
    assert book.prove() == 0
    assert book.debt()[0] == 0
    runs = Ledger(book.folder / ".rankbook/ledger.sqlite").latest()
    names = {run.node_id.partition("_docs.md::")[0].rpartition("/")[2]: set() for run in runs}
    for run in runs:
        names[run.node_id.partition("_docs.md::")[0].rpartition("/")[2]].add(run.node_id.partition("_docs.md::")[2])
    assert names.pop("common_base.py") == {"common_base"}
    assert names.pop("test_child.py") == {"how-to-run-it", "TestChild::test_value"}
    for number in range(len(scripts)):
        is_run = number < len(MAINS)
        page = (book.folder / f"docs/suite/tests/script_{number}.py_docs.md").read_text()
        assert ("Checks::test_c" in page, "pytest tests/script" in page) == (is_run, is_run), number
        assert ("Checks::test_c" in names[f"script_{number}.py"]) == is_run, number
    page = (book.folder / "docs/suite/tests/common_base.py_docs.md").read_text()
    assert "It is a test module" not in page and "## What is tested" not in page


DOCTESTS = '''
def wrong():
    """Say it.

    >>> wrong()
    1
    """


class Ring:
    def walk(self):
        """Walk.

        >>> 1
        1
        """


def test_ring():
    pass
'''


def test_doctests_are_counted_apart(book_of):
    """A book has as many tests as its pages list, and says how many doctests were run besides."""
    files = {"tests/rings/test_ring.py": DOCTESTS, "tests/tools/__init__.py": '""">>> 1\n1\n"""\n', "tests/values.py": "VALUE = 1\n"}
    book = book_of(files)
    book.write("pytest.ini", "[pytest]\naddopts = --doctest-modules\n")
    assert book.prove() == 1
    assert book.badges()["index"] == "1 failed"
    said = "Other listings that were run, 3 doctests among them:"
    for folder, others in {"": said, "tests/": said, "tests/rings/": "Doctests that were run:"}.items():
        page = book.page(f"suite/{folder}index.html")
        assert "1 test in 1 file" in page, folder
        assert "A machine has run 1 of 1 test as they are now" in page, folder
        assert others in page, folder
    page = book.page("suite/tests/rings/test_ring.py_docs.html")
    assert "1 test: 1 passed. 2 doctests: 1 passed, 1 failed. 1 other listing: 1 failed. " in page
    assert "1 doctest: 1 passed. " in book.page("suite/tests/tools/__init__.py_docs.html")


def test_what_was_not_run_says_why_beside_the_title(book_of):
    """A source in a language that nothing runs has no row that could say it, and a module that is skipped as a whole has one."""
    skipped = "import pytest\n\npytest.skip('no <ring> here', allow_module_level=True)\n\n\ndef test_a():\n    pass\n"
    apart = "import pytest\n" + "".join(f"\n\n@pytest.mark.skip(reason='{why}')\ndef test_{why}(): pass\n" for why in ("one", "two"))
    book = book_of({"tests/kernel.cu": "int main() { return 0; }\n", "tests/test_s.py": skipped, "tests/test_t.py": apart})
    assert book.prove() == 0
    badges = book.badges()
    assert {badges[name] for name in ("kernel.cu_docs", "test_s.py_docs", "test_t.py_docs")} == {"skipped"}
    heads = {}
    for name in ("kernel.cu", "test_s.py", "test_t.py"):
        page = (book.folder / f"site/suite/tests/{name}_docs.html").read_text()
        heads[name] = re.search(r'<span class="?rankbook-head"?>(.*?)</h1>', page)[1]
    assert "<small>rankbook runs no CUDA source</small>" in heads["kernel.cu"]
    assert "href" not in heads["kernel.cu"].partition("headerlink")[0]
    assert "<small>no &lt;ring&gt; here</small>" in heads["test_s.py"]
    assert re.search(r"href=\"?#rb-run-\d", heads["test_s.py"])
    assert "<small>" not in heads["test_t.py"]


def test_debt_of_what_was_run_beside_other_files(book_of):
    """A test or program whose helper or conftest file is another one now owes a run; a page's own command is none of them."""
    program = "import helper\n\nif __name__ == '__main__':\n    assert helper.VALUE\n"
    test = "from helper import VALUE\n\n\ndef test_a():\n    assert VALUE\n"
    book = book_of({"tests/helper.py": "VALUE = 1\n", "tests/test_h.py": test, "tests/test_i.py": PASSES, "tests/program.py": program})
    assert book.prove() == 0
    number = 4  # two tests, and two programs, of which one only defines a name
    assert book.debt() == (0, f"no skip debt: all of {number} tests and listings have run\n")
    book.write("tests/helper.py", "VALUE = 0\n")
    book.gen()
    status, said = book.debt()
    assert (status, said.splitlines()[-1]) == (1, f"skip debt: 3 of {number} tests and listings")
    assert "1 test needs no GPU; last run: " in said and "before a file beside the listing changed; smallest machine: CPU" in said
    assert {book.badges()[name] for name in ("test_h.py_docs", "program.py_docs", "helper.py_docs")} == {"older version"}
    book.write("tests/helper.py", "VALUE = 1\n")
    book.gen()
    assert book.debt()[0] == 0
    book.write("tests/conftest.py", "")
    book.gen()
    assert "2 tests need no GPU; last run: " in book.debt()[1]


def test_folders_that_pytest_passes_by(book_of):
    """Pages of tests in `dist` and `build` are collected like others, but for what somebody leaves out by `--ignore`."""
    book = book_of(
        {"tests/dist/test_a.py": PASSES, "tests/build/deep.md/test_b.py": "def test_b():\n    assert 0\n", "docs/build/x.md": "# X\n"}
    )
    assert book.prove() == 1
    assert {badge for name, badge in book.badges().items() if name.endswith("py_docs")} == {"passed", "failed"}
    assert book.prove("--ignore", "docs/suite/tests/build") == 0


def test_declared_gpus_pay_no_debt(book_of):
    """A run on GPUs that were only declared is none."""
    guide = "# G\n\n```python {gpus=2}\nassert True\n```\n"
    settings = "[tool.rankbook]\nsources = ['tests']\ngpus = '2 x H200'\n"
    book = book_of({"pyproject.toml": settings, "docs/guide.md": guide, "tests/test_e.py": PASSES})
    assert book.prove() == 0
    status, said = book.debt()
    assert status == 1
    assert "need 2 GPUs" in said or "needs 2 GPUs" in said
