"""Listings that are kept in the user's cache: what a page gives again without being rendered is what rendering gives, or nothing."""

from __future__ import annotations

import functools
import multiprocessing
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymdownx.slugs import slugify

from proving import prove
from rankbook.errors import PageError
from rankbook.listings import Site, collect, collect_text, collecting, kept, site_of
from rankbook.listings.fingerprint import Fingerprint
from rankbook.listings.kept import Kept, key_of
from test_listings import CASES, SITE, SITES, TABS
from test_listings_properties import PAGES, WILD

PAGE = "# Page\n\n```python {ranks=2}\nprint(1)\n```\n\n```text {.output}\n1\n1\n```\n"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, and a list of the texts that are rendered."""
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "cache"))
    rendered = []

    def rendering(text, page, site):
        rendered.append(text)
        return collect_text(text, page, site)

    monkeypatch.setattr(collecting, "collect_text", rendering)
    yield rendered
    kept.of_user().close()


def page(folder: Path, text: str, config: str = "") -> Path:
    """Write a page, and the `mkdocs.yml` of its site."""
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    if config:
        (folder / "mkdocs.yml").write_text(config)
    path = folder / "docs" / "page.md"
    path.write_text(text)
    return path


@SITES
@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_all_cases(path, site, cache):
    """What is kept of each case is exactly what rendering it gives."""
    try:
        first = collect(path, "page.md", site)
    except PageError:
        return
    assert len(cache) == 1
    assert collect(path, "page.md", site) == first == collect_text(path.read_bytes().decode("utf-8-sig"), "page.md", site)
    assert len(cache) == 1


@given(text=st.text() | WILD | PAGES)
@settings(max_examples=60, deadline=None)
def test_any_text(text, tmp_path_factory):
    """Whatever a page holds, its listings come back as they were."""
    found = collect_text(text, "p.md", SITE)
    key = key_of(text, "p.md", SITE.fingerprint)
    cache = Kept(tmp_path_factory.getbasetemp() / "any.sqlite")
    cache.put(key, found)
    assert cache.get(key) == found
    cache.close()


def test_what_makes_a_difference(monkeypatch):
    """Another text, page, setting, order, version or code has another key."""
    keys = {key_of(PAGE, "a.md", SITE.fingerprint), key_of(PAGE + " ", "a.md", SITE.fingerprint), key_of(PAGE, "b.md", SITE.fingerprint)}
    keys.add(key_of(PAGE, "a.md", TABS.fingerprint))
    turned = {"tables": {}, **{name: values for name, values in SITE.extensions.items() if name != "tables"}}
    keys.add(key_of(PAGE, "a.md", Site(extensions=turned).fingerprint))
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0")
    keys.add(key_of(PAGE, "a.md", Site().fingerprint))
    monkeypatch.setattr(kept, "_code", lambda: "other code")
    keys.add(key_of(PAGE, "a.md", SITE.fingerprint))
    assert len(keys) == 7
    assert key_of("ab", "c", SITE.fingerprint) != key_of("b", "ca", SITE.fingerprint)
    assert key_of("ab", "c", Fingerprint()) is None


def test_changed_configuration(cache, tmp_path):
    """A site whose settings change renders its pages again, and its old listings count once more when they change back."""
    usual = "markdown_extensions: [pymdownx.superfences]\n"
    path = page(tmp_path, PAGE, usual)
    first = collect(path, "page.md")
    page(tmp_path, PAGE, "markdown_extensions: [pymdownx.superfences, {toc: {separator: _}}]\n")
    collect(path, "page.md")
    assert len(cache) == 2
    page(tmp_path, PAGE, usual)
    assert collect(path, "page.md") == first
    assert len(cache) == 2


FENCE = "!!python/name:pymdownx.superfences.fence_code_format"


@pytest.mark.parametrize(
    ("config", "text", "renderings"),
    [
        ("[pymdownx.superfences, pymdownx.snippets]", PAGE, 1),
        ("[pymdownx.superfences, pymdownx.snippets]", f'{PAGE}\n--8<-- "other.md"\n', 2),
        ("[pymdownx.superfences, {pymdownx.snippets: {auto_append: [other.md]}}]", PAGE, 2),
        ("[pymdownx.superfences, pymdownx.b64]", PAGE, 2),
        ("[pymdownx.superfences, local_extension]", PAGE, 2),
        ("[pymdownx.superfences, {toc: {slugify: !!python/name:local_extension.slug }}]", PAGE, 2),
        ("[pymdownx.superfences, {toc: {slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}}}]", PAGE, 1),
        ("[pymdownx.superfences, {toc: {slugify: !!python/name:missing.slug }}]", PAGE, 2),
        (f"[{{pymdownx.superfences: {{custom_fences: [{{name: m, class: m, format: {FENCE} }}]}}}}]", PAGE, 1),
    ],
)
def test_only_what_is_known_is_kept(config, text, renderings, cache, tmp_path, monkeypatch):
    """A page whose rendering reads files, or runs code that nobody knows, is rendered each time."""
    (tmp_path / "local_extension.py").write_text(
        "import markdown\n\n\nclass Plain(markdown.Extension):\n    def extendMarkdown(self, md):\n        pass\n\n\n"
        "def makeExtension(**settings):\n    return Plain(**settings)\n\n\ndef slug(text, separator):\n    return 'x'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    path = page(tmp_path, text, f"markdown_extensions: {config}\n")
    (tmp_path / "other.md").write_text("```python\nprint(2)\n```\n")
    first = collect(path, "page.md")
    assert collect(path, "page.md") == first
    assert len(cache) == renderings


def test_other_file_of_a_snippet(cache, tmp_path):
    """What a snippet shows is what its file holds now."""
    path = page(tmp_path, '```python\n--8<-- "other.py"\n```\n', "markdown_extensions: [pymdownx.superfences, pymdownx.snippets]\n")
    for text in ("print(1)\n", "print(2)\n"):
        (tmp_path / "other.py").write_text(text)
        assert [listing.text.strip() for listing in collect(path, "page.md")] == [text.strip()]


def test_functions_of_settings():
    """A function that an extension calls is known by its name and by what it was given."""
    one, other = (
        Site(extensions={**SITE.extensions, "toc": {"slugify": functools.partial(slugify(case="lower"), **more)}}).fingerprint
        for more in ({}, {"percent_encode": True})
    )
    assert one.text
    assert one != other
    assert not Site(extensions={**SITE.extensions, "toc": {"slugify": lambda text, separator: text}}).fingerprint.text


@pytest.mark.parametrize("place", [0, 3, 40, -1])
def test_damaged_value(place, cache, tmp_path):
    """A damaged value is none: the page is rendered, and its value kept anew."""
    path = page(tmp_path, PAGE)
    first = collect(path, "page.md")
    kept.of_user().close()
    with sqlite3.connect(tmp_path / "cache" / "listings.sqlite") as connection:
        ((value,),) = connection.execute("SELECT value FROM pages").fetchall()
        damaged = bytearray(value)
        damaged[place] ^= 0xFF
        connection.execute("UPDATE pages SET value = ?", (bytes(damaged),))
    connection.close()
    assert collect(path, "page.md") == collect(path, "page.md") == first
    assert len(cache) == 2


@pytest.mark.parametrize("damage", ["garbage", "truncated", "folder", "other table"])
def test_damaged_file(damage, cache, tmp_path):
    """A damaged file is no loss but of time, and does not stay."""
    path, file = page(tmp_path, PAGE), tmp_path / "cache" / "listings.sqlite"
    first = collect(path, "page.md")
    kept.of_user().close()
    data = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage == "other table":
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE pages (one TEXT)")
        connection.close()
    else:
        file.write_bytes(b"no database at all" * 400 if damage == "garbage" else data[: len(data) // 2])
    assert collect(path, "page.md") == collect(path, "page.md") == first
    assert len(cache) == 3
    if damage in ("garbage", "truncated"):
        assert not file.exists()
        again = Kept(file)
        again.put(b"key", first)
        assert again.get(b"key") == first
        again.close()
    kept.of_user().close()
    assert [target for target in opened() if str(file) in target] == []


def opened():
    """Yield the files that this process has open; none where the system does not tell."""
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            yield str(descriptor.readlink())


def test_folder_that_cannot_be_written(cache, tmp_path):
    """Where nothing can be kept, pages are rendered."""
    (tmp_path / "cache").write_text("a file stands where the folder should")
    path = page(tmp_path, PAGE)
    assert collect(path, "page.md") == collect(path, "page.md")
    assert len(cache) == 2


def test_what_nobody_asks_for_goes(tmp_path, monkeypatch):
    """The cache stays below its limit: old values go first, what is used stays."""
    monkeypatch.setattr(kept, "MOST", 400_000)
    cache = Kept(tmp_path / "kept.sqlite")
    values = {
        b"%d" % number: collect_text(f"```text\n{number}\n{kept.sha256(b'%d' % number).hexdigest() * 300}\n```\n", "p.md", SITE)
        for number in range(3)
    }
    today = kept._today()
    monkeypatch.setattr(kept, "_today", lambda: today - 10)
    big = [listing for number in range(12) for listing in collect_text(f"```text\n{random_text(number)}\n```\n", "p.md", SITE)]
    for number, listing in enumerate(big):
        cache.put(b"old%d" % number, (listing,))
    monkeypatch.setattr(kept, "_today", lambda: today)
    assert cache.get(b"old0") == (big[0],)
    for number, listing in enumerate(big):
        cache.put(b"new%d" % number, (listing,))
    for key, value in values.items():
        cache.put(key, value)
    assert all(cache.get(key) == value for key, value in values.items())
    assert cache.get(b"old1") is None
    cache.close()
    assert (tmp_path / "kept.sqlite").stat().st_size < 600_000


def random_text(seed: int) -> str:
    """Give 40,000 characters that cannot be pressed together."""
    return "".join(kept.sha256(b"%d %d" % (seed, number)).hexdigest() for number in range(625))


def keep_many(file: Path, start: int) -> None:
    """Read and write as one of several processes."""
    cache = Kept(file)
    found = collect_text(PAGE, "p.md", SITE)
    for number in range(100):
        key = b"%d" % ((start + number) % 120)
        assert cache.get(key) in (None, found)
        cache.put(key, found)
    cache.close()


def test_several_processes(tmp_path):
    """Several processes read and write one file at once."""
    context = multiprocessing.get_context("spawn")
    file = tmp_path / "kept.sqlite"
    processes = [context.Process(target=keep_many, args=(file, 40 * number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    cache = Kept(file)
    found = collect_text(PAGE, "p.md", SITE)
    assert all(cache.get(b"%d" % number) == found for number in range(120))
    cache.close()


UNRENDERABLE = """
import markdown

