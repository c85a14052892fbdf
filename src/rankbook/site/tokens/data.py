"""The tokens of files that hold data and settings."""

from __future__ import annotations

import re

from rankbook.patterns import compiled
from rankbook.site.tokens.c_family import BLOCK_COMMENT, LINE_COMMENT, double_quoted
from rankbook.site.tokens.table import NUMBER, Rule, Table, double, spanned, tagged

_WHOLE = r"(?=[ \t]*+(?:[,\]}\n#]|\Z))"
_CONSTANT = rf"(?<=[ \[])(?:[Tt]rue|[Ff]alse|[Nn]ull|TRUE|FALSE|yes|no|on|off|Yes|No|On|Off){_WHOLE}"
_SIGNED = rf"(?<![\w.])(?:{NUMBER})(?![\w.-])"
_HASH = r"(?<!\S)#[^\n]*+"

JSON = Table(
    (
        Rule("nt", r"\"(?>[^\"\\\n]++|\\[^\n])*+\"(?=\s*+:)"),
        Rule("s", double('"'), double_quoted),
        Rule("c1", rf"{LINE_COMMENT}|{BLOCK_COMMENT}"),
        Rule("mi", NUMBER),
    ),
    r"\"/",
    {"kc": "true false null"},
)

_KEY = r"(?:[^\s\"'#&\[\]{},:|*!%@`?-]|[-?:](?=[^\s]))(?>[^\s:#]++|:(?=[^\s])|(?<=[^\s])#|[ \t]++(?![\s#]))*+(?=[ \t]*+:(?:\s|\Z))"
_QUOTED_KEY = r"(?:\"(?>[^\"\\\n]++|\\[^\n])*+\"|'[^'\n]*+')(?=[ \t]*+:(?:\s|\Z))"
_ITEM = r"[ \t]*+(?:-[ \t]++)*+"
_DASHES = compiled(_ITEM)
_BLOCK = (
    r"(?<=[:\-] )(?:\||&gt;)[+\-\d]*+[ \t]*+(?:(?<=[ \t])#[^\n]*+)?+\n(?:[ \t]*+\n)*+(?P<indent>[ ]++)[^\n]*+"
    r"(?:\n(?:(?P=indent)[^\n]*+|[ \t]*+(?=\n|\Z)))*+"
)


def _key(_: re.Match[str], token: str) -> str:
    item = _DASHES.match(token)
    start = item.end() if item else 0
    return token[:start] + _name(_, token[start:], "nt")


def _name(_: re.Match[str], token: str, name: str = "na") -> str:
    key = token.lstrip(" \t")
    return token[: len(token) - len(key)] + tagged(name, key)


def _block(_: re.Match[str], token: str) -> str:
    head, newline, body = token.partition("\n")
    return f"{head}{newline}{spanned('s', body)}"


YAML = Table(
    (
        Rule("nt", rf"^{_ITEM}(?:{_KEY}|{_QUOTED_KEY})", _key),
        Rule("cp", r"^(?:---|\.\.\.)(?=\s|\Z)|^%[^\n]*+"),
        Rule("c1", _HASH),
        Rule("s", _BLOCK, _block, groups=1),
        Rule("s", r"(?<![\w.)])" + double('"', over_lines=True), double_quoted),
        Rule("s1", r"(?<![\w.)])'(?>[^']++|'')*+'?+"),
        Rule("nl", r"(?<!\S)&amp;[^\s,\[\]{}]++"),
        Rule("nv", r"(?<!\S)\*[^\s,\[\]{}&]++"),
        Rule("kt", r"(?<!\S)!(?>[^\s,\[\]{}&]++|&lt;|&gt;)*+"),
        Rule("nt", r"(?:(?<=\{)|(?<=\{ ))[^\W\d][\w.-]*+(?=:\s)"),
        Rule("kc", _CONSTANT),
        Rule("mi", rf"(?<=[ \[\-+])(?:{NUMBER}){_WHOLE}"),
    ),
    r"\"'#*!|",
    stops=(_CONSTANT, r"(?:(?<=\{)|(?<=\{ ))[\w.-]++:\s"),
    lines=rf"{_ITEM}(?:{_KEY}|{_QUOTED_KEY})|---|\.\.\.|%",
    entity=r"&(?>lt;|gt;(?<![:\-] &gt;)|amp;(?<!\s&amp;))",
)

