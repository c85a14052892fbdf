"""Expected output: what agrees with what a listing prints, where it differs, and how a page is brought up to date."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook.errors import PageError
from rankbook.harness.outputs import MOST, Comparison, as_shown, differences, matches
from rankbook.listing import ExpectedOutput
from rankbook.listings import Site, collect_text
from rankbook.updating import Block, blocks_of, update, updated

SITE = Site()

AGREE = [
    ("", ""),
    ("", " \n"),
    ("a b", "a   b\n"),
    ("a\nb", "a b"),
    ("...", "whatever\nit is"),
    ("a ... z", "a b c z"),
    ("<object at 0x...>", "<object at 0x7f3a>"),
    ("a...b...c", "a b b c"),
    ("loss 0.12", "loss 0.1234567"),
    ("loss 0.12...", "loss 0.1234567 after 3 steps"),
    ("0.1...5", "0.12345"),
    ("tensor([1.00, -2.50])", "tensor([1.0041, -2.4999])"),
    ("1.5e3 s", "1463.2 s"),
    ("1e-3", "0.0014"),
    ("loss 0.5 at ...", "loss 0.49 at step 7"),
    ("x=0.5.", "x=0.52."),
    ("took 0.5s", "took 0.47s"),
    ("loading...", "loading..."),
    ("ä ≥ 0.5", "ä ≥ 0.55"),
]
DIFFER = [
    ("a", ""),
    ("", "a"),
    ("ab", "a b"),
    ("a...b", "a c"),
    ("a...b...b", "a b"),
    ("loss 0.12", "loss 0.14"),
    ("step 1.", "step 2."),
    ("rank 0 of 2.", "rank 1 of 2."),
    ("1", "2"),
    ("1.0", "1"),
    ("version 2.13.0", "version 2.13.1"),
    ("127.0.0.1", "127.0.0.2"),
    ("v1.5", "v1.6"),
    ("-0.5", "0.5"),
    ("1e999999999999999999999", "2e999999999999999999999"),
    ("0.5 ... 0.7", "0.5 0.9"),
]


@pytest.mark.parametrize(("expected", "printed"), AGREE)
def test_outputs_that_agree(expected: str, printed: str):
    """White space, `...` and digits that are not written make no difference."""
    assert matches(expected, printed)


@pytest.mark.parametrize(("expected", "printed"), DIFFER)
def test_outputs_that_differ(expected: str, printed: str):
    """Everything else does: numbers without a fraction, versions and addresses are compared as they stand."""
    assert not matches(expected, printed)


WORDS = st.lists(st.sampled_from(["rank", "0", "1", "0.25", "1.5e-3", "...", ".", "2.13.0", "ok\n", "\n", "-", "ß"]), max_size=12).map(
    " ".join
)


@given(WORDS)
def test_what_is_printed_agrees_with_itself(text: str):
    """An output that is put on the page is the one that is expected, whatever it holds."""
    assert matches(text, text)


@given(WORDS, WORDS, WORDS)
def test_an_ellipsis_stands_for_anything(head: str, middle: str, tail: str):
    """An ellipsis with spaces around it stands for any words."""
    assert matches(f"{head} ... {tail}", f"{head} {middle} {tail}") or not middle.strip() or "..." in head + tail


@pytest.mark.parametrize(
    ("expected", "printed", "line"),
    [
        ("a\nb\nc\n", "a\nx\nc\n", 11),
        ("a\nb\nc\n", "a\nb\nc\nd\n", 13),
        ("a\nb\nc\n", "a\nb\n", 12),
        ("0.5\nstep 1.\nend.\n", "0.54\nstep 1.\nend!\n", 12),
        ("a\n...\nz\n", "a\nb\ny\n", 12),
        ("", "a\n", 10),
    ],
)
def test_line_of_the_first_difference(expected: str, printed: str, line: int):
    """A difference is told at the page's line of the first line that is not as expected; at the closing one when there is more."""
    (found,) = differences([ExpectedOutput("", expected, 9, 10)], {"": printed})
    assert found.line == line


def test_a_difference_is_shown_line_by_line():
    """Lines that agree only by `...` or by their digits are no part of the difference."""
    text = "start at 0x...\nloss 0.12\nrank 1\n"
    (found,) = differences([ExpectedOutput("", text, 9, 10)], {"": "start at 0x7f\nloss 0.1234\nrank 2\n"})
    assert found.text.splitlines()[3:] == [" start at 0x...", " loss 0.12", "-rank 1", "+rank 2"]
    assert found.reason == "it printed another output than the one at line 9"