def fail(*_):
    raise AssertionError("a page is rendered")

markdown.Markdown.convert = fail
"""


def test_stale(tmp_path):
    """A session that proves nothing anew renders no page; a page that has changed is rendered."""
    (tmp_path / "docs").mkdir()
    for number in range(3):
        (tmp_path / "docs" / f"page{number}.md").write_text(f"# Page\n\n```python\nassert {number} < 3\n```\n")
    env = {"RANKBOOK_CACHE_DIR": str(tmp_path / "cache")}
    assert set(prove(tmp_path, "docs", env=env).outcomes().values()) == {"passed"}
    (tmp_path / "conftest.py").write_text(UNRENDERABLE)
    result = prove(tmp_path, "--stale", "docs", env=env)
    assert "3 proved earlier" in result.output, result.output
    (tmp_path / "docs" / "page1.md").write_text("# Page\n\n```python\nassert 2 < 3\n```\n")
    result = prove(tmp_path, "--stale", "docs", env=env)
    assert "AssertionError: a page is rendered" in result.output
    (tmp_path / "conftest.py").unlink()
    assert sorted(prove(tmp_path, "--stale", "docs", env=env).outcomes().values()) == ["passed", "skipped", "skipped"]


def test_site_of_a_page_has_one_fingerprint(tmp_path):
    """The fingerprint of a site is taken once."""
    path = page(tmp_path, PAGE, "markdown_extensions: [pymdownx.superfences]\n")
    assert site_of(path).fingerprint is site_of(path).fingerprint
