"""The tokens of shells and of the files that build programs."""

from __future__ import annotations

import re

from rankbook.site.tokens.table import WORD, Rule, Table, double, nested, spanned, tagged

_VARIABLE = r"\$(?:\w++|[#?!@*$-]|\{[^{}\n]*+\}?+)"
_VARIABLES = re.compile(rf"({_VARIABLE})")
_LEVELS = 3
"""Depth of parentheses in a substitution inside of a string that is followed."""


def _substitution(level: int = _LEVELS) -> str:
    """A command in a string: it may hold strings of its own. A backslash ends the attempt, which keeps attempts that fail linear."""
    inner = rf"|{_substitution(level - 1)}" if level > 1 else ""
    return rf"""\((?>[^()"'\\]++|"(?>[^"\\]++|\\.)*+"|'[^']*+'{inner})*+\)"""


_LONG, _SHORT = double('"', over_lines=True), double('"')
_NESTED = rf"\"(?>[^\"\\$]++|\\.?+|\${_substitution()}|\$(?!\())*+\"|{_LONG}"
_COMMENT = r"(?<![^\s;|()])#[^\n]*+"
_HEREDOC = (
    r"&lt;&lt;-?+[ \t]*+(?:(?=[\"'\\])|(?=[A-Z_]))[\"'\\]?+(?P<word>[^\W\d]\w*+)[\"']?+[^\n]*+"
    r"(?:\n(?>(?!\t*+(?P=word)$)(?:[^\n]++\n?+|\n))*+)?+"
)


def _with_variables(_: re.Match[str], token: str) -> str:
    """Write a string with the variables that a shell puts in."""
    if "$" not in token:
        return spanned("s2", token)
    return nested("s2", "nv", _VARIABLES, token)


def _heredoc(_: re.Match[str], token: str) -> str:
    head, newline, body = token.partition("\n")
    return f"{head}{newline}{spanned('s', body)}"


def _indented(name: str, token: str) -> str:
    text = token.lstrip(" \t")
    return token[: len(token) - len(text)] + tagged(name, text)


def _function(_: re.Match[str], token: str) -> str:
    return _indented("nf", token)


def _keyword(_: re.Match[str], token: str) -> str:
    return _indented("k", token)


def _variable(_: re.Match[str], token: str) -> str:
    return _indented("nv", token)


_SHELL_WORDS = {
    "k": "case coproc do done elif else esac fi for function if in select then time until while",
    "nb": "alias bg break builtin cd command continue declare dirs echo eval exec exit export fg getopts hash history jobs kill let local "
    "logout popd printf pushd pwd read readonly return set shift shopt source test trap true false type typeset ulimit umask unalias unset "
    "wait",
}
_ASSIGNED = rf"{WORD}(?=\+?=)"
_BARE = r"(?<![\w.\-/$])"
_SHELL_RULES = (
    Rule("c1", _COMMENT),
    Rule("s", _HEREDOC, _heredoc, groups=1),
    Rule("s1", r"\$?+'[^']*+'?+"),
    Rule("s2", _NESTED, _with_variables),
    Rule("nv", _VARIABLE),
    Rule("se", r"\\(?:&\w++;|.)"),
    Rule("nv", _BARE + _ASSIGNED),
    Rule("nf", rf"{WORD}(?=\(\))"),
    Rule("mi", r"(?<![\w.\-/])\d++(?![\w.\-/])"),
)
BASH = Table(
    _SHELL_RULES,
    r"#\"'$\\",
    _SHELL_WORDS,
    (_BARE + _ASSIGNED, rf"{WORD}\(\)"),
    rf"{_BARE}(?<!=)",
    behind=r"(?!\w)(?![./-])",
    entity=r"&(?!lt;&lt;-?+[ \t]*+[\"'\\A-Z_])\w++;",
)

