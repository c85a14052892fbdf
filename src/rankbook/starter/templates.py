"""The files that `rankbook init` writes whole, filled into their templates; and how a text is written into YAML."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

import jinja2

from rankbook.starter.facts import WRITTEN_BY, Facts
from rankbook.terminal import word

SUITE = "Test suite"
"""Title of the entry in the navigation."""
_SPECIAL = re.compile(r"""^[^A-Za-z]|[:#'"\[\]{},&*!|>%@`\\$=]|\s$|^(?:true|false|yes|no|on|off|null|y|n)$""", re.IGNORECASE)
"""What makes a YAML scalar that is written as it stands something else than a text."""


@cache
def _templates() -> jinja2.Environment:
    # Marks of their own: `{{` and `{%` belong to GitHub Actions and to the site's settings.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("files")),
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[=",
        variable_end_string="=]",
        comment_start_string="[#",
        comment_end_string="#]",
        autoescape=False,  # noqa: S701 - YAML and TOML, not HTML; values are quoted by `json`
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "trimmed": lambda text: text.strip("\n"),
        "yaml": yaml_scalar,
        "shown": lambda text: text.replace("<", "&lt;").replace('"', "&quot;"),  # themes write the site's name into HTML as it stands
        "command": lambda text: text if text.isprintable() and not _NO_COMMAND.search(text) else yaml_scalar(text),
        "actions": lambda text: text.replace("${{", "${{ '${{' }}"),
        "literal": lambda branch: re.sub(r"([][*?+!\\])", r"\\\1", branch),
        "word": word,
        "address": quote,
        "prose": lambda text: "".join(each if each.isalnum() or each in " .,-_" else f"&#{ord(each)};" for each in " ".join(text.split())),
    }
    return environment


def yaml_scalar(text: str) -> str:
    """Write a text as a YAML scalar: as it stands, where that is the same."""
    if not text.isprintable():
        return json.dumps(text, ensure_ascii=False).translate(_UNSEEN)
    return "'{}'".format(text.replace("'", "''")) if _SPECIAL.search(text) or not text else text


_UNSEEN = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000), 0xFEFF, 0xFFFE, 0xFFFF)}
_NO_COMMAND = re.compile(r"^[^A-Za-z]|: |:$| #|\s$")
"""What makes a command that is written as it stands something else than a text."""


def rendered(template: str, facts: Facts) -> str:
    """Fill a file's template.

    Args:
        template: its name in the folder `files`.
        facts: what the file hangs on.
    """
    return _templates().get_template(template).render(facts=facts, written_by=WRITTEN_BY, suite=SUITE)
