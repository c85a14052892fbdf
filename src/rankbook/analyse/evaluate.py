"""What an expression comes to, as far as the names of generated tests need it: nothing is imported, nothing without bound."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse import outside, statements
from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.inheritance import lineage_of
from rankbook.analyse.names import Place
from rankbook.analyse.operations import FUNCTIONS, SetOrder, binary, bounded, distinct, entries, index, method, set_order, sets_in
from rankbook.analyse.things import (
    DTYPES,
    Case,
    Choice,
    Fails,
    Generated,
    Thing,
    Undecided,
    Unknown,
    Value,
    known,
    scalar_of,
    text_of,
    told,
    unknown,
)
from rankbook.analyse.values import parsed
from rankbook.collecting import ABSL
from rankbook.model import Class, Constant, Expression, Function
from rankbook.syntax import written_entries

_DEPTH = 40
"""Expressions within expressions, constants and calls that are followed."""
_STEPS = 60_000
"""Nodes that one question may look at."""
_END = sys.maxsize
"""A line behind all lines."""
FAILS = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError, MemoryError)
"""What reading an expression that would fail when it runs may raise."""
_MARK = "pytest.mark."
_ABSL = tuple(f".{name}" for name in ABSL)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_SCALARS = frozenset({"str", "int", "float", "bytes", "bool", "IntEnum", "StrEnum", "IntFlag"})
"""Bases that make a member, or an object, a string or a number too."""
_CONVERSIONS: Mapping[str, Callable[..., Value]] = {
    **dict.fromkeys(("int", "IntEnum", "IntFlag"), int),
    **dict.fromkeys(("str", "StrEnum"), str),
    "float": float,
}
"""What makes a member of the value that is written, by its base: a tuple is taken for several arguments."""
_PLAIN_TEXTS = frozenset({"IntEnum", "StrEnum", "IntFlag"})
"""Enumerations whose members are written as their values."""
_TUPLES = frozenset({"tuple", "list"})
_ADDED = frozenset({
    "append", "extend", "insert", "update", "add", "remove", "pop", "clear", "discard", "sort", "reverse", "setdefault",
    "__setitem__", "__delitem__", "__iadd__",
})  # fmt: skip
_JOINS: Mapping[tuple[type, str], Callable[[Value, Value], Value]] = {
    (list, "append"): lambda value, more: [*value, more],
    (list, "extend"): lambda value, more: [*value, *entries(more)],
    (dict, "update"): lambda value, more: {**value, **more},
    (dict, "__setitem__"): lambda value, more: {**value, **more},
}
"""What a module may do to its constants."""
_GROWING = (list, dict, frozenset)
"""Values that what is added to them leaves the same objects."""
_OBJECTS = frozenset({
    "object", "torch.tensor", "torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.arange",
    "torch.Generator", "torch.Tensor", "datetime.timedelta", "datetime.datetime", "pathlib.Path", "pathlib.PurePath",
    "numpy.array", "numpy.zeros", "numpy.ones", "threading.Lock", "slice",
})  # fmt: skip
"""What makes an object that is no string, no number and no enumeration, by its full dotted name."""
_SINGLE = frozenset({
    "torch.contiguous_format", "torch.channels_last", "torch.channels_last_3d", "torch.preserve_format", "torch.strided",
    "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc", "torch.jagged",
    "torch.per_tensor_affine", "torch.per_channel_affine",
})  # fmt: skip
"""Objects that are no strings, no numbers and no enumerations, and that compiled code makes."""
_CASES = frozenset({"pytest.param", "param", "parameterized.param", "parameterized.parameterized.param"})
"""What wraps a set of parameters."""
_IDENTITIES = frozenset({"_validate_dtypes"})
"""Functions that check their arguments and give them back."""


class Frame(Struct, frozen=True):
    """Where an expression stands."""

    path: str
    line: int = 0
    """Line that is run then; 0 where all of the file has been run before."""
    names: Mapping[str, Value] | None = None
    """Names that a loop, a lambda or a call binds."""
    owner: Class | None = None
    """Class in whose body it stands."""
    caller: tuple[str, int] | None = None
    """File and line that are run when the function is called in which it stands; None where it stands in none."""

    @property
    def now(self) -> tuple[str, int]:
        """The file that is being imported, and the line of it that is run."""
        return self.caller or (self.path, self.line)

    def comes_to(self, path: str) -> int:
        """Give the line of a file before which all has been run."""
        own, line = self.now
        return line if line and own == path else _END

    def within(self, names: Mapping[str, Value]) -> Frame:
        """Give the frame of an inner scope."""
        return replace(self, names={**(self.names or {}), **names})


class _Time(NamedTuple):
    """When a name is looked at."""

    line: int
    """What stands above has been run when the name is looked up."""
    later: int
    """What stands above has been run when the object is looked at that was found: it may have grown."""


class Evaluator:
    """Evaluates expressions of the tree.

    Args:
        draft: the tree.
        assumed: outcomes of choices that a run makes.
    """

    def __init__(self, draft: Draft, assumed: Mapping[Choice, bool] | None = None) -> None:
        self.draft = draft
        self.assumed = assumed or {}
        self.settings: list[statements.Setting] = []
        """Names that the functions set that were called."""
        self._steps = 0
        self._depth = 0
        self._open: set[tuple[str, str, _Time]] = set()
        """Constants that are being evaluated."""

    def of(self, text: str, frame: Frame) -> Value:
        """Give the value of an expression.

        Raises:
            Unknown: the sources do not tell it.
            Undecided: a choice that is not assumed decides it.
        """
        node = parsed(text)
        if node is None:
            raise Unknown("it is too long to be read")
        return self.value(node, frame)

    def value(self, node: ast.AST, frame: Frame) -> Value:
        """Give the value of a node; see `of`."""
        self.spend()
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise Unknown("it is known when it runs")
        self._depth += 1
        try:
            return handler(self, node, frame)
        except (RecursionError, MemoryError) as error:
            raise Unknown("it is too deep to be read") from error
        except FAILS as error:
            raise Fails("it is known when it runs") from error
        finally:
            self._depth -= 1

    def kept(self, node: ast.expr, frame: Frame) -> Value:
        """Give the value of a node as it is looked at when all of its file has been run: what it holds may have grown since."""
        return self.value(node, frame.within(self._grown(node, frame, _END)))

    def spend(self) -> None:
        """Count a step.

        Raises:
            Unknown: there were too many.
        """
        self._steps += 1
        if self._steps > _STEPS or self._depth > _DEPTH:
            raise Unknown("it is too deep to be read")

    def truth(self, node: ast.expr, frame: Frame) -> bool:
        """Tell whether a condition is true; what the sources do not tell is a choice."""
        if isinstance(node, ast.BoolOp):
            wanted = isinstance(node.op, ast.And)
            return wanted if all(self.truth(part, frame) == wanted for part in node.values) else not wanted
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.truth(node.operand, frame)
        try:
            return bool(self._scalar(node, frame))
        except (Unknown, Undecided) as error:
            bound = frame.names or {}
            if isinstance(error, Unknown) and any(isinstance(part, ast.Name) and part.id in bound for part in ast.walk(node)):
                raise
            return self.ask(Choice(frame.path, ast.unparse(node), frame.line))

    def ask(self, choice: Choice) -> bool:
        """Give the outcome that is assumed.

        Raises:
            Undecided: none is.
        """
        if choice not in self.assumed:
            raise Undecided(choice)
        return self.assumed[choice]

    def call(self, called: Value, arguments: list[Value], frame: Frame) -> Value:
        """Call a lambda, a partial or a function whose body is one `return`, from where the frame is."""
        return self._called(called, arguments, {}, frame)

    def _scalar(self, node: ast.expr, frame: Frame) -> Value:
        value = self.value(node, frame)
        if isinstance(known(value), Thing) and value.kind in ("object", "pattern", "text"):
            raise Unknown("it is an object")
        return value

    # Literals and operators

    def _constant(self, node: ast.Constant, _frame: Frame) -> Value:
        return bounded(node.value)

    def _elements(self, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> list[Value]:
        found: list[Value] = []
        for entry in node.elts:
            if isinstance(entry, ast.Starred):
                found += entries(self.value(entry.value, frame))
            else:
                found.append(self._content(entry, frame))
        bounded(found)
        return found

    def _content(self, node: ast.expr, frame: Frame) -> Value:
        """Give a value within another, which may be known without it."""
        try:
            return self.value(node, frame)
        except Unknown as error:
            return unknown(error)

    def _list(self, node: ast.List, frame: Frame) -> Value:
        return self._elements(node, frame)

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        return tuple(self._elements(node, frame))

    def _set(self, node: ast.Set, frame: Frame) -> Value:
        return distinct(self._elements(node, frame))

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        found: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found |= self.value(value, frame)
            else:
                found[self._content(key, frame)] = self._content(value, frame)
        return bounded(found)

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        return binary(type(node.op), scalar_of(self.value(node.left, frame)), scalar_of(self.value(node.right, frame)))

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand, frame)
        value = self._scalar(node.operand, frame)
        return -value if isinstance(node.op, ast.USub) else +value if isinstance(node.op, ast.UAdd) else ~value

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.value(node.left, frame)
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, frame)
            if not binary(type(operator), left, right):
                return False
            left = right
        return True

    def _bool(self, node: ast.BoolOp, frame: Frame) -> Value:
        value: Value = None
        for part in node.values:
            value = self._scalar(part, frame)
            if bool(value) != isinstance(node.op, ast.And):
                return value
        return value

    def _if(self, node: ast.IfExp, frame: Frame) -> Value:
        return self.value(node.body if self.truth(node.test, frame) else node.orelse, frame)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        if isinstance(value, Thing) and value.kind == "class":
            members = self._members(value)
            if members:
                return next(member for member in members if member.name.endswith(f".{self.value(node.slice, frame)}"))
            return Thing("object", value.name)  # `list[int]`
        return index(value, self.value(node.slice, frame))

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        return slice(*(None if part is None else self.value(part, frame) for part in (node.lower, node.upper, node.step)))

    def _joined(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value, frame)
                spec = "" if part.format_spec is None else f":{self.value(part.format_spec, frame)}"
                conversion = "" if part.conversion < 0 else f"!{chr(part.conversion)}"
                parts.append(method("", "format")(f"{{0{conversion}{spec}}}", value))
            else:
                parts.append(self.value(part, frame))
        return bounded("".join(parts))

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return Thing("lambda", "<lambda>", path=frame.path, body=(node, frame))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, frame: Frame) -> Value:
        found: Value = bounded([self.value(node.elt, inner) for inner in self._loop(node.generators, frame)])
        return Generated(found) if isinstance(node, ast.GeneratorExp) else found

    def _set_comprehension(self, node: ast.SetComp, frame: Frame) -> Value:
        return bounded(distinct(self.value(node.elt, inner) for inner in self._loop(node.generators, frame)))

    def _dict_comprehension(self, node: ast.DictComp, frame: Frame) -> Value:
        return bounded({self.value(node.key, inner): self.value(node.value, inner) for inner in self._loop(node.generators, frame)})

    def _loop(self, generators: list[ast.comprehension], frame: Frame) -> Iterator[Frame]:
        first, *rest = generators
        for value in self.listed(self.value(first.iter, frame)):
            inner = frame.within(bind(first.target, value))
            if all(self.truth(condition, inner) for condition in first.ifs):
                yield from self._loop(rest, inner) if rest else (inner,)

    def listed(self, value: Value) -> list[Value]:
        """Give the entries of a collection, or the members of an enumeration."""
        members = self._members(value) if isinstance(value, Thing) else None
        return entries(value) if members is None else members

    # Names

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        if frame.names is not None and node.id in frame.names:
            return frame.names[node.id]
        return self._named(node.id, frame)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        name = _dotted(node)
        bound = name.partition(".")[0] in (frame.names or {})
        if name and not bound:
            try:
                return self._named(name, frame)
            except _Nowhere:
                pass
        return self._of_thing(self.value(node.value, frame), node.attr, frame)

    def _named(self, name: str, frame: Frame) -> Value:
        own = self._in_class(name, frame)
        if own:
            return self._gone_through(name, own, Frame(frame.path, owner=frame.owner), _Time(_END, _END))
        if name in self._assignments(frame.path):
            return self._assigned_above(name, frame)
        full = self.draft.names.full(frame.path, name)
        if full.startswith("torch.") and full.removeprefix("torch.") in DTYPES:
            return Thing("dtype", DTYPES[full.removeprefix("torch.")])
        place = self.draft.names.find(frame.path, name)
        return self._of_place(place, frame) if place is not None else self._elsewhere(name, full)

    def _elsewhere(self, name: str, full: str) -> Value:
        """Give what no known file defines: Python's own names, and objects that compiled code makes."""
        if full in _SINGLE or full.startswith("torch.ops."):
            return Thing("object", name)
        if name in _BUILTINS:
            return Thing(_BUILTINS[name], name)
        if full.startswith(_MARK):
            return Thing("mark", full)
        if full in outside.VALUES:
            return outside.VALUES[full]
        found = outside.of_library(full)
        if found is not None:
            return found
        raise _Nowhere(f"`{name}` is defined in no known file")

    def _assigned_above(self, name: str, frame: Frame) -> Value:
        """Give the value of a constant where it is assigned above, and what the name means there where it is not."""
        path, line = frame.path, self._come_to(frame)
        if any(each.line < line for each in self._assignments(path)[name]):
            is_open = (path, name, _Time(line, line)) in self._open
            return self._earlier(path, name, frame) if is_open else self.assigned(path, name, line)
        try:
            return self._earlier(path, name, frame)
        except Unknown:
            if (path, name, _Time(_END, _END)) in self._open:
                raise
        return self.assigned(path, name)

    def _come_to(self, frame: Frame) -> int:
        """Give the line of a file before which all has been run; in a loop, what stands below may have been run too."""
        line = frame.comes_to(frame.path)
        for loop in self.draft.modules[frame.path].loops if line != _END else ():
            end = loop.line + loop.text.count("\n") + 1
            if loop.line < line < end:
                return end
        return line

    def _earlier(self, path: str, name: str, frame: Frame) -> Value:
        """Give what a name means before it is assigned anew: `f = partial(f, 2)`."""
        module = self.draft.modules[path]
        own: list[Class | Function] = [*module.functions, *module.classes]
        for definition in own:
            if definition.qualname == name:
                return self._of_place(Place(path, definition), frame)
        entry = self.draft.names.bindings(path).get(name)
        origin = self.draft.names.target(path, "." * entry.level + entry.module) if entry and entry.name else None
        place = self.draft.names.find(origin, entry.name) if origin and entry and entry.name else None
        if place is None:
            raise Unknown(f"`{name}` is defined in no known file" if origin or (entry and entry.name) else "it is defined by itself")
        return self._of_place(place, frame)

    def _in_class(self, name: str, frame: Frame) -> list[Constant]:
        """Give the assignments of a name above, in the body of the class."""
        if frame.owner is None or (frame.names and name in frame.names):
            return []
        line = frame.line or _END
        return [each for each in frame.owner.attributes if each.name == name and each.value != name and each.line < line]

    def _of_place(self, place: Place, frame: Frame) -> Value:
        definition = place.definition
        if isinstance(definition, Constant):
            return self.assigned(place.path, definition.name, frame.comes_to(place.path))
        kind = "class" if isinstance(definition, Class) else "function"
        return Thing(kind, definition.name, path=place.path, definition=definition)

    def _assignments(self, path: str) -> Mapping[str, list[Constant]]:
        def table() -> dict[str, list[Constant]]:
            found: dict[str, list[Constant]] = {}
            for constant in self.draft.modules[path].constants:
                if constant.value:
                    found.setdefault(constant.name, []).append(constant)
            return found

        return self.draft.remember(("assignments", path), table)

    def assigned(self, path: str, name: str, line: int = _END) -> Value:
        """Give the value of a module's constant at a line; of several assignments, and of what is added to it, a run chooses."""
        return self._at(path, name, _Time(line, line))

    def _at(self, path: str, name: str, time: _Time) -> Value:
        lines = self._lines(path)
        times = bisect_left(lines, time.line), bisect_left(lines, time.later)
        order = set_order()
        question = ("constant", path, name, times, order.is_turned)
        found, is_asked = self.draft.remember(question, lambda: self._remembered(path, name, time))
        order.is_asked = order.is_asked or is_asked
        if isinstance(found, Unknown):
            raise Unknown(*found.args)
        return self._assigned(path, name, time) if found is None else found[0]

    def _lines(self, path: str) -> list[int]:
        """Give the lines at which a module sets or changes a name that means more than one thing in it."""

        def table() -> list[int]:
            module, changes = self.draft.modules[path], self._changes(path)
            defined = {*(each.qualname for each in module.functions), *(each.qualname for each in module.classes)}
            others = defined | self.draft.names.bindings(path).keys()
            return sorted({change.line for name, each in changes.items() if len(each) > 1 or name in others for change in each})

        return self.draft.remember(("changing lines", path), table)

    def _remembered(self, path: str, name: str, time: _Time) -> tuple[tuple[Value] | Unknown | None, bool]:
        """Give the value of a constant on which nothing has an influence, None when something has, and whether sets were gone through."""
        outer = self.assumed, self._steps, self._depth
        self.assumed, self._steps, self._depth = {}, 0, 0
        with sets_in(SetOrder(set_order().is_turned)) as order:
            try:
                return (self._assigned(path, name, time),), order.is_asked
            except Undecided:
                return None, order.is_asked
            except Unknown as error:
                return Unknown(*error.args), order.is_asked
            finally:
                self.assumed, self._steps, self._depth = outer

    def _assigned(self, path: str, name: str, time: _Time) -> Value:
        if (path, name, time) in self._open:
            raise Unknown("it is defined by itself")
        self._open.add((path, name, time))
        try:
            changes = self._changes(path).get(name, [])
            value = self._gone_through(name, changes, Frame(path), time)
            if isinstance(value, _GROWING) and name in self.draft.modules[path].unsettled and not any(map(_adds, changes)):
                raise Unknown(f"`{name}` is changed when it runs")
            return value
        finally:
            self._open.discard((path, name, time))

    def _gone_through(self, name: str, changes: Sequence[Constant | Expression], within: Frame, time: _Time) -> Value:
        """Go through the assignments of a name, and through what is added to it, as a run does."""
        ends = [index for index, each in enumerate(changes, start=1) if each.line < time.line or (each.line < time.later and _adds(each))]
        starts = [index for index, each in enumerate(changes) if each.line < time.line and _is_start(each)]
        found: list[Value] = []
        for change in changes[starts[-1] if starts else 0 : ends[-1] if ends else 0]:
            guard, frame = parsed(change.guard) if change.guard else None, replace(within, line=change.line)
            if guard is None or self.truth(guard, frame):
                if change.line >= time.line and not (found and isinstance(found[0], _GROWING) and _adds(change)):
                    break
                found = [self._changed(name, change, found, frame, time.later)]
        if not found:
            raise _Nowhere(f"`{name}` is defined in no known file")
        return found[0]

    def _grown(self, node: ast.expr | None, frame: Frame, later: int) -> dict[str, Value]:
        """Give what the value of a node holds as it is at a later line, by name: `B = [A]`, and then `A.append(1)`."""
        line, lines, found = self._come_to(frame), self._lines(frame.path), {}
        names = _held(node) if bisect_left(lines, line) < bisect_left(lines, later) else frozenset()
        for name in names - (frame.names or {}).keys():
            if any(each.line < line for each in self._assignments(frame.path).get(name, ())) and not self._in_class(name, frame):
                try:
                    found[name] = self._at(frame.path, name, _Time(line, later))
                except Unknown as error:
                    found[name] = unknown(error)
        return found

    def _changes(self, path: str) -> Mapping[str, list[Constant | Expression]]:
        """Give the assignments of a module's names, with the calls that change what they hold, in the order of their lines."""

        def table() -> dict[str, list[Constant | Expression]]:
            found: dict[str, list[Constant | Expression]] = {name: list(each) for name, each in self._assignments(path).items()}
            for call in self.draft.modules[path].calls:
                holder, _, added = call.name.rpartition(".")
                if added in _ADDED and holder in found:
                    found[holder].append(call)
            return {name: sorted(each, key=lambda change: change.line) for name, each in found.items()}

        return self.draft.remember(("changes", path), table)

    def _changed(self, name: str, change: Constant | Expression, before: list[Value], frame: Frame, later: int) -> Value:
        frame = frame.within({name: before[0]}) if before else frame
        text = change.value if isinstance(change, Constant) else next(iter(change.arguments), "")
        frame = frame.within(self._grown(parsed(text), frame, later))
        if isinstance(change, Constant):
            more = change.value.removeprefix(f"{name} + ")
            if before and isinstance(before[0], list) and more != change.value:  # a list takes any more values
                return bounded([*before[0], *entries(self.of(more, frame))])
            value = self.of(change.value, frame)
            if self._is_shared(frame.path, change) and not isinstance(value, (str, int, float, Thing)):
                raise Unknown(f"`{name}` is one of several names that are assigned together")
            return value
        added = change.name.rpartition(".")[2]
        if not before or (type(before[0]), added) not in _JOINS or len(change.arguments) != 1:
            raise Unknown(f"`{name}` is changed by `{change.text}`")
        return bounded(_JOINS[type(before[0]), added](before[0], self.of(change.arguments[0], frame)))

    def _is_shared(self, path: str, constant: Constant) -> bool:
        return sum(each.line == constant.line and each.value == constant.value for each in self.draft.modules[path].constants) > 1

    # Classes, functions and objects

    def _of_thing(self, value: Value, name: str, frame: Frame) -> Value:
        if not isinstance(value, Thing):
            return self._of_plain(value, name)
        read = _ATTRIBUTES.get((value.kind, name))
        if read is not None:
            return read(self, value)
        fields = dict(value.fields)
        if name in fields:
            return fields[name]
        if value.kind == "class" and isinstance(value.definition, Class):
            return self._class_attribute(value, value.definition, name, frame)
        raise Unknown(f"`.{name}` is known when it runs")

    def _of_plain(self, value: Value, name: str) -> Value:
        """Give an attribute of a set of parameters, or a method of a plain value."""
        if isinstance(value, Case) and name in ("id", "values"):
            return value.name if name == "id" else value.values
        if isinstance(value, Case) and name == "marks" and not value.marks:
            return ()
        if isinstance(value, Case) or not callable(getattr(type(value), name, None)):
            raise Unknown(f"`.{name}` is known when it runs")
        return Thing("function", name, body=("method", value, name))

    def _class_attribute(self, thing: Thing, definition: Class, name: str, frame: Frame) -> Value:
        members = self._members(thing)
        for member in members or ():
            if member.name == f"{thing.name}.{name}":
                return member
        for ancestor in lineage_of(self.draft, thing.path, definition):
            facts = ancestor.facts
            found = [each for each in facts.attributes if each.name == name] if facts else []
            if found:
                time = _Time(_END, frame.comes_to(ancestor.path))
                return self._gone_through(name, found, Frame(ancestor.path, owner=facts), time)
            if facts and any(each.name == name for each in facts.methods):
                return Thing("function", name, body=("method", thing, name))
        raise Unknown(f"`{thing.name}.{name}` is defined in no known file")

    def _bases(self, thing: Thing) -> frozenset[str]:
        if not isinstance(thing.definition, Class):
            return frozenset({thing.name})
        return frozenset(ancestor.last for ancestor in lineage_of(self.draft, thing.path, thing.definition))

    def _members(self, thing: Thing) -> list[Thing] | None:
        """Give the members of an enumeration; None for any other class."""
        definition = thing.definition
        if thing.kind != "class" or not isinstance(definition, Class) or not self._bases(thing) & _ENUMS:
            return None
        return [self._member(thing, definition, each) for each in definition.attributes if each.value and not each.name.startswith("_")]

    def _member(self, thing: Thing, definition: Class, attribute: Constant) -> Thing:
        scalar, bases = None, self._bases(thing)
        fields: tuple[tuple[str, Value], ...] = ()
        if bases & _SCALARS:
            scalar = self._converted(thing, definition, self.of(attribute.value, Frame(thing.path, attribute.line, owner=definition)))
        if any(each.name in ("__str__", "__format__") for each in definition.methods):
            fields = (("__str__", None),)
        elif bases & _PLAIN_TEXTS:
            fields = (("__str__", str(scalar)),)
        return Thing("member", f"{thing.name}.{attribute.name}", scalar, thing.path, definition, fields)

    def _converted(self, thing: Thing, definition: Class, written: Value) -> Value:
        """Give the string or number that a member is."""
        lineage = lineage_of(self.draft, thing.path, definition)
        is_made = any(each.name == "__new__" for ancestor in lineage if ancestor.facts for each in ancestor.facts.methods)
        convert = next((_CONVERSIONS[ancestor.last] for ancestor in lineage if ancestor.last in _CONVERSIONS), None)
        value = scalar_of(written)
        arguments = value if isinstance(value, tuple) else (value,)
        if convert is not None and not is_made and all(isinstance(each, (str, bytes, int, float)) for each in arguments):
            return convert(*arguments)
        if isinstance(value, tuple):
            raise Unknown(f"what the members of `{thing.name}` are is known when it runs")
        return written

    def _member_value(self, member: Thing) -> Value:
        if member.scalar is not None:
            return member.scalar
        assert isinstance(member.definition, Class)
        attribute = next(each for each in member.definition.attributes if each.name == member.name.rpartition(".")[2])
        return self.of(attribute.value, Frame(member.path, attribute.line, owner=member.definition))

    # Calls

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        name = _dotted(node.func)
        full = self.draft.names.full(frame.path, name) if name and name.partition(".")[0] not in (frame.names or {}) else ""
        last = full.rpartition(".")[2]
        if full in _CASES or last == "subtest":
            return self._case(node, frame, is_subtest=last == "subtest")
        if full.startswith(_MARK) or f".{full}".endswith(_ABSL):
            return Thing("mark", full, body=(node, frame))
        if full in ("type", "isinstance") and self._is_about_class(node, full):
            return self._made_class(node, frame) if full == "type" else self._is_class(node.args[0], frame)
        if full in ("functools.partial", "partial"):
            called, *arguments = self._arguments(node, frame)
            return Thing("partial", "partial", body=(called, arguments, self._keywords(node, frame)))
        if isinstance(node.func, ast.Attribute) and not self._is_module(full, frame):
            held = self._held(node.func, frame)
            if held is not None:
                return bounded(method(held[0], node.func.attr)(held[0], *self._arguments(node, frame), **self._keywords(node, frame)))
        return self._called(self._callee(node.func, full, frame), self._arguments(node, frame), self._keywords(node, frame), frame)

    def _is_about_class(self, node: ast.Call, full: str) -> bool:
        """Tell whether a call makes a class, or asks for one."""
        return len(node.args) == 3 if full == "type" else _dotted(node.args[1]) == "type"

    def _is_class(self, node: ast.expr, frame: Frame) -> bool:
        """Tell whether something is a class: what a decorator asks that takes functions, too."""
        value = known(self.value(node, frame))
        if isinstance(value, Thing) and value.kind not in ("class", "function", "closure", "lambda", "partial", "test"):
            raise Unknown(f"whether `{ast.unparse(node)}` is a class is known when it runs")
        return isinstance(value, Thing) and value.kind == "class"

    def _made_class(self, node: ast.Call, frame: Frame) -> Thing:
        """Read `type("TestX", (Base,), {"backend": "gloo"})`."""
        name = self.value(node.args[0], frame)
        if not (isinstance(name, str) and isinstance(node.args[1], (ast.Tuple, ast.List))):
            raise Unknown("a class is made when it runs")
        attributes = tuple(self._class_attributes(node.args[2], frame))
        definition = Class(name, name, frame.line, frame.line, attributes=attributes)
        return Thing("class", name, path=frame.path, definition=definition, body=self.bases(node.args[1].elts, frame))

    def _class_attributes(self, node: ast.expr, frame: Frame) -> Iterator[Constant]:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and isinstance(name := self._content(key, frame), str):
                    yield Constant(name, self.written(value, frame), frame.line)

    def written(self, node: ast.expr, frame: Frame) -> str:
        """Write an expression with the values of the names that loops and calls bind."""
        used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        value = self._content(node, frame) if used & (frame.names or {}).keys() else None
        return repr(value) if isinstance(value, (str, int, float)) else ast.unparse(node)

    def bases(self, nodes: list[ast.expr], frame: Frame) -> tuple[Ancestor, ...]:
        """Give the classes that stand as bases; one that no known file holds by its full name."""
        found = []
        for node in nodes:
            base = self._content(node, frame)
            if isinstance(base, Thing) and isinstance(base.definition, Class):
                found.append(Ancestor(base.definition.qualname, base.path, base.definition))
            else:
                found.append(Ancestor(self.draft.names.full(frame.path, _dotted(node) or ast.unparse(node))))
        return tuple(found)

    def _is_module(self, full: str, frame: Frame) -> bool:
        root = full.partition(".")[0]
        return bool(full) and (full in FUNCTIONS or root in self.draft.names.bindings(frame.path))

    def _held(self, node: ast.Attribute, frame: Frame) -> tuple[Value] | None:
        """Give the plain value whose method is called; None when it is none."""
        try:
            value = self.value(node.value, frame)
        except Unknown:
            return None
        return None if isinstance(value, Thing) else (value,)

    def _callee(self, node: ast.expr, full: str, frame: Frame) -> Value:
        for name in (full, full.rpartition(".")[2] if full.startswith("itertools.") else full):
            if name in FUNCTIONS or name in _MADE or name in ("str", "repr", "map", "filter", "type"):
                return Thing("builtin", name)
        if full in _OBJECTS:
            return Thing("builtin", "object")
        if full.rpartition(".")[2] in _IDENTITIES:
            return Thing("builtin", "identity")
        return self.value(node, frame)

    def _arguments(self, node: ast.Call, frame: Frame) -> list[Value]:
        return self._elements(ast.List(node.args), frame)

    def _keywords(self, node: ast.Call, frame: Frame) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                found |= self.value(keyword.value, frame)
            else:
                found[keyword.arg] = self._content(keyword.value, frame)
        return found

    def _case(self, node: ast.Call, frame: Frame, *, is_subtest: bool) -> Case:
        """Read `subtest((1, 2), name="double")` and `pytest.param(1, 2, id="double", marks=...)`."""
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        named = keywords.get("name" if is_subtest else "id")
        if named is None and is_subtest and len(node.args) > 1:
            named = node.args[1]
        name = None if named is None else self.value(named, frame)
        marked = keywords.get("decorators" if is_subtest else "marks")
        marks = tuple(self._mark_text(part, frame) for part in written_entries(marked)) if marked is not None else ()
        if not is_subtest:
            return Case(tuple(self._arguments(node, frame)), name, marks)
        values = node.args[0] if node.args else keywords["arg_values"]
        return Case(self._content(values, frame), name, marks)

    def _mark_text(self, node: ast.expr, frame: Frame) -> str:
        """Write a mark with the values of the names that loops and calls bind."""
        if not frame.names or not isinstance(node, ast.Call):
            return ast.unparse(node)
        arguments = [self.written(each, frame) for each in node.args]
        named = [f"{each.arg}={self.written(each.value, frame)}" if each.arg else f"**{ast.unparse(each.value)}" for each in node.keywords]
        return f"{ast.unparse(node.func)}({', '.join([*arguments, *named])})"

    def _called(self, called: Value, arguments: list[Value], keywords: dict[str, Value], frame: Frame) -> Value:
        if not isinstance(known(called), Thing):
            raise Unknown("what it calls is known when it runs")
        if called.kind == "builtin":
            return self._builtin(called.name, arguments, keywords, frame)
        if called.kind == "partial":
            inner, first, named = called.body
            return self._called(inner, [*first, *arguments], {**named, **keywords}, frame)
        if called.kind in ("lambda", "closure"):
            node, outer = called.body
            return self._followed(node, outer, arguments, keywords, frame.now)
        if called.kind == "class" and called.definition is None and called.name in outside.CLASSES:
            raise Unknown(f"what `{called.name}` makes is known when it runs")
        if called.kind == "class":
            return self._constructed(called, arguments, keywords)
        if called.kind == "function" and isinstance(called.definition, Function):
            return self._returned(Frame(called.path, called.definition.line), called.definition, arguments, keywords, frame.now)
        return self._put(called, arguments)

    def _put(self, called: Thing, arguments: list[Value]) -> Value:
        """Put a mark on a test."""
        test = arguments[0] if len(arguments) == 1 and called.kind == "mark" else None
        if not (isinstance(test, Thing) and test.kind == "test"):
            raise Unknown(f"what `{called.name}` returns is known when it runs")
        return replace(test, body=(*(test.body or ()), called))

    def _builtin(self, name: str, arguments: list[Value], keywords: dict[str, Value], frame: Frame) -> Value:
        made = _MADE.get(name)
        if made is not None:
            return made(*arguments)
        if name == "object":
            return Thing("object", "object", fields=_fields(keywords))
        if name in ("str", "repr"):
            return self._written(arguments[0], name) if arguments else ""
        if name == "type":
            return self._type_of(*arguments)
        if name in ("map", "filter"):
            return self._mapped(name, arguments, frame)
        listed = [self._members(each) or each if isinstance(each, Thing) else each for each in arguments]
        try:
            return bounded(FUNCTIONS[name](*map(scalar_of, listed), **keywords))
        except FAILS:
            for each in (*arguments, *keywords.values()):
                told(each)  # what the sources do not tell is no mistake of theirs
            raise

    def _mapped(self, name: str, arguments: list[Value], frame: Frame) -> Value:
        called, *lists = arguments
        rows = list(zip(*map(self.listed, lists), strict=False))
        results = [(row, self.call(called, list(row), frame)) for row in rows]
        return [row[0] for row, kept in results if kept] if name == "filter" else [result for _, result in results]

    def _written(self, value: Value, name: str) -> Value:
        if isinstance(value, Thing) and value.kind == "object":
            return Thing("text", f"{value.name}({', '.join(f'{key}={content!r}' for key, content in value.fields)})")
        return repr(value) if name == "repr" and isinstance(value, str) else text_of(value)

    def _type_of(self, value: Value) -> Value:
        if isinstance(value, Thing):
            if value.kind in ("object", "member"):
                return Thing("class", value.name.partition(".")[0], path=value.path, definition=value.definition)
            if value.kind == "class" and value.definition is None:
                return Thing("class", "type")
            raise Unknown("its type is known when it runs")
        return Thing("class", "generator" if isinstance(value, Generated) else type(value).__name__)

    def _constructed(self, thing: Thing, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        bases = self._bases(thing)
        if bases & _TUPLES:
            return tuple(entries(arguments[0])) if arguments else ()
        if bases & (_SCALARS | _ENUMS):
            raise Unknown(f"`{thing.name}` is made when it runs")
        named = [each.name for each in thing.definition.attributes] if isinstance(thing.definition, Class) else []
        fields = _fields({**dict(zip(named, arguments, strict=False)), **keywords})
        return Thing("object", thing.name, path=thing.path, definition=thing.definition, fields=fields)

    def _returned(
        self, frame: Frame, function: Function, arguments: list[Value], keywords: dict[str, Value], caller: tuple[str, int]
    ) -> Value:
        if function.returns is None:
            node = statements.definition(function.text) if function.text else None
            if node is None:
                raise Unknown(f"what `{function.name}` returns is known when it runs")
            return self._followed(node, frame, arguments, keywords, caller)
        return self.of(function.returns, replace(frame, names=_bound(function.parameters, arguments, keywords), caller=caller))

    def _followed(
        self,
        node: _Definition | ast.Lambda,
        frame: Frame,
        arguments: list[Value],
        keywords: dict[str, Value],
        caller: tuple[str, int],
    ) -> Value:
        """Follow a function whose node is known: what a lambda stands for, or the statements of another."""
        bound, inner = self._bound_lambda(node.args, frame, arguments, keywords), replace(frame, caller=caller)
        if isinstance(node, ast.Lambda):
            return self.value(node.body, inner.within(bound))
        return statements.follow(self, replace(inner, names=None), {**(frame.names or {}), **bound}, node.body)

    def _bound_lambda(self, given: ast.arguments, frame: Frame, arguments: list[Value], keywords: dict[str, Value]) -> dict[str, Value]:
        positional = [argument.arg for argument in (*given.posonlyargs, *given.args)]
        names = (*positional, *([f"*{given.vararg.arg}"] if given.vararg else ()), *(each.arg for each in given.kwonlyargs))
        names = (*names, *([f"**{given.kwarg.arg}"] if given.kwarg else ()))
        defaults = dict(zip(reversed(positional), reversed(given.defaults), strict=False))
        defaults |= {each.arg: default for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is not None}
        taken = {*positional[: len(arguments)], *keywords}
        more = {name: self._content(default, frame) for name, default in defaults.items() if name not in taken}
        return _bound(names, arguments, {**keywords, **more})


_ATTRIBUTES: Mapping[tuple[str, str], Callable[[Evaluator, Thing], Value]] = {
    **{(kind, "__name__"): lambda _, thing: thing.name for kind in ("class", "function", "lambda", "test", "closure")},
    ("object", "__class__"): lambda _, thing: Thing("class", thing.name, path=thing.path, definition=thing.definition),
    ("pattern", "sub"): lambda _, thing: Thing("partial", "sub", body=(Thing("builtin", "re.sub"), [thing], {})),
    ("device", "type"): lambda _, thing: str(thing.scalar).partition(":")[0],
    **{("member", name): lambda _, thing: thing.name.rpartition(".")[2] for name in ("name", "_name_")},
    **{("member", name): Evaluator._member_value for name in ("value", "_value_")},
}
"""Attributes that things of a kind have."""
_MADE: Mapping[str, Callable[..., Value]] = {
    "identity": lambda *values: values,
    "torch.Size": lambda values: tuple(entries(values)),
    "torch.device": lambda *parts: Thing("device", "device", ":".join(map(str, parts))),
    "re.compile": lambda pattern, *flags: Thing("pattern", "Pattern", pattern, fields=tuple(("flags", each) for each in flags)),
}
"""What calls make of their arguments."""


class _Nowhere(Unknown):
    """A name that no known file defines."""


_BUILTINS = {
    name: "class" if isinstance(value, type) else "function" for name, value in vars(builtins).items() if callable(value) and name[0] != "_"
}
"""What each name of Python itself is."""


def _is_start(change: Constant | Expression) -> bool:
    """Tell whether what a name held before makes no difference any more."""
    return isinstance(change, Constant) and not change.guard and not _uses(change, change.name)


def _uses(constant: Constant, name: str) -> bool:
    """Tell whether an assignment rests on what the name held before."""
    node = parsed(constant.value)
    return node is not None and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _adds(change: Constant | Expression) -> bool:
    """Tell whether a change may leave a name at the same object: a call, or `X += [1]`."""
    return isinstance(change, Expression) or re.match(rf"{change.name} \S+ \(", change.value) is not None


def _held(node: ast.expr | None) -> frozenset[str]:
    """Give the names of objects that the value of an expression holds, or is."""
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    parts: list[ast.expr] = []
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = node.elts
    elif isinstance(node, ast.Dict):
        parts = node.values
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Call) and _dotted(node.func) not in FUNCTIONS:
        parts = [*node.args, *(each.value for each in node.keywords)]
    return frozenset().union(*map(_held, parts))


