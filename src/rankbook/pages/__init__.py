"""A project → pages: views of its files and folders, filled into the templates of a pack, written where they have changed."""

from rankbook.pages.files import FileTask, file_tasks, unlisted_sources
from rankbook.pages.folders import FolderView, folder_views
from rankbook.pages.names import all_pages, page_of_file, page_of_folder
from rankbook.pages.packs import check_pack, pack_folders
from rankbook.pages.render import LAST_RUN_MARKER, LAST_RUN_NOTE, Book, Page, file_pages, folder_pages, is_unchanged
from rankbook.pages.text import plural
from rankbook.pages.writer import Fate, Writer, is_generated

__all__ = [
    "LAST_RUN_MARKER",
    "LAST_RUN_NOTE",
    "Book",
    "Fate",
    "FileTask",
    "FolderView",
    "Page",
    "Writer",
    "all_pages",
    "check_pack",
    "file_pages",
    "file_tasks",
    "folder_pages",
    "folder_views",
    "is_generated",
    "is_unchanged",
    "pack_folders",
    "page_of_file",
    "page_of_folder",
    "plural",
    "unlisted_sources",
]
