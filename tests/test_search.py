"""The search of the book: what is found by what, and that shards are the same whether they were made at once or edit by edit."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown.extensions.toc import slugify

from rankbook import searching, sharding, shelf
from rankbook.config import Settings, load
from rankbook.document import document, survey_tree
from rankbook.pages import FileRow
from rankbook.site import search_shards
from rankbook.site.addresses import Addresses
from rankbook.site.search_rows import KINDS, cases, postings, row
from rankbook.site.search_shards import INDEX, file_of, index, shards
from rankbook.site.search_words import keys, nested, words
from tiny_site import SOURCES, with_own_cache

MOST_BYTES = 64 * 1024
SUITE = {
    **SOURCES,
    "suite/test_collectives.py": """\
import pytest
import torch.distributed as dist

LIMIT_OF_RANKS = 8


@pytest.fixture
def process_group():
    return dist.init_process_group("gloo")


class Base:
    def test_inherited(self):
        dist.all_reduce(None)


@pytest.mark.slow
@pytest.mark.nccl
@pytest.mark.gpus(2)
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_all_reduce(process_group, backend):
    dist.all_reduce(None)
""",
    "suite/test_derived.py": "from suite.test_collectives import Base\n\n\nclass TestDerived(Base):\n    pass\n",
    "suite/empty.py": "",
    "suite/büro/größe.py": "ÜBERGRÖSSE = 1\n",
}


def write_tree(root, sources=None):
    """Write a project; give its settings."""
    for path, text in (SUITE if sources is None else sources).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\nout = "docs/book"\njobs = 1\nfindings = []\n')
    return load(root)


@pytest.fixture
def tree(tmp_path):
    """The settings of a documented project."""
    root = tmp_path / "project"
    root.mkdir()
    made = write_tree(root)
    document(made)
    return made


def put(made, **options):
    """Write the shards of a project's site."""
    return searching.write(made, made.root / "site", base="book", **options)


def files(made):
    """Give the files of the search by their names."""
    return {path.name: path.read_bytes() for path in (made.root / "site" / searching.FOLDER).iterdir()}


def cold(made, tmp_path, monkeypatch):
    """Give the files that a run makes that knows of no run before."""
    with monkeypatch.context() as patch:
        shutil.rmtree(tmp_path / "another cache", ignore_errors=True)
        with_own_cache(patch, tmp_path / "another cache")
        shutil.rmtree(tmp_path / "another site", ignore_errors=True)
        document(made)
        searching.write(made, tmp_path / "another site", base="book")
    return {path.name: path.read_bytes() for path in (tmp_path / "another site" / searching.FOLDER).iterdir()}


def look_up(found, beginning):
    """Find rows as a browser does: those of the shards that may hold keys with a beginning. Gives place and row."""
    starts = json.loads(found[INDEX])["starts"]
    rows = set()
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        if start <= f"{beginning}\uffff" and (end is None or end > beginning):
            shard = json.loads(found[file_of(start)])
            rows |= {(place, each) for place, written in shard.items() for each in written.split("\n")}
    return rows


def rows_of(found):
    """Give all rows with their places."""
    names = found.keys() - {INDEX}
    return {(place, each) for name in names for place, rows in json.loads(found[name]).items() for each in rows.split("\n")}


# Words and keys


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("all_reduce", ["all", "reduce"]),
        ("AllReduce", ["all", "reduce"]),
        ("allreduce", ["allreduce"]),
        ("NCCLAllReduce", ["nccl", "all", "reduce"]),
        ("Float8Test", ["float8", "test"]),
        ("__init__", ["init"]),
        ("c10d-gloo.py", ["c10d", "gloo", "py"]),
        ("ÜberGroß", ["über", "gross"]),
        ("GRÖẞE_GRÖSSE", ["grösse", "grösse"]),
        ("operator==", ["operator"]),
        ("___", []),
    ],
)
def test_a_name_is_taken_apart(name, expected):
    """Underscores, capitals and signs part the words of a name."""
    assert words(name) == expected


def test_a_name_is_found_from_each_of_its_words():
    """A key runs from a word to the end of the name; those of parts come behind those of whole names."""
    assert list(keys("all_reduce_max", ".ring")) == ["allreducemax-ring", "reducemax.ring", "max.ring"]


