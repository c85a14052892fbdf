"""The pages about the whole suite: what they say of a small one, how they are split for a large one, what an edit changes."""

import re
import shutil
from collections import Counter
from pathlib import Path

import markdown
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from rankbook import front_matter, model
from rankbook.analyse import analyse
from rankbook.config import Settings
from rankbook.counts import Counts, counted, kept
from rankbook.model import PACKAGES, Finding, Survey, Use
from rankbook.pages import pack_folders, suite
from rankbook.pages.apis import ApiRow, api_rows
from rankbook.pages.contents import suite_links
from rankbook.pages.findings_index import finding_counts
from rankbook.pages.folders import Tree, deepest_first, file_row, first_lines, folder_view, totals_of
from rankbook.pages.hardware import Hardware, columns, hardware_of, read, told
from rankbook.pages.machines import asks_for_less, machines, parts_of_smallest
from rankbook.pages.render import Book, folder_pages
from rankbook.pages.shards import LIMIT, Cut, cut, folders, letters, parts, split
from rankbook.pages.words import WordRow, word_rows
from rankbook.requirements import Requirement
from rankbook.site.assets import script
from rankbook.sources.parse import parse_bytes
from rankbook.store import Store
from tiny_site import build, write_project

BOOK = Book("Tiny", pack_folders(Settings(root=Path(__file__).parents[1])))
EXTENSIONS = ["tables", "attr_list", "toc"]
FILES = {
    "suite/test_two.py": '''\
# Owner(s): ["oncall: ring"]
import unittest

import pytest
import torch.distributed as dist
from torch.testing._internal.common_distributed import skip_if_lt_x_gpu


class TestTwo(unittest.TestCase):
    @skip_if_lt_x_gpu(2)
    def test_sum(self):
        dist.all_reduce(1)

    @pytest.mark.slow
    def test_plain(self):
        """Needs nothing."""
''',
    "suite/deep/test_one.py": '''\
# Owner(s): ["oncall: ring", "module: deep"]
import pytest
import torch.distributed as dist
from torch.testing._internal.common_distributed import skip_if_lt_x_gpu

pytestmark = pytest.mark.slow


@skip_if_lt_x_gpu(8)
def test_all():
    dist.all_reduce(2)
    dist.barrier()


def helper():
    """No test."""
''',
    "lib.py": "LIMIT = 3\n\n\nclass Ring:\n    def turn(self): ...\n",
}


def rows_of(files):
    """Give the rows of files by path, those of words and those of APIs."""
    project = analyse(parse_bytes(path, text.encode()) for path, text in files.items())
    rows = {path: file_row(module, project.surveys[path], 0) for path, module in project.modules.items()}
    words = [row for module in project.modules.values() for row in word_rows(module)]
    return rows, words, [row for survey in project.surveys.values() for row in api_rows(survey)]


def made(pages):
    """Give pages by name, and check what all of them have in common."""
    found = {}
    for page in pages:
        assert page.path not in found
        found[page.path] = page.data.decode()
        values, start = front_matter.split(found[page.path])
        stamp = front_matter.read(values)
        assert stamp.page in front_matter.SUITE_PAGES and stamp.source == ""
        assert "_" not in page.path and not re.search(r"[^a-z0-9.~-]", page.path)
        found[page.path] = found[page.path][start:]
    return found


def word_pages(words):
    """Make the whole index of words."""
    by_word = {}
    for row in words:
        by_word.setdefault(row.word, []).append(row)
    order = sorted(by_word, key=lambda word: (letters(word), word))
    shards, _ = suite.word_shards(order, [len(by_word[word]) for word in order])
    yield from suite.word_contents(BOOK, shards)
    for shard in shards:
        yield suite.word_page(BOOK, shard, [row for word in shard.names for row in by_word[word]])


def needs(*pairs, otherwise="skipped"):
    """A test with requirements."""
    return model.Test("t", "t", 1, "t.py", requirements=tuple(Requirement(kind, value, "", otherwise=otherwise) for kind, value in pairs))