def test_ranks_in_their_order():
    """A fence without a rank holds what all ranks print, rank 10 after rank 9; each rank begins a line."""
    outputs = {str(rank): f"rank {rank}" for rank in (10, 9, 0)}
    whole = ExpectedOutput("", "rank 0\nrank 9\nrank 10\n", 3, 4)
    tenth = ExpectedOutput("10", "rank 9\n", 9, 10)
    (found,) = differences([whole, tenth], outputs)
    assert found.expected is tenth
    assert found.reason == "rank 10 printed another output than the one at line 9"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("", ""),
        (" \n\n", ""),
        ("\n a  \nb\n\n", " a\nb\n"),
        ("\x1b[31mred\x1b[0m\n", "red\n"),
        ("10 %\r20 %\r\n", "20 %\n"),
        ("a\x00b\x02\x85\ud800", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}?\n"),
        ("a\u2028b\n", "a\N{REPLACEMENT CHARACTER}b\n"),
        ("\ttab\n", "\ttab\n"),
    ],
)
def test_outputs_as_a_page_can_hold_them(printed: str, shown: str):
    """Colours, lines written over, control characters and trailing spaces do not reach a page."""
    assert as_shown(printed) == shown
    assert as_shown(shown) == shown


def test_a_flood_is_cut(capfd):
    """Of an output that is too long for any page the head and the tail are kept; where it went before, it still goes."""
    comparison = Comparison([ExpectedOutput("", "x", 1, 2)])
    with comparison.capture():
        os.write(1, b"first\n" + b"x" * (3 * MOST) + b"\nlast\n")
    assert comparison.outputs[""].startswith("first\n")
    assert comparison.outputs[""].endswith("\nlast\n")
    assert len(comparison.outputs[""]) < MOST + 100
    assert capfd.readouterr().out.endswith("\nlast\n")


def test_nothing_is_captured_without_an_output_fence(capfd):
    """A listing without an output fence prints where it always did."""
    comparison = Comparison.of({})
    with comparison.capture():
        os.write(1, b"heard\n")
    assert capfd.readouterr().out == "heard\n"
    assert comparison.judged(None) == {}


# Bringing a page up to date

CONTAINERS = {
    "": "",
    "1. item\n\n": "    ",
    "> quote\n>\n": "> ",
    "!!! note\n\n": "    ",
    '=== "Tab"\n\n': "    ",
    "- a\n\n    - b\n\n": "        ",
}
LINES = [
    "",
    "a",
    "  b",
    "\ta",
    "1.5",
    "> x",
    "```",
    "````",
    "```python",
    "~~~",
    "~~~~ text",
    "    ```",
    "- a",
    "<!-- x",
    "\u00e4\u2028\x00",
    "a\rb",
    "\x1b[1mc",
]
TEXTS = st.lists(st.sampled_from(LINES), max_size=5).map("\n".join)


def page_of(blocks: list[tuple[str, str, str]], end: str) -> bytes:
    """Make a page of listings with their outputs, each in a container: its head, fence and text."""
    parts = ["# Page\n\n"]
    for head, fence, text in blocks:
        prefix = CONTAINERS[head]
        lines = ["```python", "print()", "```", "", fence + "text {.output}", *text.split("\n")[:-1], fence]
        parts += [head, *(f"{prefix}{line}".rstrip() + "\n" for line in lines), "\n"]
    return "".join(parts).replace("\n", end).encode()