@given(st.lists(st.text("abcxyz019", min_size=2, max_size=6).filter(lambda word: word[0].isalpha()), min_size=1, max_size=6))
def test_spelling_makes_no_difference(steps):
    """A name has the same whole key with underscores, with capitals and run together, and any run of its words begins one of its keys."""
    spellings = "_".join(steps), "".join(steps), "-".join(steps).upper()
    assert {next(keys(name, ""))[: len("".join(steps))][:39] for name in spellings} == {"".join(steps)[:39]}
    found = list(keys("_".join(steps), ""))
    for start in range(len(steps)):
        wanted = "".join(steps[start:])[:39]
        assert any(key.startswith(wanted) for key in found)


@given(st.text(max_size=60), st.text(max_size=30))
def test_keys_order_alike_in_python_and_browsers(name, around):
    """A key holds no character beyond the basic plane, which browsers would put in another order, no tab and no capital letter."""
    for key in keys(name, nested(around)):
        assert not re.search("[\U00010000-\U0010ffff\ud800-\udfff\tA-Z]", key)


# Shards

NAMES = st.text(st.sampled_from('abAB_.1é\U0001f600" \\[|]~/'), min_size=1, max_size=12)
PLACES = st.one_of(
    st.sampled_from(["a/b.py", "a/c.py", "a b.py", "a.py", "/suite-apis.html#x", "\udcff.py"]), st.text("ab/._ ", min_size=1, max_size=9)
)
ROWS = st.builds(row, st.sampled_from(sorted(KINDS)), st.integers(0, 99), NAMES)
TREES = st.dictionaries(PLACES, st.lists(ROWS, max_size=9, unique=True).map(tuple), max_size=8)


ON_A_BUSY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def postings_of(places):
    return sorted({each for place, rows in places.items() for each in postings(place, rows)})


@given(TREES, st.integers(60, 400))
@ON_A_BUSY_MACHINE
def test_every_row_is_found_by_every_key(monkeypatch, places, limit):
    """Whatever the limit of a shard, what is looked up by a key is in the shards that the index names for it, and in bounded ones."""
    monkeypatch.setattr(search_shards, "LIMIT", limit)
    every = postings_of(places)
    made = list(shards(every, every[0][:4] if every else ""))
    found = {each.file: each.text for each in made} | {INDEX: index([each.start for each in made], "{}", "")}
    assert len(found) == len(made) + 1
    assert [each.start for each in made] == sorted({each.start for each in made})
    for posting in every:
        key, rest = posting.split("\t", 1)
        place, _, text = rest.rpartition("\t")
        assert (place, text) in look_up(found, key)
    longest = max((len(json.dumps({place: text})) for place, text in rows_of(found)), default=0)
    assert all(len(each.text) <= max(limit, longest) + 2 for each in made)


def test_a_name_in_many_places_makes_no_large_shard():
    """A method that thousands of classes have is cut into shards by the class."""
    places = {f"src/module_{number}.py": (row("m", 10, f"Class{number}.forward"), row("m", 12, "Module.forward")) for number in range(4000)}
    made = list(shards(postings_of(places), "forw"))
    assert len(made) > 5
    assert max(len(each.text) for each in made) <= MOST_BYTES
    assert len({each.file for each in made}) == len(made)


@given(st.lists(TREES, min_size=2, max_size=4), st.data())
@ON_A_BUSY_MACHINE
def test_edit_by_edit_makes_the_same_shards(monkeypatch, trees, data):
    """However a tree came to hold what it holds, its shards are those of one that is made at once, and no other file is written anew."""
    monkeypatch.setattr(search_shards, "LIMIT", data.draw(st.integers(80, 300)))
    monkeypatch.setattr(sharding, "_DRAWER", data.draw(st.integers(80, 500)))
    with sharding._Kept(None, "") as edited:
        before: dict[str, tuple[str, ...]] = {}
        for tree in trees:
            texts = {file: edited.text(file) for file in edited.files}
            edited.changed.clear()
            edited.take((place, {place: tree[place]} if place in tree else {}) for place in before.keys() | tree.keys())
            with sharding._Kept(None, "") as made:
                made.take((place, {place: rows}) for place, rows in tree.items())
                assert made.files == edited.files
                assert all(made.text(file) == edited.text(file) for file in made.files)
            assert {file for file in edited.files if texts.get(file) != edited.text(file)} <= edited.changed
            before = tree


