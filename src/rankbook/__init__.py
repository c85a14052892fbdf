"""Turn a multi-GPU test suite into a book whose every listing is executed."""

from rankbook.errors import (
    ConfigError,
    EngineError,
    LedgerError,
    PageError,
    RankbookError,
    SourceError,
    TemplateError,
)

__all__ = [
    "ConfigError",
    "EngineError",
    "LedgerError",
    "PageError",
    "RankbookError",
    "SourceError",
    "TemplateError",
    "__version__",
]

__version__ = "0.1.0"
