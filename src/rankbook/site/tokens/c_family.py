"""The tokens of C, C++, CUDA and of the languages that look like them."""

from __future__ import annotations

import re

from rankbook.patterns import compiled
from rankbook.site.tokens.table import ESCAPE, Rule, Table, double, nested, spanned, tagged

LINE_COMMENT = r"//(?>[^\\\n]++|\\.?+)*+"
BLOCK_COMMENT = r"/\*(?>[^*]++|\*(?!/))*+(?:\*/|\Z)"
NUMBER = r"\d(?>[eEpP][+-]|'\w|[\w.])*+"
"""A preprocessing number, as the standard of C has it."""
STRING, CHARACTER = double('"'), double("'")

_RAW = r"(?:u8|[uUL])?+R\"(?P<delimiter>[^()\\\s\"]{0,16}+)\((?>[^)]++|\)(?!(?P=delimiter)\"))*+(?:\)(?P=delimiter)\"|\Z)"
_PREPROCESSOR = rf"#(?>[^\n/\\\"']++|\\.?+|/(?![/*])|{STRING}|')*+"
_NAMED = (
    r"(?:class|struct|union|namespace|enum(?:[ \t]++(?:class|struct))?+)[ \t]++(?:[A-Z][A-Z_\d]*+[ \t]++(?=\w))?+[^\W\d]\w*+(?:::\w++)*+"
)
_INCLUDE = compiled(r"(#[ \t]*+(?:include(?:_next)?|import)[ \t]*+)(&lt;(?>[^&\n]++|&(?!gt;))*+(?:&gt;)?+|\"[^\"\n]*+\"?+)")
_ESCAPE = compiled(r"((?:\\(?:[\\'\"abefnrtv?0\n]|x[\da-fA-F]++|[0-7]{1,3}|u\{?[\da-fA-F]{1,6}\}?|U[\da-fA-F]{8}))++)")


def string(name: str, token: str) -> str:
    """Write a string with its escapes.

    Args:
        name: its class.
        token: its escaped text.
    """
    return nested(name, ESCAPE, _ESCAPE, token) if "\\" in token else spanned(name, token)


def double_quoted(_: re.Match[str], token: str) -> str:
    """Write a string between double quotes."""
    return string("s", token)


def single_quoted(_: re.Match[str], token: str) -> str:
    """Write a string between single quotes."""
    return string("s1", token)


def _character(_: re.Match[str], token: str) -> str:
    return string("sc", token)


def _directive(_: re.Match[str], token: str) -> str:
    if found := _INCLUDE.match(token):
        return tagged("cp", found[1]) + tagged("cpf", found[2]) + spanned("cp", token[found.end() :])
    return spanned("cp", token)


def named(_: re.Match[str], token: str) -> str:
    """Write a keyword and the name that it defines."""
    start = max(token.rfind(" "), token.rfind("\t")) + 1
    keywords = re.sub(r"[^\W\d]\w*", lambda found: found[0] if found[0].isupper() else tagged("k", found[0]), token[:start])
    name = "nf" if token.startswith(("fn", "fun")) else "nc"
    return keywords + tagged(name, token[start:])


_SIGNATURE = r"[^\W\d][\w:&;*,~\[\] \t]*+(?=\()"
_DECLARED = re.compile(
    r"(?!(?:return|if|else|for|while|switch|case|throw|using|typedef|new|delete|goto)\b)(.*[ \t*;])(~?[\w:]+)", re.DOTALL
)


def _declared(_: re.Match[str], token: str) -> str:
    """Write what begins a line and ends before a parenthesis: a function, where a type stands before its name."""
    found = _DECLARED.fullmatch(token)
    return CUDA.spans(found[1]) + tagged("nf", found[2]) if found else CUDA.spans(token)


_COMMENTS = (Rule("c1", LINE_COMMENT), Rule("cm", BLOCK_COMMENT))
_RULES = (
    *_COMMENTS,
    Rule("s", _RAW, groups=1),
    Rule("s", r"(?:u8|[uUL])?+" + STRING, double_quoted),
    Rule("sc", r"(?:u8|[uUL])?+" + CHARACTER, _character),
    Rule("cp", _PREPROCESSOR, _directive),
    Rule("nf", rf"^{_SIGNATURE}", _declared),
    Rule("nc", _NAMED, named),
    Rule("mi", NUMBER),
)
_STOPS = (r"(?:u8|[uUL])?+R?+[\"']",)
_ANYWHERE = ""

