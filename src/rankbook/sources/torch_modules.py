"""Modules of torch that have something to move, and those that have not: `nn.ReLU().cuda()` does nothing, and needs no GPU."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from rankbook.sources.text import dotted

HOLLOW = frozenset({
    "Module", "Identity", "Flatten", "Unflatten", "Fold", "Unfold",
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish",
    "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
    *(f"{kind}Pool{size}d" for kind in ("AdaptiveAvg", "AdaptiveMax", "Avg", "LP", "Max") for size in (1, 2, 3)),
    "FractionalMaxPool2d", "FractionalMaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
    *(f"{kind}Pad{size}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for size in (1, 2, 3)),
    "ChannelShuffle", "PixelShuffle", "PixelUnshuffle", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
    "CrossMapLRN2d", "LocalResponseNorm", "CosineSimilarity", "PairwiseDistance",
    "CTCLoss", "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
    "MarginRankingLoss", "MultiLabelMarginLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
})  # fmt: skip
"""Modules of `torch.nn` that never have a parameter, nor a buffer; all that no table here names have one."""
_WEIGHT = (("weight", 0, False),)
_STATISTICS = (("affine", 3, True), ("track_running_stats", 4, True))
_LAZY_STATISTICS = (("affine", 2, True), ("track_running_stats", 3, True))
BY_ARGUMENT: Mapping[str, tuple[tuple[str, int, bool], ...]] = {
    **dict.fromkeys(("BCELoss", "CrossEntropyLoss", "MultiLabelSoftMarginLoss", "NLLLoss", "NLLLoss2d"), _WEIGHT),
    "BCEWithLogitsLoss": (*_WEIGHT, ("pos_weight", 4, False)),
    "MultiMarginLoss": (("weight", 2, False),),
    "LayerNorm": (("elementwise_affine", 2, True),),
    "RMSNorm": (("elementwise_affine", 2, True),),
    "GroupNorm": (("affine", 3, True),),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"), _STATISTICS),
    **{f"InstanceNorm{size}d": tuple((name, place, False) for name, place, _ in _STATISTICS) for size in (1, 2, 3)},
    **{f"Lazy{kind}Norm{size}d": _LAZY_STATISTICS for kind in ("Batch", "Instance") for size in (1, 2, 3)},
}
"""Modules that have something where one of these arguments is true, each with its place and what it is where it is not given."""
CONTAINERS = frozenset({
    "Container", "DataParallel", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential",
    "TripletMarginWithDistanceLoss",
})  # fmt: skip
"""Modules that have what they are given."""
_COLLECTIONS = frozenset({"OrderedDict", "dict", "list", "tuple"})
_OF_ITSELF = frozenset({
    "apply", "bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "share_memory", "to", "to_empty", "train",
    "type",
})  # fmt: skip
"""Methods of a module that give the module itself."""
_MOVES = frozenset({"cuda", "to"})
_REGISTERS = frozenset({"register_buffer", "register_parameter"})
_PLAIN_BASES = frozenset({"ABC", "Generic", "Protocol", "object"})
"""Last parts of the names of classes from which no parameter comes."""
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEPTH = 8
"""Classes, and modules within modules, that are followed from one to the next."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Names = Mapping[str, bool | None]
"""What is known of names: whether each is a module that has something to move."""


