"""Tests as PyTorch's own test library makes them: `@parametrize`, `@dtypes`, one class per device."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence

from msgspec import Struct

from rankbook.analyse.draft import Draft
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.inheritance import lineage_of
from rankbook.analyse.operations import MOST, entries
from rankbook.analyse.things import Case, Thing, Unknown, Value, known, scalar_of, text_of
from rankbook.analyse.values import parsed
from rankbook.analyse.variants import Decorator, Variant, decorators, guarded, shown, variants, within
from rankbook.model import Class, Expression, Function
from rankbook.requirements import Requirement

_PLAIN = "instantiate_parametrized_tests"
_BY_DEVICE = "instantiate_device_type_tests"
_BASE = "_TestParametrizer"
"""Class of all decorators that make several tests of one."""
_LISTED = "parametrize"
_SWAP = "swap"
"""Runs a test with and without swapping of parameters."""
_SILENT = frozenset({"decorateIf"})
"""Adds nothing to the name, but makes the test a generated one."""
_TABLES: Mapping[str, str] = {
    "ops": "operator and data type",
    "opsets": "operator",
    "modules": "module and data type",
    "optims": "optimizer",
    "reparametrize": "case that a function makes",
    "foreach": "operator and data type",
}
"""Decorators that take their cases from a table that exists only when it runs: what there is a test for."""
_DTYPES: Mapping[str, str] = {
    "dtypes": "all",
    "dtypesIfCPU": "cpu",
    "dtypesIfCUDA": "cuda",
    "dtypesIfXPU": "xpu",
    "dtypesIfMPS": "mps",
    "dtypesIfHPU": "hpu",
}
"""Decorators that name data types, with the device for which they do."""


_KNOWN = frozenset({_LISTED, _SWAP, *_SILENT, *_DTYPES})


class Device(Struct, frozen=True):
    """A kind of device for which classes are made."""

    name: str
    needs: tuple[tuple[str, str], ...] = ()
    """Kinds and values of what it takes for the class to be there."""
    switch: str = ""
    """Argument of the call that must be true."""
    position: int = 0
    """Of that argument."""
    only_named: bool = False
    """Whether it is listed only where the call names it: it needs a build of its own."""


DEVICES = (
    Device("cpu"),
    Device("cuda", (("gpus", "1"),)),
    Device("mps", (("device", "mps"),), "allow_mps", 5),
    Device("xpu", (("device", "xpu"),), "allow_xpu", 6),
    Device("hpu", (("device", "hpu"),), only_named=True),
    Device("lazy", (), "include_lazy", 4),
)
"""In the order in which PyTorch makes them."""


class _Part(Struct, frozen=True):
    """What one decorator adds to a test: part of its name, its parameters."""

    suffix: str = ""
    values: tuple[tuple[str, Value], ...] = ()
    marks: tuple[str, ...] = ()


def instantiated(draft: Draft, path: str) -> Mapping[str, Expression]:
    """Give the calls of a module that make the tests of its classes, by class."""

    def table() -> dict[str, Expression]:
        module = draft.modules[path]
        found: dict[str, Expression] = {}
        for call in module.calls:
            full = draft.names.full(path, call.name).rpartition(".")[2]
            if full in (_PLAIN, _BY_DEVICE) and call.arguments:
                found.setdefault(call.arguments[0], call)
        for each in module.classes:
            for written in each.decorators:
                if draft.names.full(path, written.name).rpartition(".")[2] == _PLAIN:
                    found.setdefault(each.qualname, written)
        return found

    return draft.remember(("instantiated", path), table)


def is_by_device(draft: Draft, path: str, call: Expression | None) -> bool:
    """Tell whether a call makes one class per device."""
    return call is not None and draft.names.full(path, call.name).rpartition(".")[2] == _BY_DEVICE


def devices(draft: Draft, path: str, call: Expression) -> tuple[Variant, ...]:
    """Give the devices for which a call makes classes.

    Raises:
        Unknown: only a run can tell.
    """
    node = parsed(call.text)
    if not isinstance(node, ast.Call):
        raise Unknown("it is too long to be read")
    frame = Frame(path, call.line)
    made = variants(draft, frame, lambda evaluator: [Variant(device.name) for device in _devices(evaluator, node, frame)])
    rows = {device.name: device for device in DEVICES}
    around = guarded(draft, path, call.line, call.guard)
    return tuple(Variant(each.name, needs=(*_needs(rows[each.name], path, call), *each.needs, *around)) for each in made)


def _devices(evaluator: Evaluator, node: ast.Call, frame: Frame) -> list[Device]:
    named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(keyword.arg is None for keyword in node.keywords):
        raise Unknown("its arguments are known when it runs")

    def argument(name: str, position: int) -> ast.expr | None:
        return node.args[position] if position < len(node.args) else named.get(name)

    only, but = (_names(evaluator, argument(name, position), frame) for name, position in (("only_for", 3), ("except_for", 2)))
    found = []
    for device in DEVICES:
        switch = argument(device.switch, device.position) if device.switch else None
        if device.switch and (switch is None or not evaluator.truth(switch, frame)):
            continue
        if device.name == "lazy" or not ((only and device.name not in only) or device.name in but or (device.only_named and not only)):
            found.append(device)
    return found


def _names(evaluator: Evaluator, node: ast.expr | None, frame: Frame) -> Sequence[str]:
    """Give names of devices; PyTorch looks for a name within a string, too."""
    value = None if node is None else scalar_of(evaluator.value(node, frame))
    if value is None or isinstance(value, str):
        return value or ()
    return [text for each in entries(value) if isinstance(text := scalar_of(each), str)]


def _needs(device: Device, path: str, call: Expression) -> tuple[Requirement, ...]:
    return tuple(Requirement(kind, value, call.text, path, call.line, "absent") for kind, value in device.needs)


def generated(draft: Draft, frame: Frame, function: Function, device: str = "") -> tuple[Variant, ...] | None:
    """Give the tests that a method is made into; None when it stays as it is.

    Args:
        draft: the tree.
        frame: where the method stands.
        function: the method.
        device: device of the class that is made; empty where none is.

    Raises:
        Unknown: only a run can tell.
    """
    found = [each for each in decorators(draft, frame, function) if _is_parametriser(draft, each) and (device or each.last not in _DTYPES)]
    if not found and not device:
        return None
    if not found:
        return (Variant(f"{function.name}_{device}", (("device", device),)),)
    for each in found:
        with within(each):
            if each.last in _TABLES:
                raise Unknown(f"one test for each {_TABLES[each.last]}")
            if each.last not in _KNOWN:
                raise Unknown("its cases are known when it runs")
    return variants(draft, frame, lambda evaluator: _variants(evaluator, function.name, found, device))


def _is_parametriser(draft: Draft, each: Decorator) -> bool:
    """Tell whether a decorator makes several tests, be it one of the tree's own."""
    if each.name.endswith(f"mark.{each.last}"):
        return False
    if each.last in _KNOWN or each.last in _TABLES:
        return True
    return draft.remember(("parametriser", each.frame.path, each.name), lambda: _derives(draft, each))