def test_the_index_of_a_name_in_many_places_is_short():
    """Where the rows of one key fill many shards, the index has some dozen characters for each of them, however long the paths are."""
    folder = "a/very/deep/tree/" * 12
    name = "test_forward_of_a_module_whose_name_is_longer_than_the_key_of_a_row"
    places = {f"{folder}test_{number}.py": (row("t", 10, name),) for number in range(4000)}
    made = list(shards(postings_of(places), "forw"))
    assert len(made) > 5
    assert len(index([each.start for each in made], "{}", "")) < len(index([], "{}", "")) + 60 * len(made)
    assert len({each.file for each in made}) == len(made)


def test_parameters_crowd_out_no_name():
    """Tests with the same parameters come behind all names that begin like these, and are cut into shards by their own names."""
    places = {f"test_{number}.py": (row("t", 10, f"test_{number}[cuda device]"),) for number in range(4000)}
    every = postings_of({**places, "lib.py": (row("f", 1, "cuda_devices"), row("f", 2, "cuda_deviceless_fallback"))})
    assert [each.rpartition("\t")[2] for each in every[:2]] == ["f2 cuda_deviceless_fallback", "f1 cuda_devices"]
    made = list(shards(every, "cuda"))
    assert max(len(each.text) for each in made) <= MOST_BYTES
    assert len({each.file for each in made}) == len(made) > 5


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (["gloo", "1", "nccl", "True"], ["t4 test_a[gloo|nccl|1|True]"]),
        (["1", "2.5", "True", "None", "x", "", "f4"], []),
        (["bf16", "日"], ["t4 test_a[bf16|日]"]),
        (["2", "100%", "1024", "12 34"], ["t4 test_a[100%|1024|2|12 34]"]),
        (["all_reduce_of_a_tensor_that_no_rank_has", "1", "gather it"], ["t4 test_a[all_reduce_of_a_tensor_that_no_rank_has|gather it|1]"]),
        (["a" * 50, "b" * 20, "7"], [f"t4 test_a[{'a' * 50}|7]", f"t4 test_a[{'b' * 20}]"]),
        (["a" * 5000], [f"t4 test_a[{'a' * 60}]"]),
    ],
)
def test_rows_by_parameters(values, rows):
    """A test has rows for its parameters when one of them holds a word or is a long number; however many they are, each row is short."""
    assert list(cases(row("t", 4, "test_a"), values)) == rows


def test_many_parameters_are_bounded(tmp_path):
    """A test with thousands of parameters is found by the first ones, and of hundreds of such tests in a file some are found by these."""
    made = [each.removeprefix("t4 test_a[").removesuffix("]") for each in cases("t4 test_a", [f"case_{number}" for number in range(5000)])]
    assert "|".join(made).split("|") == [f"case_{number}" for number in range(16)]
    assert max(map(len, made)) <= 60
    tests = "".join(f"@pytest.mark.parametrize('way', ['up_{number}', 'down'])\ndef test_{number}(way): pass\n" for number in range(300))
    settings = write_tree(tmp_path, {"suite/test_many.py": f"import pytest\n{tests}"})
    document(settings)
    put(settings)
    found = [text for _, text in rows_of(files(settings)) if text.startswith("t")]
    assert sum("[" in text for text in found) == 100
    assert len(found) == 400


def test_parameters_are_found_by_their_words():
    """Keys begin with each parameter and with each other word that tells something, once for all, and end with the test."""
    found = postings("test_a.py", [row("t", 4, "TestA::test_b[with a gap|2|no gap|all_reduce]")])
    assert [each.partition("~testb.testa\t")[0] for each in found] == ["withagap", "gap", "nogap", "allreduce", "reduce"]


# A project


def test_what_is_found(tree):
    """Tests, APIs, definitions, fixtures, marks, files, owners and requirements are found, each with its place."""
    assert put(tree).files > 1
    found = rows_of(files(tree))
    assert {
        ("suite/test_ring.py", "t15 TestRing::test_token_comes_back"),
        ("suite/test_ring.py", "c14 TestRing"),
        ("suite/test_ring.py", "f9 neighbour"),
        ("suite/test_ring.py", "k6 TOKEN"),
        ("suite/test_ring.py", "p"),
        ("suite/test_collectives.py", "x8 process_group"),
        ("suite/test_collectives.py", "t21 test_all_reduce"),
        ("suite/test_collectives.py", "t21 test_all_reduce[gloo|nccl]"),
        ("suite/test_derived.py", "t4 TestDerived::test_inherited"),
        ("suite/büro/größe.py", "k1 ÜBERGRÖSSE"),
        ("suite/empty.py", "p"),
        ("/suite/b%C3%BCro/index.html", "d1 suite/büro"),
        ("/suite-owners.html#oncall-distributed", "w1 oncall: distributed"),
        ("/suite-marks.html?row=slow#marks", "r1 slow"),
        ("/suite-marks.html?row=nccl#backend", "s1 backend nccl"),
        ("/suite-hardware.html?row=2#hardware", "s1 2 GPUs"),
        ("/suite-apis.html#torchdistributed", "a2 torch.distributed.all_reduce"),
    } <= found
    counts = Counter((place, re.sub(r"\d", "", text)) for place, text in found)
    assert max(counts.values()) == 1, "a test is not found as a function, too"


