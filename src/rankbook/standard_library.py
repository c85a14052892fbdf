"""Names of the standard library, whichever Python makes the pages: a page is the same for all of them."""

from __future__ import annotations

import sys

_GONE = frozenset({
    "asynchat", "asyncore", "distutils", "imp", "smtpd",  # 3.12
    "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev",
    "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",  # 3.13
    "sre_compile", "sre_constants", "sre_parse",  # 3.15
})  # fmt: skip
"""What later versions no longer have; 3.11 is the first that counts."""
_NEW = frozenset({"annotationlib", "compression", "profiling"})
"""What they have besides."""
_PRIVATE = frozenset({"__future__", "_thread"})
"""Those that programs import whose names begin with an underscore; of the others each version has its own."""
STANDARD_LIBRARY = frozenset(name for name in sys.stdlib_module_names if name[0] != "_") | _PRIVATE | _GONE | _NEW
"""Top-level modules of any of the versions."""
OF_ALL_VERSIONS = STANDARD_LIBRARY - _GONE - _NEW
"""Those that each of the versions has."""
