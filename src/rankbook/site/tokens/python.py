"""The tokens of Python and of languages that look like it."""

from __future__ import annotations

import re

from msgspec.structs import replace

from rankbook.patterns import compiled
from rankbook.site.tokens.table import ESCAPE, NUMBER, TAGS, Rule, Table, double, nested, spanned, starts_line, tagged

_LEVELS = 3
"""Depth of braces in a replacement field that is followed."""


def _triple(quote: str) -> str:
    return rf"{quote * 3}(?>[^{quote}\\]++|\\.?+|{quote}(?!{quote}{quote}))*+(?:{quote * 3}|\Z)"


def _field(level: int = _LEVELS) -> str:
    """A replacement field that may hold strings with any quotes, as from Python 3.12; a backslash in its code ends the attempt.

    That braces are followed to a fixed depth, and that each quote changes what the next one means in a way that can be turned back, is
    what keeps attempts that fail linear.
    """
    inner = rf"|{_field(level - 1)}" if level > 1 else ""
    return rf"""\{{(?>[^{{}}"'\\]++|"(?>[^"\\\n]++|\\[^\n])*+"|'(?>[^'\\\n]++|\\[^\n])*+'{inner})*+\}}"""


def _formatted(quote: str) -> str:
    """A formatted string on one line: with fields that hold no such quote, else with fields that do, else whatever stands there."""
    text = rf"[^{quote}\\\n{{]++|\\.?+|\{{\{{"
    plain = rf"\{{[^{{}}{quote}\n]*+(?>\{{[^{{}}{quote}\n]*+\}}[^{{}}{quote}\n]*+)*+\}}"
    return rf"{quote}(?>{text}|{plain})*+{quote}|{quote}(?>{text}|{_field()})*+{quote}"


_PREFIX = r"[bBrRuU]{0,2}+"
_FORMAT_PREFIX = r"(?:[fFtT][rR]?+|[rR][fFtT])"
_DOC = f"{_PREFIX}(?:{_triple(chr(34))}|{_triple(chr(39))})"
_FORMATTED = f"{_FORMAT_PREFIX}(?:{'|'.join(made(quote) for made in (_triple, _formatted, double) for quote in (chr(34), chr(39)))})"
_STRING = f"{_PREFIX}(?:{double(chr(34))}|{double(chr(39))})"

_ESCAPE = compiled(r"""((?:\\(?:[\\'"abfnrtv]|x[\da-fA-F]{2}|[0-7]{1,3}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|N\{[\w -]++\}))++)""")
_BLANKS = re.compile(r"([ \t]+)")
_FIELDS = compiled(rf"(\\.|\{{\{{)|\{{({_field()[2:-2]})(?=\}})", re.DOTALL)
_OPEN = "([{,=+%*/|&"


def _string(_: re.Match[str], token: str) -> str:
    return _escaped(_class(token), token)


def _class(token: str) -> str:
    return "s1" if token.lstrip("bBrRuUfFtT").startswith("'") else "s2"


def _long_string(match: re.Match[str], token: str) -> str:
    before = match[1].rstrip()
    if starts_line(match) and not before.endswith(tuple(_OPEN)):
        return spanned("sd", token)
    return _string(match, token)


def _escaped(name: str, token: str) -> str:
    """Write a string with its escapes."""
    if "\\" not in token or token[:2].lower().rstrip("'\"").endswith("r") or token[:1] in "rR":
        return spanned(name, token)
    return nested(name, ESCAPE, _ESCAPE, token)


def _formatted_string(_: re.Match[str], token: str) -> str:
    """Write a formatted string, with the code in its fields as code."""
    if "{" not in token:
        return _string(_, token)
    name, start = _class(token), 0
    written: list[str] = []
    for found in _FIELDS.finditer(token):
        if code := found[2]:
            written += _escaped(name, token[start : found.start(2)]), _INNER.spans(code)
            start = found.end(2)
    return "".join([*written, _escaped(name, token[start:])])


def _definition(_: re.Match[str], token: str) -> str:
    keyword, blank, name = _BLANKS.split(token, maxsplit=1)
    start, end = _DEFINED[keyword]
    return f"{start}{blank}{end}{name}</i>"


