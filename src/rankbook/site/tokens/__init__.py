"""The tables of tokens, by the name of the language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankbook.site.tokens import c_family, data, markup, python, scripts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankbook.site.tokens.table import Table

TABLES: Mapping[str, Table] = {
    "python": python.PYTHON,
    "pycon": markup.PYTHON_SESSION,
    "cython": python.CYTHON,
    "starlark": python.STARLARK,
    "c": c_family.C,
    "opencl": c_family.C,
    "cpp": c_family.CPP,
    "metal": c_family.CPP,
    "cuda": c_family.CUDA,
    "objective-c": c_family.OBJECTIVE_C,
    "objective-c++": c_family.OBJECTIVE_C,
    "glsl": c_family.SHADER,
    "hlsl": c_family.SHADER,
    "javascript": c_family.JAVASCRIPT,
    "typescript": c_family.TYPESCRIPT,
    "java": c_family.JAVA,
    "kotlin": c_family.KOTLIN,
    "rust": c_family.RUST,
    "go": c_family.GO,
    "json": data.JSON,
    "yaml": data.YAML,
    "toml": data.TOML,
    "ini": data.INI,
    "sql": data.SQL,
    "bash": scripts.BASH,
    "console": scripts.CONSOLE,
    "cmake": scripts.CMAKE,
    "makefile": scripts.MAKEFILE,
    "dockerfile": scripts.DOCKERFILE,
    "markdown": markup.MARKDOWN,
    "rst": markup.RST,
    "html": markup.HTML,
    "xml": markup.XML,
    "svg": markup.XML,
    "diff": markup.DIFF,
}
"""A language that is not here gets its colours from Pygments."""

markup.INNER.update({name: table for name, table in TABLES.items() if table is not markup.MARKDOWN})