@pytest.mark.parametrize(
    ("pairs", "key", "text"),
    [
        ((), "0", "no GPU"),
        ((("backend", "gloo"), ("device", "cpu"), ("world size", "4")), "0", "no GPU"),
        ((("gpus", "1"),), "1", "1 GPU"),
        ((("gpus", "2"), ("gpus", "4"), ("backend", "nccl")), "4", "4 GPUs"),
        ((("gpus", ">= 2"),), "2", "2 GPUs"),
        ((("gpus", "2 to 4"),), "2-4", "2 to 4 GPUs"),
        ((("gpus", "== 2"),), "2-2", "exactly 2 GPUs"),
        ((("gpus", "<= 1"),), "0-1", "at most 1 GPU"),
        ((("gpus", "== 0"),), "0-0", "no GPU at all"),
        ((("gpus", "any"),), "any", "any number of GPUs"),
        ((("gpus", "any"), ("gpus", "2")), "2", "2 GPUs"),
        ((("gpus", "2"), ("gpus", "<= 1")), "unknown", "GPUs (number not said)"),
        ((("gpus", "2 * self.world_size"),), "unknown", "GPUs (number not said)"),
        ((("gpus", "9" * 5000),), "unknown", "GPUs (number not said)"),
        ((("backend", "nccl"),), "unknown", "GPUs (number not said)"),
        ((("backend", "nccl or gloo"),), "0", "no GPU"),
        ((("device", "cuda"),), "unknown", "GPUs (number not said)"),
        ((("peer access", ""),), "unknown", "GPUs (number not said)"),
        ((("capability", ">= 8.0"),), "unknown", "GPUs (number not said)"),
        ((("capability", "< 9.0"),), "0", "no GPU"),
        ((("platform", "not ROCm"),), "0", "no GPU"),
        ((("device", "xpu or hpu"),), "other", "another accelerator"),
        ((("device", "mps"), ("gpus", "1")), "other", "another accelerator"),
        ((("device", "cuda or mps"),), "0", "no GPU"),
    ],
)
def test_the_class_of_hardware_of_a_test(pairs, key, text):
    """The number of GPUs is read from the requirements, and never guessed."""
    hardware = hardware_of(needs(*pairs))
    assert (hardware.key, hardware.text) == (key, text)
    assert read(key) == hardware


def test_a_requirement_that_only_describes_asks_for_no_gpu():
    """A number of GPUs without which the test runs all the same is not needed."""
    assert hardware_of(needs(("gpus", "4"), otherwise="")) == Hardware()


def test_the_least_of_several_alternatives_is_needed():
    """Where one of several things is enough, the machine with the fewest GPUs is."""
    either = ((Requirement("gpus", "4", ""),), (Requirement("gpus", "2", ""), Requirement("backend", "nccl", "")))
    alone = model.Test("t", "t", 1, "t.py", requirements=(Requirement("one of", "4 or 2", "", either=either),))
    assert hardware_of(alone).key == "2"
    assert told(["unknown", "2", "0", "8", "4"]) == ["no GPU", "2, 4 or 8 GPUs", "GPUs (number not said)"]


def test_how_far_a_machine_goes():
    """Each step counts the tests that have GPUs enough and not too many; those without a number count for none."""
    found = machines({"0": 5, "2": 3, "2-4": 1, "0-0": 1, "any": 2, "unknown": 4, "8": 4})
    assert [(each.gpus, each.asking, each.enough, each.share) for each in found] == [
        (0, 6, 6, "30 %"),
        (1, 0, 7, "35 %"),
        (2, 4, 11, "55 %"),
        (8, 4, 14, "70 %"),
    ]


def test_the_smallest_machine_for_all():
    """Of several lower limits the highest counts; upper limits and what any machine meets are no part of it."""
    asks = {
        "capability": Counter({">= 8.0": 3, ">= 9.0": 1, "< 8.0": 2}),
        "memory": Counter({"900MB": 5, "20 GB": 1, "12GB": 7}),
        "library": Counter({"NCCL >= 2.9": 4, "NCCL >= 2.10": 2, "MKL": 9, "Python < 3.8 or Python >= 3.9": 1}),
        "package": Counter({"not pynvml": 2, "scipy": 1}),
        "device": Counter({"cpu or cuda": 4, "cuda": 1, "mps": 7}),
    }
    found = parts_of_smallest({"0": 3, "2": 2, "8-8": 1, "other": 5}, asks)
    assert {part.kind: part.values for part in found} == {
        "gpus": (("exactly 8 GPUs", 1),),
        "capability": ((">= 9.0", 1),),
        "memory": (("20 GB", 1),),
        "library": (("MKL", 9), ("NCCL >= 2.10", 2)),
        "package": (("scipy", 1),),
        "device": (("cuda", 1),),
    }
    assert asks_for_less(asks) == (("capability", "< 8.0", 2),)


