"""The tokens of documents, of patches and of sessions."""

from __future__ import annotations

import re

from msgspec.structs import replace

from rankbook.languages import by_fence
from rankbook.patterns import compiled
from rankbook.site.tokens.c_family import JAVASCRIPT
from rankbook.site.tokens.data import YAML
from rankbook.site.tokens.python import PYTHON
from rankbook.site.tokens.table import Rule, Table, spanned, tagged

_INSIDE = r"(?>[^\"'&]++|\"[^\"]*+\"|'[^']*+'|&(?!gt;|lt;))*+"
_ATTRIBUTE = compiled(r"([^\s=\"'&/]++)(\s*+=\s*+)(\"[^\"]*+\"?+|'[^']*+'?+|(?>[^\s\"'&]++|&amp;)++)|[^\s=\"'&]++")
_NAME = re.compile(r"&lt;/?[\w:.-]++")


def _attribute(match: re.Match[str]) -> str:
    if match[1]:
        return tagged("na", match[1]) + match[2] + spanned("s", match[3])
    return match[0]


def _tag(_: re.Match[str], token: str) -> str:
    """Write a tag: its name, its attributes and their values."""
    name = _NAME.match(token)
    if name is None:
        return token
    end = next((end for end in ("/&gt;", "&gt;") if token.endswith(end)), "")
    start = token[: name.end()]
    inside = token[name.end() : len(token) - len(end)]
    return tagged("nt", start) + _ATTRIBUTE.sub(_attribute, inside) + (tagged("nt", end) if end else "")


_RAW = compiled(rf"(&lt;(?:script|style)\b{_INSIDE}&gt;)", re.IGNORECASE)


def _raw(match: re.Match[str], token: str) -> str:
    _, tag, body = _RAW.split(token, maxsplit=1)
    return _tag(match, tag) + (JAVASCRIPT.spans(body) if tag[4:10].lower() == "script" else body)


_TAGS = (
    Rule("cm", r"&lt;!--(?>[^-]++|-(?!-&gt;))*+(?:--&gt;|\Z)"),
    Rule("cp", r"&lt;!\[CDATA\[(?>[^\]]++|\](?!\]&gt;))*+(?:\]\]&gt;|\Z)"),
    Rule("cp", r"&lt;[!?](?>[^&]++|&(?!gt;))*+(?:&gt;)?+"),
    Rule("nt", rf"&lt;/?[^\W\d][\w:.-]*+{_INSIDE}(?:&gt;)?+", _tag),
    Rule("ni", r"&amp;\#?+\w++;"),
)
XML = Table(_TAGS, r"", entity="&gt;")
HTML = Table(
    (
        *_TAGS[:3],
        Rule("nt", rf"&lt;(?P<raw>script|style)\b{_INSIDE}&gt;(?>[^&]++|&(?!lt;/(?P=raw)))*+", _raw, groups=1),
        *_TAGS[3:],
    ),
    r"",
    entity="&gt;",
    flags=re.IGNORECASE,
)

_FENCE = r"[ \t]*+(?P<fence>`{3,}+|~{3,}+)[^`\n]*+(?:\n(?![ \t]*+(?P=fence))[^\n]*+)*+(?:\n[ \t]*+(?P=fence)[`~]*+[ \t]*+$)?+"
_FRONT = r"\A---\n(?:(?!---$)[^\n]*+\n)*+(?:---$)?+"
_UNDERLINED = r"[^\s\#>|~`-][^\n]*+\n(?:={3}=*|-{3}-*)"
_BULLET = r"[ \t]*+(?:[-*+]|\d{1,9}[.)]|(?:&gt;[ ]?+)++)(?=\s)"
INNER: dict[str, Table] = {}
"""The tables for what stands in fences, by the name of the language."""


def _fenced(_: re.Match[str], token: str) -> str:
    """Write a fence, and what it holds in its own language."""
    head, newline, rest = token.partition("\n")
    body, last, tail = rest.rpartition("\n")
    if not newline or not last:
        body, last, tail = rest, "", ""
    word = re.match(r"\s*(?:`+|~+)[ \t{.]*([\w+#-]*)", head)
    known = by_fence(word[1]) if word and word[1] else None
    table = INNER.get(known.name) if known else None
    return spanned("nl", head) + newline + (table.spans(body) if table else spanned("sb", body)) + last + spanned("nl", tail)


def _front(_: re.Match[str], token: str) -> str:
    return YAML.spans(token)


def _link(_: re.Match[str], token: str) -> str:
    text, bracket, address = token.partition("](")
    return f"{spanned('nt', text + ']')}({spanned('na', address[:-1])})" if bracket else spanned("nt", token)


def _bullet(_: re.Match[str], token: str) -> str:
    mark = token.lstrip(" \t")
    return token[: len(token) - len(mark)] + tagged("k", mark)