def _derives(draft: Draft, each: Decorator) -> bool:
    place = draft.names.find(each.frame.path, each.name) or draft.names.find(each.frame.path, each.written)
    if place is None or not isinstance(place.definition, Class):
        return False
    return any(ancestor.last == _BASE for ancestor in lineage_of(draft, place.path, place.definition))


def _variants(evaluator: Evaluator, name: str, found: list[Decorator], device: str) -> list[Variant]:
    parts = []
    for each in found:
        if each.last not in _DTYPES:
            with within(each):
                parts.append(_parts(evaluator, each))
    typed = _of_dtypes(evaluator, [each for each in found if each.last in _DTYPES], device)
    rows = [[_Part()]] if typed is None else [typed]
    rows += parts[::-1]
    size = 1
    for row in rows:
        size *= len(row)
        if size > MOST:
            raise Unknown(f"more than {MOST:,} tests")
    return [_variant(name, list(row), device) for row in itertools.product(*rows)]


def _variant(name: str, row: list[_Part], device: str) -> Variant:
    suffix = "_".join(part.suffix for part in reversed(row) if part.suffix)
    values = {key: value for part in row for key, value in part.values}
    marks = tuple(mark for part in row for mark in part.marks)
    case = {key: shown(value) for key, value in values.items()}
    if not device:
        return Variant(f"{name}_{suffix}", tuple(case.items()), marks)
    case = {"device": device, **{key: value for key, value in case.items() if key not in ("device", "devices")}}
    typed = _dtype_suffix(values.get("dtypes", values.get("dtype")))
    return Variant(f"{name}{suffix and '_' + suffix}_{device}{typed}", tuple(case.items()), marks)


