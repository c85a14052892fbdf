"""What single statements and expressions of a Python file say, whatever stands around them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator

from rankbook.bindings import Bound, may_change
from rankbook.collecting import ABSL
from rankbook.model import Expression
from rankbook.sources.text import Text, dotted, leading_name, string
from rankbook.syntax import applied, written_entries

SKIPS = frozenset({"self.skipTest", "cls.skipTest", "pytest.skip", "pytest.importorskip", "SkipTest", "unittest.SkipTest"})
"""What skips a test, called or raised in a function."""
ASKS = re.compile("skip|requir|need|unless|ensure|only|support|avail|distributed")
"""What the name holds of a function of another file that is asked whether a test is skipped."""
_SAYS = re.compile(r"(?:^|\.)(?:print|warn|warning|info|debug|log)$")
"""What a test calls to say why it does nothing."""
_ENDS_TEST = re.compile(r"(?:(?:pytest|self|cls|unittest|sys)\.)?(?:skip|skipTest|SkipTest|fail|xfail|exit)")
"""What ends a test by a call."""
_ASKS_MACHINE = re.compile(
    r"torch\.(?:cuda|xpu|hpu|accelerator|device|distributed\.is_)|dist\.is_|os\.(?:environ|getenv)|(?:int|len|min|max)$"
)
"""What it calls to ask for what the machine has."""
_QUESTIONS = re.compile(
    r"(?:^|\.)(?:str|bool|float|tuple|list|set|dict|range|sorted|isinstance|issubclass|hasattr|getattr|type|super|device_count|manual_seed|"
    r"find_spec|import_module|system|machine|platform|cpu_count|parse|Version|join|exists|is_file|is_dir|lower|upper|strip|split|"
    r"startswith|endswith|get|items|keys|values|device|get_device_name|get_device_properties|get_device_capability|get_device_type)$"
)
"""What it calls besides before it can be said to have begun: nothing of that fails where the test would not."""
_NAMESPACES = frozenset({"globals", "vars", "locals", "setattr"})
"""What sets names that no assignment tells, called in a loop."""
_LONGEST_PLAIN = 30
_PLAIN = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Pass, ast.Import, ast.ImportFrom})
_CACHES = frozenset({"cache", "lru_cache"})
"""Last parts of the names of decorators that change nothing in what a function returns."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})


def is_skip(node: ast.stmt) -> bool:
    """Tell whether a statement skips the test, so that a `return` behind it is for the reader alone."""
    called = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Expr) else None
    return called is not None and leading_name(called) in SKIPS


def docstring_of(body: list[ast.stmt]) -> str | None:
    """Give the docstring with which statements begin, without its indentation."""
    first = body[0] if body else None
    text = string(first.value) if isinstance(first, ast.Expr) else None
    return None if text is None else inspect.cleandoc(text) if "\n" in text else text.expandtabs().lstrip()


def value_returned(body: list[ast.stmt], text: Text) -> str | None:
    """Give what a function returns that does nothing else."""
    if len(body) > 2:
        return None
    last = body[-1]
    if len(body) == 2 and not (isinstance(body[0], ast.Expr) and string(body[0].value) is not None):
        return None
    return text.of(last.value) if isinstance(last, ast.Return) and last.value is not None else None


def leaves_at_once(body: list[ast.stmt], text: Text) -> Iterator[Expression]:
    """Yield the conditions under which nothing is done: statements end by a `return` before that, or all of them stand under an `if`.

    So may those of the loop that ends them: `for size in (2, 4): if size > torch.cuda.device_count(): continue`.
    """
    for node in body:
        if isinstance(node, ast.If) and not node.orelse and _only_returns(node.body):
            yield Expression(text.of(node.test), asked_name(node.test), node.lineno)
        elif isinstance(node, ast.If) and node is body[-1] and (not node.orelse or _only_returns([*node.orelse, ast.Return()])):
            if _only_ends(node.body):
                return
            yield Expression(f"not ({text.of(node.test)})", asked_name(node.test), node.lineno)
        elif isinstance(node, ast.For) and node is body[-1] and not node.orelse and isinstance(node.target, ast.Name):
            yield from _rounds_passed_over(node, text)
        elif not _only_prepares(node):
            return