def _fields(named: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(named.items(), key=lambda entry: entry[0]))


def _bound(parameters: tuple[str, ...], arguments: list[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
    """Bind arguments to parameters as a call does.

    Raises:
        Unknown: a parameter is left to its default, which the facts do not hold.
    """
    bound: dict[str, Value] = {}
    rest, named, is_positional = list(arguments), dict(keywords), True
    for parameter in parameters:
        if parameter.startswith("**"):
            bound[parameter[2:]] = named
            named = {}
        elif parameter.startswith("*"):
            bound[parameter[1:]], rest, is_positional = tuple(rest), [], False
        elif parameter in named:
            bound[parameter] = named.pop(parameter)
        elif rest and is_positional:
            bound[parameter] = rest.pop(0)
        else:
            raise Unknown(f"the default of `{parameter}` is known when it runs")
    if rest or named:
        raise Unknown("it is called with more than it takes")
    return bound


def bind(target: ast.expr, value: Value) -> dict[str, Value]:
    """Bind the names of a loop's target to one value."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(each, ast.Starred) for each in target.elts):
        parts = entries(value)
        if len(parts) == len(target.elts):
            return {name: part for inner, each in zip(target.elts, parts, strict=True) for name, part in bind(inner, each).items()}
    raise Unknown("its loop is known when it runs")


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


_HANDLERS: Mapping[type[ast.AST], Callable[[Evaluator, Any, Frame], Value]] = {
    ast.Constant: Evaluator._constant,
    ast.List: Evaluator._list,
    ast.Tuple: Evaluator._tuple,
    ast.Set: Evaluator._set,
    ast.Dict: Evaluator._dict,
    ast.BinOp: Evaluator._binary,
    ast.UnaryOp: Evaluator._unary,
    ast.Compare: Evaluator._compare,
    ast.BoolOp: Evaluator._bool,
    ast.IfExp: Evaluator._if,
    ast.Subscript: Evaluator._subscript,
    ast.Slice: Evaluator._slice,
    ast.JoinedStr: Evaluator._joined,
    ast.Lambda: Evaluator._lambda,
    ast.ListComp: Evaluator._comprehension,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.SetComp: Evaluator._set_comprehension,
    ast.DictComp: Evaluator._dict_comprehension,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.Call: Evaluator._call,
}


def worlds(answer: Callable[[Mapping[Choice, bool]], Value]) -> list[tuple[Mapping[Choice, bool], Value]]:
    """Answer a question under each outcome of the choices on which the answer rests.

    Args:
        answer: finds the answer under assumed outcomes.

    Raises:
        Unknown: the sources do not tell it under some outcome, or there are too many.
    """
    found: list[tuple[Mapping[Choice, bool], Value]] = []
    failing: Unknown | None = None
    rest: list[Mapping[Choice, bool]] = [{}]
    while rest:
        assumed = rest.pop()
        try:
            found.append((assumed, answer(assumed)))
        except Fails as error:
            failing = error
        except Undecided as error:
            rest += [{**assumed, error.choice: outcome} for outcome in (True, False)]
        if len(found) + len(rest) > _WORLDS:
            raise Unknown("it depends on too many conditions")
    if failing is not None and not found:
        raise failing
    return found


_WORLDS = 16
"""Combinations of outcomes that are tried."""
