"""Facts about listings that hold for any page."""

from __future__ import annotations

import functools
import re
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mkdocs.utils import meta

from rankbook.embedding import Embedded, embed
from rankbook.listings import Site, collect_text
from rankbook.listings.lines import front_matter
from test_listings import SITE, SITES, page_of, rendered_texts, shown_texts

FRAGMENTS = """\
```python
```
````
~~~
~~~python
    ```python
    ```
        ```python
        ```
> ```python
> ```
> > ```bash
>
  ```python
  ```
```python {ranks=2}
```text {.output}
<!-- rankbook: hidden
    <!-- rankbook: hidden
    -->
```{.python .x title="y"}
```python ranks=2
```python title="a"
``` python
- ```python
- item
1. one
x = 1
    x = 1
  x = 1
> x = 1
\tx = 1
\t```python
\t```

# Head
## Other {#mine}
!!! note
??? tip "Folded"
=== "Tab"
<!--
-->
<!-- one line -->
<div>
</div>
<div markdown>
<pre>
</pre>
<script>
</script>
<b>
text `code
[^1]: note
Term
:   what it is
---
title: x
| a | b |
| - | - |
""".splitlines()
PAGES = st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("\n".join)
WILD = st.text(st.sampled_from(list("`~>{}.#=\"'<!-/[]() \t\r\n\f\u2028\x02\x03\x00\ufeffpython12é")), max_size=200)


@given(st.one_of(st.text(), WILD, PAGES, st.lists(st.one_of(WILD, PAGES)).map("\n".join)))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_listings(text: str):
    """No text is refused or makes the collector fail, and the names on a page are unique."""
    names = [listing.name for listing in collect_text(text, "p.md", SITE)]
    assert len(names) == len(set(names))


@SITES
@given(page=PAGES)
@settings(max_examples=100, deadline=None)
def test_listings_are_those_of_the_rendered_page(site: Site, page: str):
    """What is collected is what superfences with Pygments renders: the same listings with the same text."""
    page = f"Words.\n\n{page}"
    assert shown_texts(collect_text(page, "p.md", site)) == rendered_texts(page, site)


@SITES
@given(page=PAGES, end=st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=70, deadline=None)
def test_positions_are_exact(site: Site, page: str, end: str):
    """Each line of a listing's text ends its line of the page, hidden or not, and the opening fence stands above the first."""
    lines = [line + end for line in page.split("\n")]
    for listing in collect_text("".join(lines), "p.md", site):
        assert re.match(r"[ \t>]*((?:- )?(`{3}|~{3})|<!-- rankbook)", lines[listing.line - 1])
        for number, line in listing.hidden:
            assert lines[number - 1].expandtabs(4).endswith(line.expandtabs(4))
        for number, line in enumerate(re.findall(rf"[^\r\n]*{end}", listing.text), listing.first_line):
            assert lines[number - 1].expandtabs(4).endswith(line.expandtabs(4))


SOURCES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(str.encode),
    st.text(st.sampled_from(list("`~ab \t\r\n\f\v\ufeff<>#é\u2028{}")), max_size=300).map(str.encode),
    st.text(st.sampled_from(list("ab`\r\n")), max_size=100).map(lambda text: text.encode("utf-16")),
    st.text(st.sampled_from(list("abé\n")), max_size=100).map(lambda text: f"# coding: latin-1\n{text}".encode("latin-1")),
)


@SITES
@given(data=SOURCES)
@settings(max_examples=150, deadline=None)
def test_a_page_gives_its_source_back(site: Site, data: bytes):
    """What can be embedded comes back byte for byte from the page."""
    if isinstance(embed(data), Embedded):
        assert_restored(data, site)


def assert_restored(data: bytes, site: Site) -> None:
    (listing,) = collect_text(page_of(data), "p.md", site)
    assert listing.problem is None
    assert listing.data() == data


@functools.cache
def suite(name: str) -> list[Path]:
    """Give the Python files of a real suite."""
    if name == "stdlib":
        return sorted((Path(sysconfig.get_path("stdlib")) / "test").glob("**/*.py"))
    return sorted((Path(sysconfig.get_path("purelib")) / "torch" / "testing").glob("**/*.py"))


@pytest.mark.parametrize("name", ["stdlib", "torch"])
def test_real_suites_come_back(name: str):
    """Every tenth file of CPython's and of PyTorch's own tests comes back byte for byte from its page, if it can be embedded."""
    files = suite(name)[::10]
    if not files:
        pytest.skip(f"the tests of {name} are not installed here")
    for path in files:
        data = path.read_bytes()
        if isinstance(embed(data), Embedded):
            assert_restored(data, SITE)


FRONT = """\
---
---\x20
...
title: x
  more: y
    deep: z
rankbook: {page: file}
- item
[
Words.

\ttab: 1
```python
```
""".splitlines()


@given(st.lists(st.sampled_from(FRONT), max_size=10), st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=300, deadline=None)
def test_the_top_of_a_page_is_what_mkdocs_takes_off(lines: list[str], end: str):
    """The lines that count as front matter are those that MkDocs does not hand to Markdown."""
    text = "\n".join([*lines, "", "end", ""])
    rest, values = meta.get_data(text)
    found, skipped = front_matter([line + end for line in text.split("\n")[:-1]])
    assert "\n".join(text.split("\n")[skipped:]).lstrip("\n") == rest.lstrip("\n")
    assert found in ({}, values)