def _rounds_passed_over(node: ast.For, text: Text) -> Iterator[Expression]:
    """Yield the condition under which each round of a loop does nothing."""
    first = next((each for each in node.body if not _only_prepares(each)), None)
    if not isinstance(first, ast.If) or first.orelse:
        return
    set_before = {each.id for part in node.body[: node.body.index(first)] for each in ast.walk(part) if isinstance(each, ast.Name)}
    if set_before & {each.id for each in ast.walk(first.test) if isinstance(each, ast.Name)} - {"torch"}:
        return  # what is asked is not what the loop goes through
    *before, last = first.body
    if isinstance(last, ast.Continue) and all(isinstance(each, ast.Expr) and _says(each.value) for each in before):
        passed = text.of(first.test)
    elif first is node.body[-1] and not _only_ends(first.body):
        passed = f"not ({text.of(first.test)})"
    else:
        return
    yield Expression(f"all({passed} for {text.of(node.target)} in {text.of(node.iter)})", asked_name(first.test), first.lineno)


def _only_ends(body: list[ast.stmt]) -> bool:
    """Tell whether statements do no more than to skip or to fail a test: it is what stands under the opposite that is tested."""
    *before, last = body
    call = last.exc if isinstance(last, ast.Raise) else last.value if isinstance(last, ast.Expr) else None
    is_end = isinstance(last, ast.Raise) or (call is not None and _ENDS_TEST.fullmatch(leading_name(call)) is not None)
    return is_end and all(isinstance(node, ast.Expr) and _says(node.value) for node in before)


def _only_returns(body: list[ast.stmt]) -> bool:
    """Tell whether statements return nothing, and do no more than to say so."""
    *before, last = body
    is_bare = isinstance(last, ast.Return) and (last.value is None or (isinstance(last.value, ast.Constant) and last.value.value is None))
    return is_bare and all(isinstance(node, ast.Expr) and _says(node.value) for node in before)


def _says(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Call) and _SAYS.search(dotted(node.func)) is not None)