_PROMPT = r"(?:\([\w.-]++\)[ ])?+(?:[\w.-]++@[\w.:~/-]++[ ]?+)?+(?:[$#%]|&gt;)(?:[ ]|$)"
CONSOLE = Table(
    (
        Rule("gp", rf"^{_PROMPT}"),
        Rule("go", rf"^(?!{_PROMPT})[^\n]++"),
        Rule("s1", r"'[^'\n]*+'?+"),
        Rule("s2", _SHORT, _with_variables),
        *(rule for rule in _SHELL_RULES if rule.name in {"c1", "nv", "se", "mi"}),
    ),
    BASH.starts,
    _SHELL_WORDS,
    (_BARE + _ASSIGNED,),
    BASH.after,
    behind=BASH.behind,
    lines=r"[^\n]",
)

CMAKE = Table(
    (
        Rule("cm", r"#\[(?P<note>=*+)\[(?>[^\]]++|\](?!(?P=note)\]))*+(?:\](?P=note)\]|\Z)", groups=1),
        Rule("c1", r"#[^\n]*+"),
        Rule("s", r"\[(?P<level>=*+)\[(?>[^\]]++|\](?!(?P=level)\]))*+(?:\](?P=level)\]|\Z)", groups=1),
        Rule("s", _LONG, _with_variables),
        Rule("nv", r"\$(?:ENV|CACHE)?+\{[^{}\n]*+\}?+"),
        Rule(
            "k",
            r"(?i:(?:end)?(?:if|foreach|while|function|macro)|elseif|else|return|break|continue)(?=[ \t]*+\()",
        ),
        Rule("nb", rf"{WORD}(?=[ \t]*+\()"),
        Rule("mi", r"(?<![\w.\-/])\d++(?![\w.\-/])"),
    ),
    r"#\"$\[",
    {
        "kc": "ON OFF TRUE FALSE YES NO",
        "ow": "AND OR NOT STREQUAL EQUAL LESS GREATER MATCHES DEFINED EXISTS IN_LIST VERSION_LESS VERSION_GREATER",
    },
    (rf"{WORD}[ \t]*+\(",),
    r"(?<![\w.\-/])",
)

_TARGET = r"[^\s#:=&$\"'][^:=#\n&]*+(?=:(?!=))"
_SETTING = r"[ \t]*+(?:(?:export|override|private)[ \t]++)?+[\w.-]++(?=[ \t]*+[:+?!]{0,3}=)"
_DIRECTIVE = r"[ \t]*+-?(?:include|sinclude|ifeq|ifneq|ifdef|ifndef|else|endif|define|endef|export|unexport|override|vpath)(?![\w:=.-])"
MAKEFILE = Table(
    (
        Rule("k", rf"^{_DIRECTIVE}", _keyword),
        Rule("nv", rf"^{_SETTING}", _variable),
        Rule("nf", rf"^{_TARGET}"),
        Rule("c1", r"#(?>[^\\\n]++|\\.?+)*+"),
        Rule("nv", r"\$(?:\([^()\n$]*+\)?+|\{[^{}\n$]*+\}?+|[^\s(){}&])"),
        Rule("s2", _SHORT),
        Rule("s1", r"'[^'\n]*+'?+"),
    ),
    r"#\"'$",
    lines=rf"{_DIRECTIVE}|{_SETTING}|{_TARGET}",
)

_INSTRUCTION = (
    r"[ \t]*+(?:ONBUILD[ \t]++)?+(?:ADD|ARG|CMD|COPY|ENTRYPOINT|ENV|EXPOSE|FROM|HEALTHCHECK|LABEL|MAINTAINER|ONBUILD|RUN|SHELL|STOPSIGNAL"
    r"|USER|VOLUME|WORKDIR)(?=\s|\Z)"
)
DOCKERFILE = Table(
    (
        Rule("k", rf"^{_INSTRUCTION}", _keyword),
        Rule("c1", r"^[ \t]*+#[^\n]*+", lambda _, token: _indented("c1", token)),
        *_SHELL_RULES[1:],
    ),
    BASH.starts,
    {"k": f"AS {_SHELL_WORDS['k']}", "nb": _SHELL_WORDS["nb"]},
    BASH.stops,
    BASH.after,
    behind=BASH.behind,
    lines=rf"{_INSTRUCTION}|[ \t]*+#",
    entity=BASH.entity,
)
