"""Which files belong to the book, and what stands in each: nothing is imported or executed."""

from rankbook.sources.discover import Found, discover
from rankbook.sources.gpu_calls import Taught
from rankbook.sources.packages import Packages, folders_within, package_folders
from rankbook.sources.parse import parse

__all__ = ["Found", "Packages", "Taught", "discover", "folders_within", "package_folders", "parse"]