def _only_prepares(node: ast.stmt) -> bool:
    """Tell whether a statement tests nothing: an import, a docstring, or a name that is set to what the machine has, or to a constant."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call | ast.Await)]
        return all(isinstance(call, ast.Call) and _ASKS_MACHINE.match(dotted(call.func)) for call in calls)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def only_asks(node: ast.stmt) -> bool:
    """Tell whether a statement, with those inside of it, does no more than to ask what there is, and to say so."""
    if isinstance(node, FunctionNode | ast.ClassDef | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Assert) or (isinstance(node, ast.Raise) and (node.exc is None or leading_name(node.exc) not in SKIPS)):
        return False
    inner = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.stmt)]
    calls = [part for each in inner for part in ast.walk(each) if isinstance(part, ast.Call | ast.Await)]
    is_asking = all(isinstance(call, ast.Call) and _is_question(dotted(call.func)) for call in calls)
    return is_asking and all(map(only_asks, (part for part in ast.walk(node) if isinstance(part, ast.stmt) and part is not node)))


def _is_question(name: str) -> bool:
    if name.rpartition(".")[2].startswith(("assert", "test")):
        return False
    return bool(_ASKS_MACHINE.match(name) or _SAYS.search(name) or _QUESTIONS.search(name) or ASKS.search(name))


def only_computes(node: FunctionNode) -> bool:
    """Tell whether a function only computes what it returns: by assignments to names, conditions, and imports that may fail."""
    body = node.body
    is_made = type(body[-1]) in (ast.If, ast.Try) or (len(body) > 1 and type(body[-1]) is ast.Return)
    is_made &= not node.name.startswith("test") and all(map(_is_cache, node.decorator_list))
    return is_made and lines_of(node) <= _LONGEST_PLAIN and all(map(_is_plain_step, body))


def gives_decorator(node: FunctionNode) -> bool:
    """Tell whether a function gives one of its own that puts marks on what it gets: `def wrapper(test): return mark(test)`."""
    *body, last = node.body
    name = last.value.id if type(last) is ast.Return and type(last.value) is ast.Name else ""
    inner = [each for each in body if type(each) is ast.FunctionDef]
    if len(inner) != 1 or inner[0].name != name or len(parameters_of(inner[0].args)) != 1 or lines_of(node) > _LONGEST_PLAIN:
        return False
    return all(map(_is_plain_step, (*(each for each in body if each is not inner[0]), *inner[0].body)))


def _is_plain_step(node: ast.stmt) -> bool:
    return _is_plain_statement(node) or applied(node) is not None


def _is_cache(decorator: ast.expr) -> bool:
    return dotted(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2] in _CACHES


def _is_plain_statement(node: ast.stmt) -> bool:
    if type(node) is ast.If:
        return all(map(_is_plain_statement, node.body)) and all(map(_is_plain_statement, node.orelse))
    if type(node) is ast.Try:
        handled = [inner for handler in node.handlers for inner in handler.body]
        return all(map(_is_plain_statement, (*node.body, *handled, *node.orelse, *node.finalbody)))
    if type(node) is ast.Expr:
        return type(node.value) is ast.Constant
    return type(node) in _PLAIN


def only_value(bound: list[Bound]) -> ast.expr | None:
    """Give what a name is set to, when it is bound in one place alone, and to something that nothing changes where it is."""
    value = bound[0] if len(bound) == 1 else None
    return value if isinstance(value, ast.expr) and not may_change(value) else None


def defaults_of(arguments: ast.arguments, text: Text) -> tuple[tuple[str, str], ...]:
    """Give the parameters that have a default, each with it."""
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(named[::-1], arguments.defaults[::-1], strict=False), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return tuple([(parameter.arg, text.of(value)) for parameter, value in pairs if value is not None])


def gone_through(name: str, function: FunctionNode) -> ast.expr | None:
    """Give what a loop of a function goes through that sets a name."""
    loops = (node for node in ast.walk(function) if isinstance(node, ast.For))
    return next((loop.iter for loop in loops if isinstance(loop.target, ast.Name) and loop.target.id == name), None)


def innermost(call: ast.Call) -> ast.Call:
    """Give the first of calls that are made one of the other: `start(2)` of `start(2)(body)()`."""
    while isinstance(call.func, ast.Call):
        call = call.func
    return call


def given_to(call: ast.Call) -> Iterator[str]:
    """Yield the last parts of the names that a call is given, or one that makes what it calls, and those that `partial` takes."""
    at: ast.expr = call
    while isinstance(at, ast.Call):
        for each in (*at.args, *(keyword.value for keyword in at.keywords)):
            if isinstance(each, ast.Call) and dotted(each.func).endswith("partial") and each.args:
                yield dotted(each.args[0]).rpartition(".")[2]
            elif isinstance(each, (ast.Name, ast.Attribute)):
                yield dotted(each).rpartition(".")[2]
        at = at.func


def lines_of(node: FunctionNode) -> int:
    """Count the lines of a function."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _is_namespace(node: ast.expr) -> bool:
    """Tell whether a node gives the names of a module or a frame: `globals()`, `module.__dict__`, `frame.f_globals`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _NAMESPACES
    return isinstance(node, ast.Attribute) and node.attr in ("__dict__", "f_globals", "f_locals")


def _parametrises(node: ast.expr) -> bool:
    """Tell whether a node is a call of `parametrize`, or applies one."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Call):
        function = function.func
    return isinstance(function, ast.Attribute) and function.attr == "parametrize"


def makes_cases(node: ast.expr) -> bool:
    """Tell whether a node is a call of a decorator that makes several tests of one: pytest's, or one of `absl.testing.parameterized`."""
    return _parametrises(node) or (isinstance(node, ast.Call) and dotted(node.func).endswith(ABSL))


def case_marks(decorators: Iterable[ast.expr]) -> tuple[tuple[str, int], ...]:
    """Give the marks of single cases, each with its line: `pytest.param(1, marks=[...])`, `subtest(1, decorators=[...])`.

    One that stands on several lines is left out: no case says which of them is its own.
    """
    found: dict[str, set[int]] = {}
    calls = (decorator for decorator in decorators if _parametrises(decorator))
    for inner in (inner for call in calls for inner in ast.walk(call)):
        if isinstance(inner, ast.keyword) and inner.arg in ("marks", "decorators"):
            for part in written_entries(inner.value):
                found.setdefault(ast.unparse(part), set()).add(part.lineno)
    return tuple((mark, min(lines)) for mark, lines in found.items() if len(lines) == 1)