MARKDOWN = Table(
    (
        Rule("cp", _FRONT, _front),
        Rule("sb", rf"^{_FENCE}", _fenced, groups=1),
        Rule("gh", rf"^(?:\#{{1,6}}[ \t][^\n]*+|{_UNDERLINED}+[ \t]*+$)"),
        Rule("k", rf"^{_BULLET}", _bullet),
        Rule("sb", r"``(?>[^`\n]++|`(?!`))++``|`[^`\n]++`|`++"),
        Rule("gs", r"\*\*[^*\n]++\*\*"),
        Rule("ge", r"(?<![\w*])\*[^\s*][^*\n]*+\*(?!\w)"),
        Rule("nt", r"!?\[[^\[\]\n]*+\]\([^()\s]*+(?:[ \t]++\"[^\"\n]*+\")?+\)|!?\[[^\[\]\n]*+\]:(?=\s)", _link),
        *_TAGS[:1],
        *_TAGS[3:],
    ),
    r"`*\[!",
    lines=rf"[ \t]*+(?:`{{3}}|~{{3}})|\A---\n|\#{{1,6}}[ \t]|{_UNDERLINED}|{_BULLET}",
    entity="&gt;",
)

_MARKS = r"[=\-~^\"'`\#*+.:_]"
_MARKED = rf"(?P<mark>{_MARKS})(?P=mark){{2,}}+[ \t]*+$"
_DIRECTIVE = r"[\w.+-]++(?::[\w.+-]++)*+::"
_BLANKS = r"(?:[ \t]*+\n)*+"
_CODE = (
    r"^(?P<base>[ \t]*+)\.\.[ \t]++(?:code-block|code|sourcecode|math)::[^\n]*+\n" + _BLANKS + r"(?P<deeper>(?P=base)[ \t]++)[^\n]*+"
    r"(?:\n(?:(?P=deeper)[^\n]*+|[ \t]*+(?=\n|\Z)))*+"
)
_LITERAL = r"::[ \t]*+\n(?:[ \t]*+\n)++(?P<indent>[ \t]++)[^\n]*+(?:\n(?:(?P=indent)[^\n]*+|[ \t]*+(?=\n|\Z)))*+"


def _directive(_: re.Match[str], token: str) -> str:
    name = token.strip()
    start = token.find(name)
    return token[:start] + tagged("k", name) + token[start + len(name) :]


def _code(_: re.Match[str], token: str) -> str:
    """Write a directive of code, and what it holds in its own language."""
    head, newline, body = token.partition("\n")
    name, colons, word = head.partition("::")
    known = by_fence(word.strip())
    table = INNER.get(known.name) if known else None
    return _directive(_, name + colons) + word + newline + (table.spans(body) if table else spanned("s", body))


def _literal(_: re.Match[str], token: str) -> str:
    head, newline, body = token.partition("\n")
    return f"{head}{newline}{spanned('s', body)}"


RST = Table(
    (
        Rule("s", _CODE, _code, groups=2),
        Rule("s", _LITERAL, _literal, groups=1),
        Rule("k", r"^[ \t]*+\.\.[ \t]++(?:\|[^|\n]++\|[ \t]++)?+" + _DIRECTIVE + r"(?:[ \t]*+\n)?+", _directive),
        Rule("nl", r"^[ \t]*+\.\.[ \t]++(?:_[^\n:]*+:|\[[^\]\n]++\])"),
        Rule("c1", rf"^[ \t]*+\.\.[ \t]++(?!_|\[|\||{_DIRECTIVE})[^\n]*+"),
        Rule("gh", rf"^[^\s.][^\n]*+\n{_MARKED}", groups=1),
        Rule("gh", rf"^{_MARKED.replace('mark', 'rule')}", groups=1),
        Rule("nc", r"^[ \t]*+:[^\W\d][\w \t.*-]*+:(?=\s)"),
        Rule("s", r"``(?>[^`\n]++|`(?!`))++``"),
        Rule("na", r":[a-z][\w+.-]{0,40}+(?::[\w+.-]{1,40}+){0,3}+:(?=`)"),
        Rule("nv", r"`[^`\n]++`_{0,2}+|`++"),
        Rule("gs", r"\*\*[^*\n]++\*\*"),
        Rule("ge", r"(?<![^\s(\[{\"'-])\*[^\s*][^*\n]*+\*(?!\w)"),
        Rule("nv", r"\|[^\s|\n][^|\n]*+\|"),
    ),
    r"`*:|",
    lines=rf"[ \t]*+\.\.[ \t]|[ \t]*+:[^\W\d]|[^\s.][^\n]*+\n(?:{_MARKS}){{3}}|(?:{_MARKS}){{3}}",
)

DIFF = Table(
    (
        Rule("gh", r"^(?:\+\+\+|---|diff|index|Index|=)(?=[ :=])[^\n]*+"),
        Rule("gi", r"^\+[^\n]*+"),
        Rule("gd", r"^-[^\n]*+"),
        Rule("gu", r"^@[^\n]*+"),
    ),
    r"",
    lines=r"[-+@=]|diff |[iI]ndex[ :]",
)

_PROMPT = r"(?:&gt;&gt;&gt;|\.\.\.)(?:[ ]|$)"
PYTHON_SESSION = replace(
    PYTHON,
    rules=(Rule("gp", rf"^{_PROMPT}"), Rule("go", rf"^(?!{_PROMPT})[^\n]++"), *PYTHON.rules),
    lines=r"[^\n]",
)
