"""Submodules that a program takes from a package without importing them.

`import torch` and then `torch.distributed.fsdp` fails in a new interpreter, and not where something else has imported the submodule before.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
from collections.abc import Iterator, Mapping

from rankbook.syntax import syntax_tree


def taken(text: bytes) -> tuple[str, ...]:
    """Name what a program takes from packages by attributes, and imports nowhere: of `torch.distributed.fsdp.wrap` each part down to it.

    Which of the names are those of modules only its interpreter knows, and what else it imports may bring them.

    Args:
        text: of its file: a module, a script or a session; one that does not parse says nothing.

    Returns:
        Dotted names, sorted.
    """
    nodes = list(ast.walk(_tree(text)))
    bound, named = dict[str, str](), set[str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
            bound |= {alias.asname or _top(alias.name): alias.name if alias.asname else _top(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            of_module = {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            named.update((node.module, *of_module.values()))
            bound |= of_module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            named.add(node.value)  # of `import_module`, `patch` and their like
    found = {name for node in nodes if isinstance(node, ast.Attribute) for name in _of_attribute(node, bound)}
    return tuple(sorted(found - {above for name in named for above in _down_to(name)}))


def _of_attribute(node: ast.Attribute, bound: Mapping[str, str]) -> Iterator[str]:
    parts, value = [node.attr], node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if isinstance(value, ast.Name) and value.id in bound:
        yield ".".join((bound[value.id], *reversed(parts)))


def _tree(text: bytes) -> ast.Module:
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return syntax_tree(text)
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        examples = doctest.DocTestParser().get_examples(text.decode())
        return syntax_tree("".join(example.source for example in examples))
    return ast.Module([], [])


def _top(name: str) -> str:
    return name.partition(".")[0]


def _down_to(name: str) -> Iterator[str]:
    """Yield a dotted name and all above it but the first."""
    while "." in name:
        yield name
        name = name.rpartition(".")[0]
