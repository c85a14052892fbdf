"""A project → pages: views of its files and folders, filled into the templates of a pack, written where they have changed."""

from rankbook.pages.apis import ApiRow, api_rows
from rankbook.pages.books import is_of_the_project, other_books
from rankbook.pages.contents import SuiteLink, page_of_suite, suite_links
from rankbook.pages.elsewhere import Elsewhere, elsewhere
from rankbook.pages.files import FileTask, file_task, has_listing
from rankbook.pages.findings_index import FindingCount, finding_counts
from rankbook.pages.folders import (
    FileRow,
    FirstLines,
    FolderView,
    Totals,
    Tree,
    deepest_first,
    file_row,
    first_lines,
    folder_view,
    totals_of,
)
from rankbook.pages.inventory import FILE as INVENTORY
from rankbook.pages.inventory import Entries, Lines, entries, inventory, lines_of, named
from rankbook.pages.names import clashing, owner, page_of_file, page_of_folder, pages_of_file, pages_of_folder, share_address
from rankbook.pages.packs import check_pack, pack_folders
from rankbook.pages.render import (
    Book,
    Page,
    file_pages,
    folder_pages,
    is_unchanged,
)
from rankbook.pages.shards import Cut, Range, Shard, letters, parts
from rankbook.pages.suite import (
    api_contents,
    api_page,
    api_shards,
    finding_pages,
    mark_shards,
    spots_of_owners,
    suite_pages,
    untested_pages,
    word_contents,
    word_page,
    word_shards,
)
from rankbook.pages.titles import distinct, title
from rankbook.pages.words import EXACT, WordRow, word_rows
from rankbook.pages.writer import Fate, Placed, Seen, Writer, is_generated, is_left_behind, is_ours

__all__ = [
    "EXACT",
    "INVENTORY",
    "ApiRow",
    "Book",
    "Cut",
    "Elsewhere",
    "Entries",
    "Fate",
    "FileRow",
    "FileTask",
    "FindingCount",
    "FirstLines",
    "FolderView",
    "Lines",
    "Page",
    "Placed",
    "Range",
    "Seen",
    "Shard",
    "SuiteLink",
    "Totals",
    "Tree",
    "WordRow",
    "Writer",
    "api_contents",
    "api_page",
    "api_rows",
    "api_shards",
    "check_pack",
    "clashing",
    "deepest_first",
    "distinct",
    "elsewhere",
    "entries",
    "file_pages",
    "file_row",
    "file_task",
    "finding_counts",
    "finding_pages",
    "first_lines",
    "folder_pages",
    "folder_view",
    "has_listing",
    "inventory",
    "is_generated",
    "is_left_behind",
    "is_of_the_project",
    "is_ours",
    "is_unchanged",
    "letters",
    "lines_of",
    "mark_shards",
    "named",
    "other_books",
    "owner",
    "pack_folders",
    "page_of_file",
    "page_of_folder",
    "page_of_suite",
    "pages_of_file",
    "pages_of_folder",
    "parts",
    "share_address",
    "spots_of_owners",
    "suite_links",
    "suite_pages",
    "title",
    "totals_of",
    "untested_pages",
    "word_contents",
    "word_page",
    "word_rows",
    "word_shards",
]