def _dtype_suffix(value: Value) -> str:
    if isinstance(value, (list, tuple)):
        return "".join(f"_{_dtype(each)}" for each in value)
    return f"_{_dtype(value)}" if value else ""


def _dtype(value: Value) -> str:
    if isinstance(value, Thing) and value.kind == "dtype":
        return value.name
    raise Unknown("a data type is known when it runs")


def _of_dtypes(evaluator: Evaluator, found: list[Decorator], device: str) -> list[_Part] | None:
    by_device: dict[str, list[Value]] = {}
    for each in found:
        with within(each):
            if each.call is None:
                raise Unknown("its data types are known when it runs")
            named = {keyword.arg: keyword.value for keyword in each.call.keywords}
            key = str(evaluator.value(named["device_type"], each.frame)) if "device_type" in named else _DTYPES[each.last]
            by_device[key] = entries(evaluator.value(ast.List(each.call.args), each.frame))
    if "all" not in by_device:
        return None
    chosen = by_device.get(device, by_device["all"])
    return [_Part("", (("dtypes" if isinstance(each, (list, tuple)) else "dtype", each),)) for each in chosen]


def _parts(evaluator: Evaluator, each: Decorator) -> list[_Part]:
    if each.last in _SILENT:
        return [_Part()]
    if each.call is None:
        raise Unknown("its cases are known when it runs")
    if each.last == _SWAP:
        return [_Part(f"swap_{text_of(value)}") for value in entries(evaluator.value(each.call.args[0], each.frame))]
    named = {keyword.arg: keyword.value for keyword in each.call.keywords if keyword.arg}
    given = dict(zip(("arg_str", "arg_values", "name_fn"), each.call.args, strict=False)) | named
    names = _argument_names(evaluator, given["arg_str"], each.frame)
    if names == []:
        return [_Part()]
    namer = evaluator.value(given["name_fn"], each.frame) if "name_fn" in given else None
    values = evaluator.listed(evaluator.kept(given["arg_values"], each.frame))
    return [_part(evaluator, each.frame, (names, namer), number, value) for number, value in enumerate(values)]


def _argument_names(evaluator: Evaluator, node: ast.expr, frame: Frame) -> list[str] | None:
    """Give the names of the parameters; None when only a run can tell, which does not matter to cases that have names of their own."""
    try:
        return [name.strip() for name in str(evaluator.value(node, frame)).split(",") if name]
    except Unknown:
        return None


def _part(evaluator: Evaluator, frame: Frame, how: tuple[list[str] | None, Value], number: int, value: Value) -> _Part:
    names, namer = how
    case = value if isinstance(value, Case) else Case(value, None)
    if case.name and (names is None or (isinstance(case.values, Thing) and case.values.kind == "unknown")):
        return _Part(str(scalar_of(case.name)), (), case.marks)
    if names is None:
        raise Unknown("the names of its parameters are known when it runs")
    values = entries(case.values) if len(names) > 1 else [case.values]
    if len(values) != len(names):
        raise Unknown("its cases do not fit its names")
    if case.name:
        suffix = scalar_of(case.name)
    elif namer is not None:
        suffix = evaluator.call(namer, values, frame)
    else:
        suffix = "_".join(_argument(number, name, each) for name, each in zip(names, values, strict=True))
    if not isinstance(suffix, str):
        raise Unknown("its names are known when it runs")
    return _Part(suffix, tuple(zip(names, values, strict=True)), case.marks)


def _argument(number: int, name: str, value: Value) -> str:
    if isinstance(value, Thing) and value.kind in ("dtype", "device"):
        return value.name if value.kind == "dtype" else text_of(value)
    if isinstance(scalar_of(known(value)), (int, float, str)):
        return f"{name}_{text_of(value).replace('.', '_')}"
    return f"{name}{number}"