@given(st.sets(st.integers(0, 10**6), max_size=30), st.booleans())
@settings(max_examples=50, deadline=None)
def test_every_class_has_one_column(numbers, worded):
    """However many numbers of GPUs there are, a table has few columns, and each class stands in exactly one."""
    classes = [*map(str, numbers), *(["any", "unknown"] if worded else [])]
    chosen = columns(classes)
    assert Counter(key for _, keys in chosen for key in keys) == Counter(classes)
    assert len(chosen) <= 10


def test_pages_of_a_small_suite():
    """Each page says what stands in the sources: numbers, owners, marks."""
    pages = made(suite.suite_pages(BOOK, rows_of(FILES)[0]))
    assert sorted(pages) == ["suite-hardware.md", "suite-marks.md", "suite-owners.md"]
    hardware, marks, owners = (pages[name] for name in sorted(pages))
    assert "3 tests in 2 files" in hardware
    for line in (
        "| none | 1 | 1 | 33 % |",
        "| 2 | 1 | 2 | 66 % |",
        "| 8 | 1 | 3 | 100 % |",
        "- **GPUs**: 8 GPUs (1)",
        "| Folder | Files | Tests | No GPU | 2 | 8 |",
        "| [`suite/deep/`](suite/deep/index.md) | 1 | 1 |  |  | 1 |",
        "| [`suite/test_two.py`](suite/test_two.py_docs.md) | 2 | 1 | 1 |  |",
    ):
        assert line in hardware.splitlines()
    assert (
        "| `slow` | 2 | 2 | [`test_one.py`](suite/deep/test_one.py_docs.md) (1), [`test_two.py`](suite/test_two.py_docs.md) (1) |" in marks
    )
    assert "| [`oncall: ring`](#oncall-ring) | 2 | 3 | 1 | 1 | 1 |" in owners
    assert "## `module: deep`\n\n- [`suite/deep/test_one.py`](suite/deep/test_one.py_docs.md): 1 test, 8 GPUs\n" in owners
    assert "2 tests: 1 with no GPU, 1 with 2 GPUs" in owners


def test_files_of_one_name_are_told_apart():
    """In a row of a table, files of one name have as many of their folders in their labels as it takes; others have none."""
    row = rows_of(FILES)[0]["suite/test_two.py"]
    same = ["a/ops/test_ops.py", "b/ops/test_ops.py", "b/nn/test_ops.py", "test_ops.py", "x/conftest.py", "y/x/conftest.py"]
    pages = made(suite.suite_pages(BOOK, {path: replace(row, path=path) for path in [*same, "b/nn/test_two.py"]}))
    [said] = [line for line in pages["suite-marks.md"].splitlines() if line.startswith("| `slow` ")]
    assert re.findall(r"\[`([^`]+)`\]\(([^)]+)_docs\.md\)", said) == [
        ("a/ops/test_ops.py", "a/ops/test_ops.py"),
        ("nn/test_ops.py", "b/nn/test_ops.py"),
        ("test_two.py", "b/nn/test_two.py"),
        ("b/ops/test_ops.py", "b/ops/test_ops.py"),
        ("test_ops.py", "test_ops.py"),
        ("x/conftest.py", "x/conftest.py"),
        ("y/x/conftest.py", "y/x/conftest.py"),
    ]