@pytest.mark.parametrize(
    ("need", "first"),
    [("2 GPUs", "2"), ("exactly 3 GPUs", "3"), ("2 to 4 GPUs", "2"), ("no GPU at all", "none"), ("1 GPU", "1"), ("N GPUs", None)],
)
def test_gpus_lead_to_the_machine_that_has_them(need, first):
    """A number of GPUs is a row of the page on hardware by the fewest that are needed; one that only a run can tell has none."""
    file = FileRow("test_a.py", "", ".py", "", tests=1, needs=(need,), conditions=0, keywords={}, imported_by=0)
    places = sharding._suite_rows({"test_a.py": file}, shelf.Way("", Addresses()))
    found = [place for place in places if "hardware" in place]
    assert found == ([f"/suite-hardware.html?row={first}#hardware"] if first else [])


def test_every_result_leads_to_a_page(tree):
    """The address of each result is that of a page that was made."""
    put(tree)
    top = json.loads(files(tree)[INDEX])
    out = tree.below_root(tree.out)
    for place, _ in rows_of(files(tree)):
        address = urlsplit(place[1:]).path if place.startswith("/") else top["page"].replace("{}", place)
        assert (out / re.sub(r"\.html$", ".md", unquote(address))).is_file(), place
    assert top["root"] == "book"


def many_owners_and_marks():
    """Sources whose owners and marks fill more than a page."""
    test = '# Owner(s): ["team {0}"]\nimport pytest\n\n\n@pytest.mark.mark_{0}\n@pytest.mark.world_size({0})\ndef test_{0}():\n    pass\n'
    return {**SUITE, **{f"suite/test_{number}.py": test.format(number) for number in range(2, 330)}}


@pytest.mark.parametrize("sources", [SUITE, many_owners_and_marks()], ids=["of one page", "of several"])
def test_results_about_the_suite_lead_to_their_headings_and_rows(tmp_path, sources):
    """An owner, a mark, a need and an API are where their address says: on that page, below that heading, in that row of the table."""
    made = write_tree(tmp_path, sources)
    document(made)
    put(made)
    found = {urlsplit(place[1:]) for place, _ in rows_of(files(made)) if place.startswith("/") and "#" in place}
    assert len({each.path for each in found}) >= (4 if sources is SUITE else 8)
    for each in found:
        text = (made.below_root(made.out) / re.sub(r"\.html$", ".md", each.path)).read_text(encoding="utf-8")
        sections = {slugify(part.partition("\n")[0].replace("`", ""), "-"): part for part in re.split(r"^#+ ", text, flags=re.MULTILINE)}
        assert each.fragment in sections, each
        first = {re.sub(r"^\| `?(.*?)`? \|.*", r"\1", line) for line in sections[each.fragment].splitlines()}
        assert not each.query or parse_qs(each.query)["row"][0] in first, each


def test_addresses_of_a_site_with_folders(tree):
    """Where each page is the index of a folder of its own, addresses say so."""
    put(tree, addresses=Addresses(directories=True))
    assert json.loads(files(tree)[INDEX])["page"] == "{}_docs/"
    assert any(place.partition("#")[0] == "/suite-owners/" for place, _ in rows_of(files(tree)))
    put(tree)
    assert json.loads(files(tree)[INDEX])["page"] == "{}_docs.html"
    assert any(place.partition("#")[0] == "/suite-owners.html" for place, _ in rows_of(files(tree)))