def sets_elsewhere(target: ast.expr) -> bool:
    """Tell whether a target is a name in a module or a frame, or an attribute that may be a test: `cls.test_it`."""
    if type(target) is ast.Subscript:
        return _is_namespace(target.value)
    return type(target) is ast.Attribute and type(target.value) is ast.Name and target.attr.startswith("test")


def sets_by_name(last: str, call: ast.Call) -> bool:
    """Tell whether a call is one of `setattr` whose name may be that of a test."""
    if last != "setattr":
        return False
    name = call.args[1] if len(call.args) > 1 else None
    return type(name) is not ast.Constant or (string(name) or "").startswith("test")


def hands_on(call: ast.Call, function: FunctionNode) -> bool:
    """Tell whether a call hands on what a function gives back at its end, as the decorator of a class does that others complete."""
    last = function.body[-1]
    if type(last) is not ast.Return or type(last.value) is not ast.Name:
        return False
    given = last.value.id
    return given in parameters_of(function.args) and any(type(each) is ast.Name and each.id == given for each in call.args)


def of_signature(node: FunctionNode) -> list[ast.AST]:
    """Give the expressions in a signature: defaults and annotations."""
    signature = node.args
    found: list[ast.AST] = [*signature.defaults]
    arguments = signature.args
    if signature.posonlyargs or signature.kwonlyargs or signature.vararg or signature.kwarg:
        others = [argument for argument in (signature.vararg, signature.kwarg) if argument is not None]
        arguments = [*signature.posonlyargs, *arguments, *signature.kwonlyargs, *others]
        found += [default for default in signature.kw_defaults if default is not None]
    for argument in arguments:
        if argument.annotation is not None:
            found.append(argument.annotation)
    if node.returns is not None:
        found.append(node.returns)
    return found


def defines(loop: ast.For | ast.AsyncFor) -> bool:
    """Tell whether a loop defines classes, or sets names that no assignment tells."""
    for node in ast.walk(loop):
        if isinstance(node, ast.ClassDef):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in _NAMESPACES or (name == "type" and len(node.args) + len(node.keywords) > 1):
                return True
    return False


def parameters_of(arguments: ast.arguments) -> tuple[str, ...]:
    """Name the parameters, those that take any number with their stars."""
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    names += [argument.arg for argument in arguments.kwonlyargs]
    if arguments.kwarg:
        names.append(f"**{arguments.kwarg.arg}")
    return tuple(names)


def settled_in(arguments: ast.arguments) -> tuple[str, ...]:
    """Name the parameters that have a default, or that no keyword gives."""
    if not (arguments.defaults or arguments.posonlyargs or arguments.kw_defaults):
        return ()
    named = arguments.args[max(0, len(arguments.args) - len(arguments.defaults)) :] if arguments.defaults else []
    by_keyword = [argument for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is not None]
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *named, *by_keyword))


def assignments(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    """Give each name with what it is set to, where the parts of a tuple stand side by side."""
    sides = (ast.Tuple, ast.List)
    if isinstance(target, sides) and isinstance(value, sides) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from assignments(inner, part)
    else:
        yield from ((name, value) for name in targets_of(target))


def targets_of(target: ast.expr) -> Iterator[ast.Name]:
    """Yield the names that a target sets."""
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        yield from (entry for entry in target.elts if isinstance(entry, ast.Name))


def sets_flag(node: ast.stmt) -> bool:
    """Tell whether a statement sets something to True or False."""
    return type(node) is ast.Assign and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool)


def is_main(test: ast.expr) -> bool:
    """Tell whether a condition holds only where the file is a script."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    return any(dotted(side) == "__name__" for side in sides) and any(string(side) == "__main__" for side in sides)


def asked_name(test: ast.expr | None) -> str:
    """Name what a condition asks, whatever it makes of it; empty for what has no name."""
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    return leading_name(test) if test is not None else ""
