"""The syntax tree of Python that is only looked at: what Python would warn of in it is told by whoever runs it."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator


def syntax_tree(source: str | bytes, path: str = "<unknown>") -> ast.Module:
    """Parse a source in silence, also where the tests that are running turn warnings into errors.

    Args:
        source: text, or bytes that may name their encoding.
        path: of the file, for errors.

    Raises:
        SyntaxError: it does not parse.
        ValueError: it cannot be read as text.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, path)


def plugins_of(node: ast.AST) -> Iterator[str]:
    """Yield the modules that an assignment to `pytest_plugins` names: pytest imports them as an import statement would."""
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(isinstance(target, ast.Name) and target.id == "pytest_plugins" for target in targets):
        words = (part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant) and isinstance(part.value, str))
        names = (name.strip() for word in words for name in word.split(","))
        yield from (name for name in names if all(part.isidentifier() for part in name.split(".")))


def set_inside(tree: ast.Module, text: str) -> Iterator[str]:
    """Yield the names that `:=` sets in a file; what has none of its lines is not looked into.

    Args:
        tree: of the file.
        text: of the file, its lines ended as Python ends them.
    """
    lines, line, end = [], 1, 0
    for match in _WALRUS.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        lines.append(line)
    waiting: list[ast.AST] = [tree] if lines else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):  # before Python 3.12, what stands in it does not know its place
            yield from (inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
            continue
        if isinstance(node, ast.NamedExpr):
            yield node.target.id
        for child in ast.iter_child_nodes(node):
            last = getattr(child, "end_lineno", None)
            if last is not None:
                first = min([child.lineno, *(each.lineno for each in getattr(child, "decorator_list", ()))])  # type: ignore[attr-defined]
                place = bisect_left(lines, first)
                if place == len(lines) or lines[place] > last:
                    continue
            waiting.append(child)


_WALRUS = re.compile(":=")
_IMPORTING = frozenset({"import_module", "__import__", "importorskip"})
_OF_PACKAGE = frozenset({"__package__", "__name__"})


def called_imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what a call imports by a name that stands there, `import_module("a.b")` say, with the dots before the name."""
    if not isinstance(node, ast.Call) or _name_of(node.func) not in _IMPORTING:
        return
    told = {keyword.arg: keyword.value for keyword in node.keywords}
    name, package = (node.args[at] if len(node.args) > at else told.get(word) for at, word in enumerate(("name", "package")))
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return
    level = len(name.value) - len(name.value.lstrip("."))
    parts = name.value[level:].split(".")
    if isinstance(package, ast.Constant) and isinstance(package.value, str) and level:
        above = package.value.split(".")
        parts, level = [*above[: len(above) - level + 1], *parts], 0
    is_known = not level or (isinstance(package, ast.Name) and package.id in _OF_PACKAGE)
    if is_known and all(part.isidentifier() for part in parts):
        yield level, ".".join(parts)


def _name_of(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def applied(node: ast.stmt) -> ast.expr | None:
    """Give the list whose entries a loop puts on one thing in turn, `for mark in marks: test = mark(test)`; None for other statements."""
    match node:
        case ast.For(target=ast.Name(id=entry), iter=listed, body=[ast.Assign(targets=[ast.Name(id=thing)], value=value)], orelse=[]):
            match value:
                case ast.Call(func=ast.Name(id=called), args=[ast.Name(id=given)], keywords=[]) if called == entry and given == thing:
                    return listed
    return None


def written_entries(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the entries of a list as it is written, `[a, *b] + c`; of a starred one, and of what is no list, itself."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield part.value if isinstance(part, ast.Starred) else part
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from written_entries(left)
            yield from written_entries(right)
        case _:
            yield node


def passed_by(
    body: list[ast.stmt], line: int, ends: Callable[[ast.stmt], bool], each: frozenset[str] = frozenset()
) -> Iterator[ast.expr | None]:
    """Yield what must be false for a line to be reached, of the conditions under which the function is left before: `if x: return`.

    Args:
        body: statements of a function.
        line: of one of them.
        ends: tells of a statement whether nothing behind it is reached: what it stands under is of no interest.
        each: what loops around them go through: one that goes on with the next because of what it has got comes here with another.

    Yields:
        None where only a run can tell, such as for a loop that returns.
    """
    for node in body:
        if node.lineno > line:
            return
        if (node.end_lineno or node.lineno) < line:
            yield from _passed(node, ends, each)
            continue
        inner = each.union(_names(node.target)) if isinstance(node, (ast.For, ast.AsyncFor)) else each
        for block in _blocks(node):
            if block[0].lineno <= line <= (block[-1].end_lineno or line):
                yield from passed_by(block, line, ends, inner)


def before(body: list[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """Yield the statements of a function that are run before a line is come to for the first time; of those around it, those inside."""
    for node in body:
        if node.lineno > line:
            return
        if (node.end_lineno or node.lineno) < line:
            yield node
            continue
        for block in _blocks(node):
            if block[0].lineno <= line <= (block[-1].end_lineno or line):
                yield from before(block, line)


def _passed(node: ast.stmt, ends: Callable[[ast.stmt], bool], each: frozenset[str]) -> Iterator[ast.expr | None]:
    if not _may_leave(node):
        return
    if isinstance(node, ast.If) and isinstance(node.body[-1], _LEAVES):
        goes_on = isinstance(node.body[-1], ast.Continue) and not each.isdisjoint(_names(node.test))
        if not (goes_on or any(map(ends, node.body))):
            yield node.test
        for other in node.orelse:
            yield from _passed(other, ends, each)
    else:
        yield None


def _names(node: ast.expr) -> Iterator[str]:
    return (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


_LEAVES = (ast.Return, ast.Continue, ast.Break)
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


def _may_leave(node: ast.stmt, leaves: tuple[type[ast.stmt], ...] = _LEAVES) -> bool:
    if isinstance(node, leaves):
        return True
    within = (ast.Return,) if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) else leaves
    return any(_may_leave(inner, within) for block in _blocks(node) for inner in block)


def has_leaves(body: list[ast.stmt]) -> bool:
    """Tell whether statements, or such within them, return, or leave a loop, or go on with it."""
    return any(isinstance(node, _LEAVES) or any(map(has_leaves, _blocks(node))) for node in body)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements within one, but for those of a function or a class."""
    if not isinstance(node, _COMPOUND):
        return
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(node, name, None):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body