_TABLE_KEY = r"[ \t]*+(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')(?>[ \t]*+\.[ \t]*+(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+'))*+(?=[ \t]*+=)"
TOML = Table(
    (
        Rule("k", r"^[ \t]*+\[\[?+[^\]\n\"'#,=]*+(?:\"[^\"\n]*+\"[^\]\n\"'#,=]*+)*+\]\]?+(?=[ \t]*+(?:#|$))"),
        Rule("na", rf"^{_TABLE_KEY}", _name),
        Rule("c1", r"#[^\n]*+"),
        Rule("s2", r"\"\"\"(?>[^\"\\]++|\\.?+|\"(?!\"\"))*+(?:\"\"\"+|\Z)"),
        Rule("s1", r"'''(?>[^']++|'(?!''))*+(?:'''+|\Z)"),
        Rule("s", double('"'), double_quoted),
        Rule("s1", r"'[^'\n]*+'?+"),
        Rule("mi", r"(?<![\w.])\d[\w.:+-]*+"),
    ),
    r"\"'#",
    {"kc": "true false inf nan"},
    (),
    r"(?<![\w.-])",
    lines=rf"[ \t]*+\[|{_TABLE_KEY}",
)

_INI_KEY = r"[ \t]*+[^\s=:\[#;&](?>[^\s=:#;&\[\"']++|[ \t]++(?=[^\s=:#;]))*+(?=[ \t]*+[=:])"
INI = Table(
    (
        Rule("k", r"^[ \t]*+\[[^\]\n]*+\]"),
        Rule("c1", r"^[ \t]*+[#;][^\n]*+"),
        Rule("na", rf"^{_INI_KEY}", _name),
        Rule("c1", r"(?<=\s)[#;][^\n]*+"),
        Rule("s", double('"'), double_quoted),
        Rule("mi", _SIGNED),
    ),
    r"\"#;",
    {"kc": "true false True False yes no on off none None"},
    (),
    r"(?<![\w.\-/])",
    lines=rf"[ \t]*+[\[#;]|{_INI_KEY}",
)

SQL = Table(
    (
        Rule("c1", r"--[^\n]*+"),
        Rule("cm", BLOCK_COMMENT),
        Rule("s1", r"'(?>[^']++|'')*+'?+"),
        Rule("nv", r"\"[^\"\n]*+\"?+|`[^`\n]*+`?+"),
        Rule("mi", NUMBER),
    ),
    r"\"'`/\-",
    {
        "k": "add all alter analyze and as asc attach begin between by cascade case cast check collate column commit conflict "
        "constraint create "
        "cross current database default deferred delete desc distinct do drop each else end escape except exists explain filter first for "
        "foreign from full function glob group having if ignore immediate in index inner insert intersect into is isnull join key last "
        "left "
        "like limit match natural not notnull nothing null nulls of offset on or order outer over partition plan pragma primary procedure "
        "query recursive references reindex release rename replace restrict returning right rollback row rows savepoint select set table "
        "temp temporary then to transaction trigger truncate union unique update using vacuum values view virtual when where window with "
        "without",
        "kt": "bigint blob boolean char date datetime decimal double float int integer json jsonb numeric real serial smallint text time "
        "timestamp tinyint uuid varchar",
        "kc": "true false",
        "nb": "abs avg coalesce count ifnull length lower max min now nullif round substr sum total trim upper",
    },
    flags=re.IGNORECASE,
)