def test_indexes_of_a_small_suite_are_one_page_each():
    """Words lead to their lines, APIs to the lines of the tests that use them, with what these tests need."""
    _, words, apis = rows_of(FILES)
    pages = made(word_pages(words))
    assert list(pages) == ["suite-words.md"]
    for line in (
        "- `LIMIT`: constant [`lib.py:1`](lib.py_docs.md#__codelineno-source-1)",
        "- `turn`: method [`lib.py:5`](lib.py_docs.md#__codelineno-source-5)",
        "- `test_all`: test [`test_one.py:10`](suite/deep/test_one.py_docs.md#__codelineno-source-10)",
    ):
        assert line in pages["suite-words.md"].splitlines()
    shards = api_shards(Counter(row.name for row in apis))
    assert [shard.key for shard in shards] == [""] and not list(suite.api_contents(BOOK, shards))
    page = made([suite.api_page(BOOK, shards[0], apis)])["suite-apis.md"]
    one, two = (f"[`{path[-11:]}:{line}`]({path}_docs.md#__codelineno-source-{line})" for path, line in PLACES)
    row = next(line for line in page.splitlines() if line.startswith("| `all_reduce` |"))
    assert row == f"| `all_reduce` | 2 | 2 or 8 GPUs | {one}; {two} |"
    assert "## `torch.distributed`" in page


PLACES = (("suite/deep/test_one.py", 11), ("suite/test_two.py", 12))


def test_what_helpers_use_is_told_by_the_helper():
    """A name that only a helper in another file uses is shown at the helper's line, for the files whose tests reach it."""
    use = Use("os.getpid", (), ("t",), places=(("common.py", 4), ("common.py", 9)))
    rows = [row for path in ("a.py", "b.py") for row in api_rows(Survey(path, tests=(needs(),), uses=(use,)))]
    page = made([suite.api_page(BOOK, api_shards({"os.getpid": 2})[0], rows)])["suite-apis.md"]
    helper = "[`common.py:4`](common.py_docs.md#__codelineno-source-4)"
    assert f"| `getpid` | 2 | no GPU | {helper} for [`a.py`](a.py_docs.md), [`b.py`](b.py_docs.md) |" in page


def test_a_suite_without_anything_has_no_pages():
    """No page is made that would say nothing."""
    rows, words, apis = rows_of({"a.txt": "words\n"})
    assert not list(suite.suite_pages(BOOK, rows))
    assert not words and not apis
    assert suite.word_shards([], []) == suite.api_shards([], []) == ([], [])
    assert (
        not list(suite.word_contents(BOOK, [])) and not list(suite.untested_pages(BOOK, [], 9)) and not list(suite.finding_pages(BOOK, []))
    )
    assert suite.suite_kinds(rows.values(), untested=False, findings=False) == ()
    rows = rows_of(FILES)[0]
    assert suite.suite_kinds(rows.values(), untested=True, findings=False) == (
        "suite-hardware",
        "suite-apis",
        "suite-untested",
        "suite-words",
        "suite-marks",
        "suite-owners",
    )


def test_untested_names_and_findings():
    """A name leads to its definition unless it stands outside the tree; a rule to its explanation and its files."""
    names = [model.PublicName("pkg.b", "pkg/b.py", 3, "function"), model.PublicName("pkg.C.run", f"{PACKAGES}pkg/c.py", 9, "method")]
    page = made(suite.untested_pages(BOOK, names, 9, frozenset({"pkg/b.py"})))["suite-untested.md"]
    assert "mentions: 2 of 9 names." in page
    assert "## `pkg`\n\n- `b`: function, [`b.py:3`](pkg/b.py_docs.md)\n" in page
    assert "## `pkg.C`\n\n- `run`: method, `c.py:9`\n" in page
    found = [Finding("S301", "suspicious-pickle-usage", "m", line, "https://x.org/S301") for line in (7, 4)]
    counts = [*finding_counts("a/x.py", found), *finding_counts("b/y.py", [Finding("PERF401", "manual-list", "m", 1, "")])]
    page = made(suite.finding_pages(BOOK, counts))["suite-findings.md"]
    assert "ruff has 3 findings in 2 files." in page
    link = "[`x.py:4`](a/x.py_docs.md#__codelineno-source-4)"
    assert f"| [`S301`](https://x.org/S301) | suspicious pickle usage | 2 | 1 | {link} (2) |" in page
    assert "| [`a/`](a/index.md) | 2 |  | 2 |" in page