BLOCKS = st.tuples(st.sampled_from(list(CONTAINERS)), st.sampled_from(["```", "````", "~~~"]), st.sampled_from(["", "old\n", "a\n\n  b\n"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(BLOCKS, min_size=1, max_size=4), st.lists(TEXTS, min_size=4, max_size=4), st.sampled_from(["\n", "\r\n", "\r"]))
def test_an_updated_page_expects_what_was_printed(blocks, texts, end):
    """After an update each block expects its output, nothing else on the page differs, and a second update changes nothing."""
    before = page_of(blocks, end)
    owners = [listing for listing in collect_text(before.decode(), "p.md", SITE) if listing.outputs]
    assert [listing.problem for listing in owners] == [None] * len(blocks)
    due = [found for listing, text in zip(owners, texts, strict=False) for found in blocks_of(listing.outputs, {"": as_shown(text)})]
    after, changed = updated(before, due, "p.md")
    renewed = [listing for listing in collect_text(after.decode(), "p.md", SITE) if listing.outputs]
    assert len(renewed) == len(owners)
    assert not any(blocks_of(listing.outputs, {"": as_shown(text)}) for listing, text in zip(renewed, texts, strict=False))
    assert [(listing.text, listing.problem) for listing in renewed] == [(listing.text, listing.problem) for listing in owners]
    assert changed <= len(due)
    assert without_outputs(after) == without_outputs(before)
    again = [Block(new.outputs[0].line, new.outputs[0].text, as_shown(text)) for new, text in zip(renewed, texts, strict=False) if due]
    kept = (
        [block for block, listing in zip(again, owners, strict=True) if any(old.line == listing.outputs[0].line for old in due)]
        if due
        else []
    )
    assert updated(after, kept, "p.md") == (after, 0)


@pytest.mark.parametrize(
    ("old", "printed", "after"),
    [
        ("x <object at 0x...>\na 3.14\nc\n", "x <object at 0x7f51>\na 3.14159\nb\n", "x <object at 0x...>\na 3.14\nb\n"),
        ("took 0.5 s\n...\nend\n", "took 0.5 s\none\nend\n", "took 0.5 s\n...\nend\n"),
        ("a 3.14\nold\nz 0x...\n", "a 3.141\nnew\nmore\nz 0x12\n", "a 3.14\nnew\nmore\nz 0x...\n"),
        ("a 3.14\nb\n", "a 3.141\n", "a 3.14\n"),
    ],
)
def test_lines_that_agree_stay_as_they_are(old, printed, after):
    """Of a block that is written anew only the lines change that do not agree with what was printed."""
    page = "```text {.output}\n%s```\n"
    assert updated((page % old).encode(), [Block(1, old, printed)], "p.md")[0] == (page % after).encode()


def without_outputs(page: bytes) -> list[bytes]:
    """Give a page's lines without its output fences."""
    kept: list[bytes] = []
    closing = b""
    for line in re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", page):
        bare = line.strip(b" >\t\r\n")
        if closing:
            closing = b"" if bare == closing else closing
        elif bare.endswith(b"text {.output}"):
            closing = bare.removesuffix(b"text {.output}")
        else:
            kept.append(line)
    return kept


PAGE = "# Page\n\n```python\nprint(1)\n```\n\n```text {.output}\nold\n```\n\nEnd without a line end"


def test_update_writes_the_page_once(tmp_path: Path):
    """The page keeps its mode and its last line as it was; an update that changes nothing does not touch it."""
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    path.chmod(0o640)
    assert update(path, [Block(7, "old\n", "1\n")]) == 1
    assert path.read_text() == PAGE.replace("old", "1")
    assert path.stat().st_mode & 0o777 == 0o640
    written = path.stat().st_mtime_ns, path.stat().st_ino
    assert update(path, [Block(7, "1\n", "1")]) == 0
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == written
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"]


def test_update_through_a_link(tmp_path: Path):
    """A link to a page stays a link."""
    (tmp_path / "real.md").write_text(PAGE)
    (tmp_path / "page.md").symlink_to("real.md")
    assert update(tmp_path / "page.md", [Block(7, "old\n", "new\n")]) == 1
    assert (tmp_path / "page.md").is_symlink()
    assert "new" in (tmp_path / "real.md").read_text()


@pytest.mark.parametrize(
    "changed",
    [
        PAGE.replace("old", "edited"),
        "New line\n" + PAGE,
        PAGE.replace("old\n", "old\nolder\n"),
        "# Page\n",
        PAGE.replace("```text", "````text"),
    ],
)
def test_a_page_that_has_changed_is_left_alone(tmp_path: Path, changed: str):
    """When the block is no more what it was, nothing is written and the sentence says what to do."""
    path = tmp_path / "page.md"
    path.write_text(changed)
    with pytest.raises(PageError, match=r"page\.md:7: the page has changed since its listings ran.*; run it again"):
        update(path, [Block(7, "old\n", "1\n")])
    assert path.read_text() == changed


def test_a_page_that_cannot_be_written(tmp_path: Path):
    """A page that is gone is a PageError that names it."""
    with pytest.raises(PageError, match=r"page\.md: the expected output was not updated"):
        update(tmp_path / "page.md", [Block(7, "old\n", "1\n")])


def test_a_fence_grows_with_its_text():
    """A text that holds a fence gets a longer one, of the same kind, and only then."""
    page = PAGE.encode()
    after, _ = updated(page, [Block(7, "old\n", "```\nx\n````\n")], "p.md")
    assert b"\n`````text {.output}\n```\nx\n````\n`````\n" in after
    after, _ = updated(page, [Block(7, "old\n", "~~~~\n``\n")], "p.md")
    assert b"\n```text {.output}\n~~~~\n``\n```\n" in after