_DEFINED = {word: (tagged("k", word), TAGS[name][0]) for word, name in (("def", "nf"), ("class", "nc"))}


def _import(_: re.Match[str], token: str) -> str:
    parts = _BLANKS.split(token)
    return "".join([_IMPORTED.get(part) or (part if not part or part.isspace() else tagged("nn", part)) for part in parts])


_IMPORTED = {word: tagged("kn", word) for word in ("from", "import")}


def _decorator(match: re.Match[str], token: str) -> str:
    return spanned("nd", token) if starts_line(match) else token


_CLAUSE = re.compile(r"[ \t]*+(?![=.,)\]}:;]|(?:and|or|in|is|if|else|for|not in)\b)[^\n]*+")


def _soft_keyword(match: re.Match[str], token: str) -> str:
    """Write `match` or `case`: a keyword where it begins a line that ends with a colon, or holds one after `case`."""
    if not starts_line(match) or not (line := _CLAUSE.match(match.string, match.end())):
        return token
    clause = line[0].partition(" #")[0].rstrip()
    return tagged("k", token) if clause.endswith(":") or (match[0].endswith("case") and ":" in clause) else token


_WORDS = {
    "k": "as assert async await break class continue def del elif else except finally for global if lambda nonlocal pass raise return try "
    "while with yield",
    "kn": "from import",
    "kc": "False None True",
    "ow": "and in is not or",
    "ne": "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError "
    "BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError "
    "ConnectionResetError DeprecationWarning EOFError EncodingWarning EnvironmentError Exception ExceptionGroup "
    "FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning "
    "IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError "
    "ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError OverflowError PendingDeprecationWarning "
    "PermissionError ProcessLookupError PythonFinalizationError RecursionError ReferenceError ResourceWarning RuntimeError "
    "RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError "
    "TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning "
    "UserWarning ValueError Warning ZeroDivisionError",
    "nb": "Ellipsis NotImplemented abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod "
    "compile complex delattr dict dir divmod enumerate eval exec filter float format frozenset getattr globals hasattr hash "
    "help hex id input int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow "
    "print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type unicode vars "
    "xrange zip",
    "bp": "self cls",
}
_RULES = (
    Rule("c1", r"#[^\n]*+"),
    Rule("sd", _DOC, _long_string),
    Rule("s2", _FORMATTED, _formatted_string),
    Rule("s2", _STRING, _string, needs="\\"),
    Rule("nf", r"(?:def|class)[ \t]++[^\W\d]\w*+", _definition),
    Rule("nn", r"from[ \t]++[\w.]++[ \t]++import\b|import[ \t]++[\w.]++", _import),
    Rule("nd", r"@[ \t]*+[\w.]*+", _decorator),
    Rule("k", r"type(?=[ \t]++[^\W\d]\w*+[ \t]*+[=\[])"),
    Rule("k", r"(?:match|case)\b", _soft_keyword),
    Rule("mi", NUMBER),
)

_STOPS = (r"[bBrRuUfFtT]{1,2}+[\"']", r"(?:match|case)\b")

PYTHON = Table(_RULES, r"\"'#@", _WORDS, _STOPS)
_INNER = replace(PYTHON, rules=tuple(replace(rule, written=_string) if rule.written is _formatted_string else rule for rule in _RULES))
"""What stands in the fields of a formatted string; a formatted string in there is one token."""

STARLARK = Table(
    (*_RULES[:2], *_RULES[3:5], Rule("mi", NUMBER)),
    r"\"'#",
    {
        "k": "break continue def elif else for if lambda load pass return",
        "kc": "False None True",
        "ow": "and in not or",
        "nb": "abs all any bool bytes dict dir enumerate fail float getattr glob hasattr hash int len list max min native package print "
        "range "
        "repr reversed select set sorted str struct tuple type zip",
    },
    (r"[rRbB]{1,2}+[\"']",),
)
CYTHON = replace(
    PYTHON,
    words={
        **_WORDS,
        "k": f"{_WORDS['k']} by cdef cpdef ctypedef extern fused gil include inline nogil public readonly struct union enum namespace "
        "cppclass",
        "kn": f"{_WORDS['kn']} cimport",
        "kt": "bint char const double float long short signed size_t unsigned void Py_ssize_t",
    },
)