def api_shards(numbers):
    """Give the pages of an index of APIs."""
    order = sorted(numbers, key=lambda name: (parts(name), name))
    return suite.api_shards(order, [numbers[name] for name in order])[0]


NAMES = st.dictionaries(
    st.one_of(st.text("aB_.tés", max_size=8), st.text(max_size=4), st.sampled_from("ab").map(lambda each: each * 400)),
    st.integers(1, 700),
    max_size=60,
)


@given(NAMES, st.sampled_from([letters, parts, folders]), st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_a_split_index_has_every_name_once(counts, tokens, most):
    """Whatever names there are: each stands on one page, in order; no page is too long, and any file system tells them apart."""
    shards = split(counts, tokens, most=most)
    names = [name for shard in shards for name in shard.names]
    assert names == sorted(counts, key=lambda name: (tokens(name), name))
    keys = [shard.key for shard in shards]
    assert len(set(keys)) == len(keys) and not any(re.search(r"[^a-z0-9.~-]", key) or len(key) > 80 for key in keys)
    assert (keys == [""]) == (len(keys) == 1)
    for shard in shards:
        assert len(shard.names) == 1 or sum(min(counts[name], most) for name in shard.names) <= LIMIT
        assert shard.rows == sum(counts[name] for name in shard.names)


def test_names_that_each_begin_with_the_one_before_are_split():
    """A ladder of names as deep as the index is long costs no depth of calls."""
    ladder = {"a" * length: 1 for length in range(1, 3000)}
    assert sum(len(shard.names) for shard in split(ladder)) == len(ladder)


def test_an_edit_moves_few_names():
    """One name more, in an index of thousands, changes its own page and at most those of its neighbours."""
    counts = {f"test_{first}{second}_{number}": 1 for first in "abcdefghij" for second in "klmnop" for number in range(70)}
    before = {(shard.key, shard.names) for shard in split(counts)}
    after = {(shard.key, shard.names) for shard in split(counts | {"test_cm_new": 1})}
    assert len(before) > 15
    assert len(after - before) <= 3


def test_a_large_index_is_split_and_bounded():
    """A table of contents leads to every page; no page of thousands of words is longer than a reader's patience."""
    words = [
        WordRow(f"{letter}{number:x}", "function", f"some/folder/of/the/tree/module_{number % 50}.py", number + 1)
        for letter in "abcdefghij"
        for number in range(2000)
    ] + [WordRow("common", "method", f"m{number}.py", 1) for number in range(5000)]
    pages = made(word_pages(words))
    first = pages["suite-words.md"]
    links = re.findall(r"\]\((suite-words-[^)]+)\)", first)
    assert links and len(links) == len(set(links)) and {*links} == {*pages} - {"suite-words.md"}
    assert max(map(len, pages.values())) < 64 * 1024
    listed = sum(page.count("\n- `") for page in pages.values())
    assert listed == 20_001
    assert "and 4,980 more" in next(page for page in pages.values() if "- `common`" in page)


def test_a_very_large_index_has_tables_of_contents_by_letter():
    """With hundreds of pages the first one leads to a table of contents of each letter, and these lead to all pages."""
    words = [WordRow(f"{letter}{number:05x}", "test", "t.py", 1) for letter in "xyz" for number in range(32_000)]
    pages = made(word_pages(words))
    chapters = re.findall(r"\]\(([^)]+)\)", pages["suite-words.md"].partition("\n- ")[2])
    assert chapters == ["suite-words-~x.md", "suite-words-~y.md", "suite-words-~z.md"]
    linked = [link for name in chapters for link in re.findall(r"\]\((suite-words-[^)]+)\)", pages[name])]
    assert {*linked} == {*pages} - {"suite-words.md", *chapters}


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8, unique=True), st.sampled_from(["site", "forge"]))
@settings(max_examples=80, deadline=None)
def test_no_name_breaks_its_page(names, renderer):
    """Whatever words, files, owners and values are called, a page has an entry for each and no tag that the name made up."""
    render = MarkdownIt("commonmark").enable("table").render if renderer == "forge" else markdown.Markdown(extensions=EXTENSIONS).convert
    rows = [WordRow(name, "class", f"{name.replace('/', '')}.py", 1) for name in names]
    shard = suite.word_shards(sorted(names, key=lambda name: (letters(name), name)), [1] * len(names))[0][0]
    page = made([suite.word_page(BOOK, shard, rows)])["suite-words.md"]
    assert render(page).count("<li>") == len(names)
    rows = [ApiRow(f"m.{name}", "t.py", (1,), 0, "", 1, ("0",), (f"mark {name}",)) for name in names]
    shards = api_shards({row.name: 1 for row in rows})
    html = render(made([suite.api_page(BOOK, shards[0], rows)])[f"suite-apis{'-' * bool(shards[0].key)}{shards[0].key}.md"])
    assert html.count("<tr>") == len(names) + html.count("<thead>")
    assert not re.search(r"<(?!/?(?:h1|h2|p|a|code|table|thead|tbody|tr|th|td|div|em)\b)", html)


