"""Everything rankbook refuses, in one tree.

RankbookError               one clear sentence: what, where, what would be right
├── ConfigError             a setting or an option is wrong
├── SourceError             a source tree or file cannot be read
├── PageError               a page or a listing on it cannot be taken as it stands
├── TemplateError           a template pack is missing or broken
├── EngineError             an engine cannot start or has lost its processes
└── LedgerError             the ledger cannot be read or written
"""

from __future__ import annotations

from pathlib import PurePath


class RankbookError(Exception):
    """A refusal that the user can act on.

    Args:
        what: what is wrong, as the start of a sentence.
        where: the file concerned.
        line: its line, counted from 1.
        right: what would be right, as a clause.
    """

    def __init__(
        self,
        what: str,
        *,
        where: PurePath | str | None = None,
        line: int | None = None,
        right: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.line = line
        self.right = right
        super().__init__(str(self))

    def __str__(self) -> str:
        """Build the sentence from the facts: ``where:line: what; right``."""
        place = "" if self.where is None else f"{self.where}".replace("\n", "\\n")
        if place and self.line is not None:
            place += f":{self.line}"
        text = f"{place}: {self.what}" if place else self.what
        return f"{text}; {self.right}" if self.right else text


class ConfigError(RankbookError):
    """A setting or an option is wrong."""


class SourceError(RankbookError):
    """A source tree or a file in it cannot be read."""


class PageError(RankbookError):
    """A page, or a listing on it, cannot be taken as it stands."""


class TemplateError(RankbookError):
    """A template pack is missing or broken."""


class EngineError(RankbookError):
    """An engine cannot start, or has lost its processes."""


class LedgerError(RankbookError):
    """The ledger cannot be read or written."""


def refused(error: OSError) -> RankbookError:
    """Say in one sentence what the system does not allow.

    Args:
        error: of a file or folder that nothing else has said something of.
    """
    right = "look who may read and write it" if isinstance(error, PermissionError) else None
    return RankbookError(f"the system says: {error.strerror or error}", where=error.filename, right=right)


def bad_yaml(error: Exception, where: PurePath) -> ConfigError:
    """Say in one sentence what a reader of YAML says in a picture of several lines.

    Args:
        error: of PyYAML.
        where: the settings of a site.
    """
    mark = getattr(error, "problem_mark", None)
    what = " ".join(str(getattr(error, "problem", None) or error).split())
    line = mark.line + 1 if mark is not None else None
    return ConfigError(f"cannot read the settings of the site: {what}", where=where, line=line, right="they must be valid YAML")