def test_nothing_is_written_again(tree):
    """A second run writes nothing; a third one, of an empty site, writes the same; what does not belong there goes."""
    first = put(tree)
    assert first.written == first.files
    assert put(tree) == shelf.Written(first.files, 0, 0, first.size)
    before = files(tree)
    assert first.size == sum(map(len, before.values()))
    folder = tree.root / "site" / searching.FOLDER
    shutil.rmtree(tree.root / "site")
    assert put(tree) == first
    assert files(tree) == before
    (folder / "other.json").write_text("{}")
    spoiled = next(name for name in before if name != INDEX)
    (folder / spoiled).write_text("{}")
    (folder / INDEX).unlink()
    assert put(tree) == shelf.Written(first.files, 2, 1, first.size)
    assert files(tree) == before


def test_an_edit_writes_what_shows_it(tree, tmp_path, monkeypatch):
    """After edits, of lines, names, new files and files that are gone, the shards are those of a cold run, and others are left alone."""
    monkeypatch.setattr(search_shards, "LIMIT", 300)
    monkeypatch.setattr(sharding, "_DRAWER", 300)
    every = put(tree).files
    assert every > 8
    ring = tree.root / "suite/test_ring.py"
    edits = (
        lambda: ring.write_text(SUITE["suite/test_ring.py"].replace("def neighbour", "\n\ndef neighbour")),
        lambda: ring.write_text(SUITE["suite/test_ring.py"].replace("neighbour", "follower")),
        lambda: (tree.root / "suite/test_new.py").write_text(
            "import torch.distributed as dist\n\n\ndef test_new():\n    dist.all_reduce(1)\n"
        ),
        lambda: (tree.root / "suite/test_collectives.py").write_text(
            SUITE["suite/test_collectives.py"].replace("class Base", "class Root")
        ),
        (tree.root / "suite/test_collectives.py").unlink,
        ring.unlink,
    )
    for edit in edits:
        before = files(tree)
        edit()
        document(tree)
        written = put(tree)
        after = files(tree)
        assert written.written == sum(before.get(name) != data for name, data in after.items()) > 0
        assert after == cold(tree, tmp_path, monkeypatch)
    assert not any(text.endswith("follower") for _, text in rows_of(after))


def test_without_a_run_before_the_sources_are_surveyed(tree, tmp_path, monkeypatch):
    """Pages that came from a checkout have a search, too, with the same shards; nobody is asked when the run is there."""
    put(tree, survey=pytest.fail)
    known = files(tree)
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "empty"))
    shutil.rmtree(tree.root / "site")
    assert put(tree) == shelf.Written()
    assert put(tree, survey=lambda: survey_tree(tree)).files == len(known)
    assert files(tree) == known


def test_without_a_run_before_apis_of_several_pages_are_found(tmp_path, monkeypatch):
    """A tree whose tests use more names than a page of the index of APIs holds has the same shards when its sources are surveyed."""
    calls = "".join(f"    torch.{part}.call_{number}()\n" for number in range(1500) for part in ("zeta", "Beta", "alpha"))
    made = write_tree(tmp_path, {"suite/test_many.py": f"import torch\n\n\ndef test_many():\n{calls}"})
    document(made)
    put(made)
    known = files(made)
    assert len({place.partition("#")[0] for place, _ in rows_of(known) if "suite-apis" in place}) > 1
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "empty"))
    shutil.rmtree(tmp_path / "site")
    put(made, survey=lambda: survey_tree(made))
    assert files(made) == known


def test_what_was_kept_may_be_spoiled(tree):
    """What a run has kept is made anew when it cannot be read."""
    put(tree)
    known = files(tree)
    kept = shelf.kept_in(tree)
    for spoiled in (b"no database", kept.read_bytes()[:5000]):
        kept.write_bytes(spoiled)
        shutil.rmtree(tree.root / "site")
        put(tree)
        assert files(tree) == known
        assert put(tree).written == 0


def test_a_file_that_has_no_listing_has_no_lines(tmp_path):
    """Where no line can be shown, a result opens the page as a whole."""
    made = write_tree(tmp_path, {"suite/data.bin": "\0\1", "suite/one.py": "ONE = 1\n"})
    document(made)
    put(made)
    sources = {(place, text) for place, text in rows_of(files(made)) if not place.startswith("/")}
    assert sources == {("suite/data.bin", "p"), ("suite/one.py", "p"), ("suite/one.py", "k1 ONE")}


def test_a_book_without_sources_has_an_empty_search(tmp_path):
    """An empty tree has an index that names no shard."""
    made = write_tree(tmp_path, {})
    (tmp_path / "suite").mkdir()
    assert put(made, survey=lambda: survey_tree(Settings(root=made.root, sources=("suite",), out=made.out))).files == 1
    assert json.loads(files(made)[INDEX])["starts"] == []
