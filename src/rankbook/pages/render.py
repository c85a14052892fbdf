"""Facts → pages: the text of every page of a file or a folder, as bytes."""

from __future__ import annotations

import hashlib
import posixpath
import re
from html import escape

from msgspec import Struct

from rankbook.embedding import Embedded, embed
from rankbook.front_matter import Stamp, write
from rankbook.kinds import KINDS
from rankbook.markers import LAST_RUN_MARKER, LAST_RUN_NOTE, PROOF_MARKER, PROOF_NOTE
from rankbook.model import Module
from rankbook.needs import write as write_needs
from rankbook.pages import fence, packs
from rankbook.pages.files import FileTask, FileView
from rankbook.pages.folders import FolderView
from rankbook.pages.names import PICTURE, Links, page_of_file, page_of_folder
from rankbook.pages.stamped_needs import stamped_needs
from rankbook.pages.text import markdown, one_line

_TRAILING = re.compile(r"[ \t]+\n")
_EMPTY = re.compile("\n\n\n+")  # spelled so that its beginning is looked for as a plain text


class Book(Struct, frozen=True):
    """What all pages have in common."""

    title: str
    folders: tuple[str, ...]
    """Folders of the template pack."""


class Page(Struct, frozen=True):
    """One page, ready to be written."""

    path: str
    """Below the folder of all pages."""
    data: bytes


def file_pages(book: Book, task: FileTask, data: bytes | None) -> tuple[Page, ...]:
    """Make the two pages of a file.

    Args:
        book: what all pages have in common.
        task: the facts of the file.
        data: its bytes; None for a file that could not be read.

    Raises:
        TemplateError: a template is broken.
    """
    view = FileView(task, _listing_text(data))
    return (_file_page(book, view), _keyword_page(book, view))


def folder_pages(book: Book, view: FolderView) -> tuple[Page, ...]:
    """Make the three pages of a folder, and the picture of its imports where there is something to draw.

    Raises:
        TemplateError: a template is broken.
    """
    titles = {"index": view.label, "folder": f"About {view.label}", "subtree": f"Keywords of {view.label} and below"}
    made = tuple(_folder_page(book, kind, title, view) for kind, title in titles.items())
    return (*made, Page(posixpath.join(view.path, PICTURE), view.graph.svg)) if view.graph else made


def is_unchanged(module: Module, data: bytes) -> bool:
    """Whether the bytes of a file are those from which its facts were read."""
    return hashlib.sha256(data).hexdigest() == module.source.sha256


def _listing_text(data: bytes | None) -> str | None:
    embedded = None if data is None else embed(data)
    return embedded.text if isinstance(embedded, Embedded) else None


def _file_page(book: Book, view: FileView) -> Page:
    source = view.source
    name = page_of_file("file", view.path)
    links = Links(name, view.path, view.task.unlisted)
    needs = write_needs(stamped_needs(view.tests))
    stamp = Stamp("file", page_title(view.title), view.path, source.size, source.sha256, source.embedding, needs, view.module.owners)
    body = packs.fill(
        book.folders, "file", book=book, file=view, links=links, kinds=KINDS, last_run=markdown(f"{LAST_RUN_NOTE}\n\n{LAST_RUN_MARKER}")
    )
    # The pack chooses by which word the listing's language is named.
    choices = (listing for listing in (view.listing_by_extension, view.listing) if listing and fence.find(body, listing) >= 0)
    listing = next(choices, view.listing)
    if listing is None:
        return finished_page(name, stamp, body)
    place = fence.check(body, listing, name, packs.file_of(book.folders, "file"))
    return finished_page(name, stamp, body, slice(place, place + len(listing)))


def _keyword_page(book: Book, view: FileView) -> Page:
    name = page_of_file("keywords", view.path)
    links = Links(name, view.path, view.task.unlisted)
    body = packs.fill(book.folders, "keywords", book=book, file=view, links=links, kinds=KINDS)
    return finished_page(name, Stamp("keywords", page_title(f"Keywords of {view.source.name}"), view.path), body)


def _folder_page(book: Book, kind: str, title: str, view: FolderView) -> Page:
    name = page_of_folder(kind, view.path)
    links = Links(name, view.path, view.unlisted)
    proof = markdown(f"{PROOF_NOTE}\n\n{PROOF_MARKER}")
    body = packs.fill(book.folders, kind, book=book, folder=view, links=links, kinds=KINDS, proof=proof)
    return finished_page(name, Stamp(kind, page_title(title), view.path), body)


def page_title(title: str) -> str:
    """Themes put a page's title into HTML as it stands."""
    return escape(one_line(title), quote=False)


def finished_page(name: str, stamp: Stamp, body: str, listing: slice | None = None) -> Page:
    """Put a stamp before what a template made, and tidy it, but for the listing.

    Args:
        name: of the page.
        stamp: what the page says of itself.
        body: what the template made.
        listing: the part of it that stays as it is; None when there is none.
    """
    text = _tidy(body) if listing is None else f"{_tidy(body[: listing.start])}{body[listing]}{_tidy(body[listing.stop :])}"
    text = text.strip("\n")
    return Page(name, f"{write(stamp)}\n{text}\n".encode())


def _tidy(text: str) -> str:
    """Take out what a template leaves between its parts: spaces at a line's end, and more than one empty line."""
    if " \n" in text or "\t\n" in text:
        text = _TRAILING.sub("\n", text)
    return _EMPTY.sub("\n\n", text)