class Modules(NamedTuple):
    """Tells of expressions whether they are modules with something to move.

    Of what it does not see, it says None. Of a class that it sees, it says that there is something only where that is sure.
    """

    resolve: Callable[[str], str]
    """Gives the full name of a dotted one."""
    classes: Mapping[str, ast.ClassDef]
    """Those that an expression may name."""
    depth: int = _DEPTH

    def has_any(self, node: ast.AST | None, names: _Names) -> bool | None:
        """Tell whether an expression is a module with a parameter or a buffer: `Model()`, `nn.Linear(2, 2).eval()`, or a name for one."""
        if isinstance(node, ast.Name):
            return names.get(node.id)
        if not isinstance(node, ast.Call) or not self.depth:
            return None
        name, inner = dotted(node.func), self._replace(depth=self.depth - 1)
        if name in self.classes:
            return inner._of_class(self.classes[name], node, names)
        kind = _of_torch(self.resolve(name)) if name else None
        if kind is not None:
            return inner._of_torch(kind, node, names)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_ITSELF:
            return self.has_any(node.func.value, names)
        return None

    def _of_torch(self, kind: str, node: ast.Call, names: _Names) -> bool | None:
        if kind in CONTAINERS:
            return _any(self._content(each, names) for each in (*node.args, *(keyword.value for keyword in node.keywords)))
        if kind in BY_ARGUMENT:
            return _any(_truth(node, *each) for each in BY_ARGUMENT[kind])
        return kind not in HOLLOW

    def _content(self, node: ast.AST | None, names: _Names) -> bool | None:
        """Tell of what a container is given whether any of it has something to move."""
        match node:
            case None | ast.Constant():
                return False
            case ast.Starred(value=value):
                return self._content(value, names)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                return _any(self._content(part, names) for part in parts)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
                return self._content(part, names)
            case ast.Call(args=parts, keywords=keywords) if dotted(node.func).rpartition(".")[2] in _COLLECTIONS:
                return _any(self._content(part, names) for part in (*parts, *(keyword.value for keyword in keywords)))
        return self.has_any(node, names)

    def _of_class(self, node: ast.ClassDef, call: ast.Call, names: _Names) -> bool | None:
        """Tell whether an object of a class that is seen has something to move; one that moves itself does it in its own way."""
        methods = {each.name: each for each in node.body if isinstance(each, _Function)}
        moving = [methods[name] for name in _MOVES & methods.keys()]
        if moving:
            return None if any(map(_is_move, (each for own in moving for each in ast.walk(own)))) else False
        made = methods.get("__init__")
        known = {} if made is None else {name: self.has_any(value, names) for name, value in _given(call, made)}
        if made is not None and self._sets(made.body, dict.fromkeys(_parameters(made)) | known):
            return True
        return _any(self._of_base(each, node, ast.Call(each, [], []) if made else call, names) for each in node.bases)

    def _of_base(self, base: ast.expr, node: ast.ClassDef, call: ast.Call, names: _Names) -> bool | None:
        """Tell what comes from a base of a class; another `Module` than that of torch brings nothing alone."""
        name = dotted(base.value if isinstance(base, ast.Subscript) else base)
        if name in self.classes:
            return self._replace(depth=self.depth - 1)._of_class(self.classes[name], call, names) if self.depth else None
        kind = _of_torch(self.resolve(name)) if name else None
        if kind is not None and kind not in CONTAINERS and kind not in BY_ARGUMENT:
            return kind not in HOLLOW
        last = name.rpartition(".")[2]
        is_plain = last in _PLAIN_BASES or (last == "Module" and not any(map(_is_set, ast.walk(node))))
        return False if is_plain else None

    def _sets(self, body: Iterable[ast.stmt], names: _Names) -> bool:
        """Tell whether statements are sure to give a module something to move."""
        return any(self._sets_here(node, names) for node in body)

    def _sets_here(self, node: ast.stmt, names: _Names) -> bool:
        if isinstance(node, ast.If):
            return self._sets(node.body, names) and self._sets(node.orelse, names)
        if isinstance(node, (ast.For, ast.While, ast.With, ast.Try)):
            return self._sets(node.body, names)
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) or node.value is None:
            return False
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        is_attribute = any(isinstance(target, ast.Attribute) for target in targets)
        if is_attribute and isinstance(node.value, _DISPLAYS):  # a plain list of modules is none
            return False
        if is_attribute and isinstance(node.value, ast.Name):
            return names.get(node.value.id) is True
        return any(_registers(call, names) or self.has_any(call, names) for call in _calls(node.value))


def _is_move(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _MOVES


def _is_set(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _of_torch(full: str) -> str | None:
    """Give the name that a full one has in `torch.nn`; None for one of something else."""
    module, _, name = full.rpartition(".")
    is_there = module in ("torch.nn", "torch.nn.parameter") or module.startswith("torch.nn.modules")
    return name if is_there and name[:1].isupper() else None


def _any(found: Iterable[bool | None]) -> bool | None:
    """Join what is known of parts: one that has something is enough, and one that is not known leaves it open."""
    known = set(found)
    return True if True in known else None if None in known else False


def _truth(call: ast.Call, name: str, place: int, default: bool) -> bool | None:  # noqa: FBT001 - a row of a table
    """Tell whether an argument is true; a tensor that is made is there."""
    said: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in said or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    value = call.args[place] if place < len(call.args) else said.get(name)
    return (
        default
        if value is None
        else bool(value.value)
        if isinstance(value, ast.Constant)
        else True
        if isinstance(value, ast.Call)
        else None
    )


def _registers(call: ast.Call, names: _Names) -> bool:
    """Tell whether a call registers a tensor that is sure to be there: not None, nor an argument that may be None."""
    is_call = isinstance(call.func, ast.Attribute) and call.func.attr in _REGISTERS
    value = next((each.value for each in call.keywords if each.arg in ("tensor", "param")), call.args[1] if len(call.args) > 1 else None)
    return is_call and not (value is None or isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id in names))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in an expression that are made whatever its values are; those for each entry of a list are."""
    if isinstance(node, ast.Call):
        yield node
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.IfExp):
        parts = [node.test]
    elif isinstance(node, ast.BoolOp):
        parts = node.values[:1]
    elif isinstance(node, ast.Lambda):
        parts = ()
    for part in parts:
        yield from _calls(part)


def _given(call: ast.Call, made: _Function) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a call of a class, by the parameters of its `__init__`."""
    if not any(isinstance(each, ast.Starred) for each in call.args):
        yield from zip(_parameters(made), call.args, strict=False)
    yield from ((each.arg, each.value) for each in call.keywords if each.arg)


def _parameters(made: _Function) -> list[str]:
    return [each.arg for each in (*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs)][1:]