def test_a_large_suite_lists_its_files_and_owners_on_further_pages():
    """Beyond a page's length the files are listed by folder, owners and marks by page, and the first page leads there."""
    row = rows_of(FILES)[0]["suite/test_two.py"]
    rows = {f"d{number % 7}/test_{number}.py": row for number in range(900)}
    rows = {path: type(row)(**{**{name: getattr(row, name) for name in row.__slots__}, "path": path}) for path in rows}
    pages = made(suite.suite_pages(BOOK, rows))
    for kind in ("suite-hardware", "suite-owners"):
        parts_ = {name for name in pages if name.startswith(f"{kind}-")}
        assert len(parts_) > 2
        assert {*re.findall(rf"\n- .*\]\(({kind}-[^)]+)\)", pages[f"{kind}.md"])} == parts_
        assert sum(pages[name].count("_docs.md)") for name in parts_) == 900
        assert max(len(pages[name]) for name in parts_) < 64 * 1024
    assert re.search(r"\| \[`oncall: ring`\]\(suite-owners-[^)]+\) \| 900 \| 1,800 \|", pages["suite-owners.md"])
    assert "| 2 | 900 | 1,800 | 100 % |" in pages["suite-hardware.md"]
    assert "and 892 more files" in pages["suite-marks.md"]


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_the_index_of_the_root_names_the_pages(pack):
    """In each layout the root's index leads to the pages that there are, and no other index does."""
    project = analyse(parse_bytes(path, text.encode()) for path, text in FILES.items())
    rows, totals = rows_of(FILES)[0], {}
    for path in deepest_first(project.folders):
        totals[path] = totals_of(project.folders[path], rows, totals)
    links = tuple(suite_links(suite.suite_kinds(rows.values(), untested=False, findings=True)))
    keywords = {path: first_lines(module) for path, module in project.modules.items()}
    tree = Tree("Tiny", project.folders, rows, totals, keywords, frozenset(), suite=links)
    book = Book("Tiny", pack_folders(Settings(root=Path(__file__).parents[1], pack=pack)))
    pages = {page.path: page.data.decode() for path in project.folders for page in folder_pages(book, folder_view(tree, path))}
    found = re.findall(r"- \[.+\]\((suite-.+)\): ", pages["index.md"])
    assert found == [f"suite-{name}.md" for name in ("hardware", "apis", "words", "marks", "owners", "findings")]
    assert not any("](suite-" in pages[f"{path}/index.md"] for path in project.folders if path)


def test_a_pack_may_lay_the_pages_out(tmp_path):
    """A project's own template of a page about the suite wins over the shared one."""
    shutil.copytree(Path(__file__).parents[1] / "templates/rankbook", tmp_path / "templates/mine")
    (tmp_path / "templates/mine/suite-owners.md.jinja").write_text("# Who\n\n{{ view.owners.rows | length }} owners\n")
    book = Book("Tiny", pack_folders(Settings(root=tmp_path, pack="mine")))
    pages = made(suite.suite_pages(book, rows_of(FILES)[0]))
    assert "2 owners" in pages["suite-owners.md"] and "# Hardware" in pages["suite-hardware.md"]