_C = {
    "k": "asm break case const continue default do else enum extern for goto if inline register restrict return sizeof static struct "
    "switch "
    "typedef union volatile while _Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert _Thread_local",
    "kt": "bool char double float int long short signed unsigned void wchar_t size_t ssize_t ptrdiff_t int8_t int16_t int32_t int64_t "
    "uint8_t "
    "uint16_t uint32_t uint64_t intptr_t uintptr_t half bfloat16 _Bool _Complex",
    "nb": "true false NULL TRUE FALSE nullptr",
}
_CPP = {
    "k": f"{_C['k']} alignas alignof auto catch class co_await co_return co_yield concept const_cast consteval constexpr constinit "
    "decltype "
    "delete dynamic_cast explicit export final friend mutable namespace new noexcept operator override private protected public "
    "reinterpret_cast requires static_assert static_cast template this thread_local throw try typeid typename using virtual",
    "kt": f"{_C['kt']} char8_t char16_t char32_t",
    "nb": _C["nb"],
    "ow": "and and_eq bitand bitor compl not not_eq or or_eq xor xor_eq",
}
_CUDA = {
    "k": f"{_CPP['k']} __global__ __device__ __host__ __shared__ __constant__ __managed__ __launch_bounds__ __forceinline__ __noinline__ "
    "__restrict__ __grid_constant__ __cluster_dims__",
    "kt": f"{_CPP['kt']} dim3 float2 float4 double2 int2 int4 uint2 uint4 half2 __half __half2 __nv_bfloat16 __nv_bfloat162",
    "ow": _CPP["ow"],
    "nb": f"{_CPP['nb']} threadIdx blockIdx blockDim gridDim warpSize __syncthreads __syncwarp __threadfence __threadfence_block "
    "__threadfence_system",
}
_OBJECTIVE = {
    **_CPP,
    "k": f"{_CPP['k']} in out inout self super id SEL IMP BOOL nil nonnull nullable strong weak copy assign atomic nonatomic readonly "
    "readwrite",
}

C = Table(_RULES, r"\"'#/", _C, _STOPS, _ANYWHERE, lines=_SIGNATURE)
CPP = Table(_RULES, r"\"'#/", _CPP, _STOPS, _ANYWHERE, lines=_SIGNATURE)
CUDA = Table(_RULES, r"\"'#/", _CUDA, _STOPS, _ANYWHERE, lines=_SIGNATURE)
OBJECTIVE_C = Table(
    (*_RULES[:-1], Rule("k", r"@(?:[a-z]\w*+)"), _RULES[-1]),
    r"\"'#/@",
    _OBJECTIVE,
    _STOPS,
    _ANYWHERE,
    lines=_SIGNATURE,
)

_SHADER = {
    "k": "attribute break buffer case centroid const continue default discard do else flat for highp if in inout invariant layout lowp "
    "mediump "
    "out precision precise readonly restrict return shared smooth struct switch uniform varying void volatile while writeonly",
    "kt": "bool int uint float double half vec2 vec3 vec4 ivec2 ivec3 ivec4 uvec2 uvec3 uvec4 bvec2 bvec3 bvec4 mat2 mat3 mat4 sampler2D "
    "sampler3D image2D image3D iimage2D iimage3D isampler3D float2 float3 float4 uint2 uint3 uint4",
    "kc": "true false",
}
SHADER = Table(_RULES, r"\"'#/", _SHADER, (), _ANYWHERE, lines=_SIGNATURE)