def test_the_site_ships_the_script(tmp_path):
    """A built site holds the script that filters, and its pages load it."""
    site = build(write_project(tmp_path))
    assert (site / "assets/rankbook.js").read_text() == script()
    assert re.search(r'src="?\.\./assets/rankbook\.js\b', (site / "book/index.html").read_text())


@pytest.mark.browser
def test_the_box_filters_rows_and_headings(chromium):
    """Typing words leaves the rows that hold all of them, with their headings, and tells how many; clearing brings all back."""
    names = [f"pkg.{space}.name_{number}" for space in ("one", "two") for number in range(8)]
    rows = [ApiRow(name, "t.py", (1,), 0, "", 1, ("0",), ()) for name in names]
    text = made([suite.api_page(BOOK, api_shards(Counter(names))[0], rows)])["suite-apis.md"]
    page = chromium.new_page()
    page.set_content(f"<article>{markdown.markdown(text, extensions=EXTENSIONS)}</article>")
    page.add_script_tag(content=script())
    box, visible = page.get_by_label("Filter this page"), page.locator("tbody tr:visible")
    assert visible.count() == 16
    box.fill("TWO name_3")
    page.get_by_role("status").get_by_text("1 of 16").wait_for()
    assert visible.all_inner_texts()[0].startswith("name_3")
    assert page.locator("h2:visible").all_inner_texts() == ["pkg.two"]
    box.fill("")
    page.wait_for_function("document.querySelectorAll('tbody tr:not([hidden])').length === 16")
    page.close()


EDITS = st.dictionaries(st.text("ab_.é", max_size=5), st.integers(1, 5), max_size=40)


@given(st.lists(EDITS, min_size=2, max_size=4), st.sampled_from([letters, parts, folders]), st.integers(1, 9), st.integers(1, 9))
@example([{}, {"": 4, ".": 2, "bb": 5}], parts, 5, 4)  # one has an empty part where the other has none
@settings(max_examples=400, deadline=None)
def test_names_that_come_and_go_are_cut_as_if_they_had_always_been_there(steps, tokens, most, limit):
    """An index that changes step by step has at each the order and the pages that it has when it is sorted and cut anew."""
    counts, ranges = Counts([], [], tokens), []
    before = {}
    for after in steps:
        for name in before.keys() | after.keys():
            counts.add(name, after.get(name, 0) - before.get(name, 0))
        assert bool(counts) == bool(after) and counts.there == after.keys()
        moves = counts.settle()
        assert dict(zip(counts.names, counts.numbers, strict=True)) == after
        assert counts.names == sorted(after, key=lambda name: (tokens(name), name))
        shards, ranges = cut(counts.names, counts.numbers, tokens, most=most, limit=limit, before=Cut(ranges, moves))
        assert shards == split(after, tokens, most=most, limit=limit)
        before = after


def test_an_edit_of_a_large_index_looks_at_few_of_its_names():
    """Of thousands of names whose pages are known, few are asked how they are looked up when one is added."""
    asked = []

    def told(name):
        asked.append(name)
        return letters(name)

    known = [f"test_{first}{second}_{number:03}" for first in "abcdefghij" for second in "klmnop" for number in range(200)]
    counts = Counts([], [], told)
    for name in known:
        counts.add(name, 1)
    counts.settle()
    shards, ranges = cut(counts.names, counts.numbers, told)
    assert len(shards) > 30
    asked.clear()
    counts.add("test_cm_new", 1)
    moves = counts.settle()
    assert cut(counts.names, counts.numbers, told, before=Cut(ranges, moves))[0] == split(dict.fromkeys([*known, "test_cm_new"], 1))
    assert len(asked) < len(known) / 20


@given(st.dictionaries(st.text(max_size=5), st.integers(1, 2**40), max_size=20))
def test_numbers_of_rows_are_kept(tmp_path_factory, numbers):
    """What an index leaves for the next run is what it finds then, line breaks and surrogates in names included."""
    folder = tmp_path_factory.mktemp("counts")
    store = Store(folder, "world")
    counts = Counts([], [], letters)
    for name, number in numbers.items():
        counts.add(name, number)
    counts.settle()
    counts.keep(store, "words")
    store.commit("one")
    again = Store(folder, "world")
    assert counted(again, "words") == numbers
    assert kept(again, "words", letters).names == counts.names