_REGULAR = (
    r"(?:(?<=[=(,:\[!|?{};\n])|(?<=[=(,:\[!|?{};] )|(?<=&amp;)|(?<=&amp; ))"
    r"/(?![/*])(?>[^/\\\n\[]++|\\[^\n]|\[(?>[^\]\\\n]++|\\[^\n])*+\]?+)++(?:/\w*+)?+"
)
_TEMPLATE = (
    r"`(?>[^`\\$]++|\\.?+|\$(?!\{)|\$\{(?>[^{}\"'`\\]++|\"(?>[^\"\\\n]++|\\[^\n])*+\"|'(?>[^'\\\n]++|\\[^\n])*+'"
    r"|`(?>[^`\\]++|\\.)*+`|\{[^{}\"'`\\]*+\})*+\})*+`|" + double("`", over_lines=True)
)
_JAVASCRIPT = {
    "k": "async await break case catch continue debugger default delete do else export extends finally for from if import in instanceof "
    "new of "
    "return static super switch this throw try typeof void while with yield",
    "kd": "class const enum function let var get set",
    "kc": "true false null undefined NaN Infinity",
    "nb": "Array BigInt Boolean Date Error Function JSON Map Math Number Object Promise Proxy Reflect RegExp Set String Symbol WeakMap "
    "WeakSet "
    "console document globalThis process window",
}
_TYPESCRIPT = {
    **_JAVASCRIPT,
    "k": f"{_JAVASCRIPT['k']} abstract as asserts declare implements infer is keyof namespace override private protected public readonly "
    "satisfies type interface module",
    "kt": "any bigint boolean never number string symbol unknown object",
}
_SCRIPT_RULES = (
    *_COMMENTS,
    Rule("s", STRING, double_quoted),
    Rule("s1", CHARACTER, single_quoted),
    Rule("sb", _TEMPLATE),
    Rule("sr", _REGULAR),
    Rule("nd", r"@[^\W\d][\w.]*+"),
    Rule("nc", r"(?:class|function|interface|enum)[ \t]++[^\W\d]\w*+", named),
    Rule("mi", r"\d(?>[eE][+-]|[\w.])*+"),
)
JAVASCRIPT = Table(_SCRIPT_RULES, r"\"'`/@", _JAVASCRIPT)
TYPESCRIPT = Table(_SCRIPT_RULES, r"\"'`/@", _TYPESCRIPT)

_CURLY_RULES = (
    *_COMMENTS,
    Rule("s", r"\"\"\"(?>[^\"\\]++|\\.?+|\"(?!\"\"))*+(?:\"\"\"|\Z)"),
    Rule("s", STRING, double_quoted),
    Rule("sc", r"'(?>[^'\\\n]|\\[^\n]{1,9}?)'", _character),
    Rule("sb", r"`[^`]*+`?+"),
    Rule("nd", r"@[^\W\d][\w.]*+|#!?\[(?>[^\]\"\n]++|\"[^\"\n]*+\")*+\]?+"),
    Rule("nc", r"(?:class|struct|enum|interface|trait|impl|mod|object|record|fn|fun|func|type)[ \t]++[^\W\d]\w*+", named),
    Rule("mi", r"\d(?>[eE][+-]|\w|\.(?=\d))*+"),
)
_JAVA = {
    "k": "abstract assert break case catch class continue default do else enum extends final finally for if implements import instanceof "
    "interface native new package permits private protected public record return sealed static strictfp super switch synchronized this "
    "throw throws transient try var volatile while yield",
    "kt": "boolean byte char double float int long short void",
    "kc": "true false null",
}
_KOTLIN = {
    "k": "abstract annotation as break by catch class companion const constructor continue crossinline data do else enum final finally "
    "for fun if "
    "import in infix init inline inner interface internal is lateinit noinline object open operator out override package private protected "
    "public reified return sealed super suspend tailrec this throw try typealias val var vararg when where while",
    "kt": "Any Boolean Byte Char Double Float Int List Long Map Nothing Set Short String Unit",
    "kc": "true false null",
}
_RUST = {
    "k": "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return "
    "self Self "
    "static struct super trait type union unsafe use where while",
    "kt": "bool char f16 f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
    "kc": "true false",
    "nb": "Box Err None Ok Option Result Some String Vec",
}
_GO = {
    "k": "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return "
    "select "
    "struct switch type var",
    "kt": "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 "
    "uint32 "
    "uint64 uintptr",
    "kc": "true false nil iota",
    "nb": "append cap clear close complex copy delete imag len make max min new panic print println real recover",
}
JAVA = Table(_CURLY_RULES, r"\"'/@", _JAVA)
KOTLIN = Table(_CURLY_RULES, r"\"'/@", _KOTLIN)
RUST = Table(_CURLY_RULES, r"\"'/#", _RUST, (r"(?:class|struct|enum|trait|impl|mod|fn|type)[ \t]",))
GO = Table(_CURLY_RULES, r"\"'`/", _GO)
