"""Which tests there are: inherited, generated, per device, in loops; what cannot be read is said, never guessed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook import model
from rankbook.analyse import Draft, analyse, survey
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.things import Undecided, Unknown
from rankbook.cli import main
from rankbook.collecting import Rules, rules_of
from rankbook.sources import packages as sources_packages
from rankbook.sources.packages import Packages, package_folders
from rankbook.sources.parse import parse, parse_bytes

SHARED = Path(os.environ.get("RANKBOOK_SHARED", Path(__file__).parents[2] / "shared"))
SEEDS = SHARED / "seeds"
TREE = Path(os.environ.get("RANKBOOK_PYTORCH", "/nowhere"))
TORCH = "from torch.testing._internal.common_utils import TestCase, parametrize, subtest, instantiate_parametrized_tests\nimport torch\n"
DEVICES = TORCH + "from torch.testing._internal.common_device_type import instantiate_device_type_tests, dtypes, dtypesIfCUDA, ops\n"


def of(files: Mapping[str, str], packages: Mapping[str, model.Module] | None = None) -> model.Project:
    return analyse((parse_bytes(path, text.encode()) for path, text in files.items()), packages)


def listed_in(text: str, **files: str) -> dict[str, model.Test]:
    """Give the tests of `test_it.py`, with other files beside it."""
    result = of({f"{name.replace('__', '/')}.py": content for name, content in files.items()} | {"test_it.py": text})
    return {test.id: test for test in result.tests.get("test_it.py", ())}


def names_of(text: str, **files: str) -> list[str]:
    return [name.rpartition("::")[2] for name in listed_in(text, **files)]


def absent(test: model.Test) -> list[tuple[str, str]]:
    """Give what keeps a test from being collected."""
    return [(need.kind, need.value) for need in test.requirements if need.otherwise == "absent"]


def case(decorators: str, parameters: str = "a", before: str = "", instantiated: bool = True) -> list[str]:
    """Give the names of one test of PyTorch's kind."""
    text = f"{TORCH}{before}\nclass TestT(TestCase):\n"
    text += "".join(f"    {line}\n" for line in decorators.splitlines())
    text += f"    def test_x(self, {parameters}): ...\n" + ("instantiate_parametrized_tests(TestT)\n" if instantiated else "")
    return names_of(text)


# PyTorch's own generators: the expected names are those that torch 2.13 makes of the same source.


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ("[d for d in (torch.float32, torch.float16) if d != torch.float16]", ["test_x_float32"]),
        ("[d for d in (torch.device('cpu'), torch.device('cuda')) if d != torch.device('cpu')]", ["test_x_cuda"]),
        ("[e for e in (E.A, E.B) if e != E.B]", ["test_x_v0"]),
        ("[c for c in (E, F) if c is not E]", ["test_x_v0"]),
    ],
)
def test_values_that_are_left_out_of_parameters(values, names) -> None:
    """A value that equals another is not unlike it, nor another than itself."""
    before = "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\nclass F: pass\n"
    assert case(f"@parametrize('v', {values})", before=before) == names


def test_names_of_parametrized_tests() -> None:
    """Each kind of value stands in the name as PyTorch writes it."""
    before = "import enum\nclass E(enum.Enum):\n    A = 1\nclass S(str, enum.Enum):\n    A = 'x.y'\nclass I(enum.IntEnum):\n    A = 7\n"
    before += "class Plain: ...\n"
    values = "[E.A, S.A, I.A, torch.float16, torch.double, torch.device('cuda:1'), True, -1, 2.5, [1], 'a b', None, Plain, Plain(2), len]"
    assert case(f"@parametrize('v', {values})", before=before) == [
        "test_x_v0", "test_x_v_S_A", "test_x_v_7", "test_x_float16", "test_x_float64", "test_x_cuda:1", "test_x_v_True", "test_x_v_-1",
        "test_x_v_2_5", "test_x_v9", "test_x_v_a b", "test_x_v11", "test_x_v12", "test_x_v13", "test_x_v14",
    ]  # fmt: skip


def test_several_decorators_and_arguments() -> None:
    """Names read from the upper decorator to the lower one; a subtest has a name of its own."""
    found = case("@parametrize('a,b', [(1, 'x'), subtest((2.5, None), name='n')])\n@parametrize('v', [True, False])", "a, b, v")
    assert sorted(found) == ["test_x_a_1_b_x_v_False", "test_x_a_1_b_x_v_True", "test_x_n_v_False", "test_x_n_v_True"]


def test_parameters_of_a_case() -> None:
    """A generated test knows its parameters, its function and its line."""
    test = listed_in(
        f"{TORCH}@instantiate_parametrized_tests\nclass TestT(TestCase):\n    @parametrize('a', ['q'])\n    def test_x(self, a): ...\n"
    )
    found = test["TestT::test_x_a_q"]
    assert (found.function, found.name, found.line, found.case) == ("test_x", "test_x_a_q", 6, (("a", "'q'"),))
    assert found.parameters == ("parametrize('a', ['q'])",)


PARTIAL = "from functools import partial\ndef name(mapping, *args):\n    return '_'.join([mapping[str(a)] for a in args])\n"


@pytest.mark.parametrize(
    ("how", "before"),
    [
        ("name_fn=lambda a: f'n{a}'", ""),
        ("name_fn=lambda a: 'n{}'.format(a)", ""),
        ("name_fn=lambda a, p='n': p + str(a)", ""),
        ("name_fn=namer", "def namer(a):\n    return 'n%d' % a\n"),
        ("name_fn=namer", f"{PARTIAL}namer = partial(name, {{'1': 'n1', '2': 'n2'}})\n"),
        ("name_fn=name", f"{PARTIAL}name = partial(name, {{'1': 'n1', '2': 'n2'}})\n"),
        ("namer", "names = {1: 'n1'}\nnames.update({2: 'n2'})\ndef namer(a):\n    return names[a]\n"),
    ],
)
def test_names_by_functions(how: str, before: str) -> None:
    """A function that is one `return` names the cases."""
    assert case(f"@parametrize('a', [1, 2], {how})", before=before) == ["test_x_n1", "test_x_n2"]


@pytest.mark.parametrize(
    ("before", "decorator"),
    [
        ("each = parametrize('a', [1, 2])\n", "@each"),
        ("def each():\n    return parametrize('a', [1, 2])\n", "@each()"),
        ("def each(name):\n    return parametrize(name, [1, 2])\n", "@each('a')"),
        ("from functools import partial\nA = list(range(1, 3))\n", "@parametrize('a', A)"),
        ("A = [1]\nB = [*A, 2]\n", "@parametrize('a', B)"),
        ("A = (1,) + (2,)\n", "@parametrize('a', [n for n in A if n])"),
        ("A = {'x': 1, 'y': 2}\n", "@parametrize('a', A.values())"),
        ("class C:\n    A = (1, 2)\n", "@parametrize('a', C.A)"),
        ("import itertools\n", "@parametrize('a', itertools.chain([1], [2]))"),
        ("A = sorted({2, 1})\n", "@parametrize('a', A)"),
        ("A = [2, 1]\n", "@parametrize('a', A[::-1])"),
        (
            "def each(name='q'):\n    return parametrize(name, [subtest(1, name='a_1'), subtest(2, 'a_2'), subtest(load(), 'a_3')][:2])\n",
            "@each()",
        ),
        ("def both():\n    return [1, 2]\n", "@parametrize('a', both())"),
    ],
)
def test_where_the_values_come_from(before: str, decorator: str) -> None:
    """Constants, comprehensions, functions that are one `return`, and other names of a decorator are followed."""
    assert case(decorator, before=before) == ["test_x_a_1", "test_x_a_2"]


def test_what_formats_write_as_repr() -> None:
    """A value is written as Python would write it, without quotes around what is no string."""
    before = "VALUES = [None, (1, 'a'), {}, 2, 'x']\n"
    found = case("@parametrize('a', [subtest(v, name=f'{v!r}, {v}') for v in VALUES])", before=before)
    assert found == ["test_x_None, None", "test_x_(1, 'a'), (1, 'a')", "test_x_{}, {}", "test_x_2, 2", "test_x_'x', x"]
    found = case("@parametrize('a', [subtest(v, name='%r %s' % (v, v)) for v in (None, 'x')])")
    assert found == ["test_x_None None", "test_x_'x' x"]


def test_values_of_other_files() -> None:
    """Constants, enumerations and base classes are followed across files."""
    shared = f"{TORCH}import enum\nclass Kind(enum.StrEnum):\n    ONE = 'one'\nKINDS = [Kind.ONE]\nclass Base(TestCase):\n"
    shared += "    @parametrize('k', KINDS)\n    def test_k(self, k): ...\ninstantiate_parametrized_tests(Base)\n"
    assert names_of("import shared as s\nclass TestT(s.Base): ...\n", shared=shared) == ["test_k_k_one"]


def test_without_instantiation_the_function_stays() -> None:
    """PyTorch makes tests of a decorated function only when it is told to."""
    assert case("@parametrize('a', [1, 2])", instantiated=False) == ["test_x"]


def test_a_class_attribute_as_the_values() -> None:
    """What stands in the body of the class is seen by its decorators."""
    text = f"{TORCH}@instantiate_parametrized_tests\nclass TestT(TestCase):\n    A = [1]\n"
    text += "    @parametrize('a', A)\n    def test_x(self, a): ...\n"
    assert names_of(text) == ["test_x_a_1"]


def device_tests(call: str, body: str = "    def test_x(self, device): ...\n", before: str = "") -> dict[str, model.Test]:
    return listed_in(f"{DEVICES}{before}class TestT(TestCase):\n{body}instantiate_device_type_tests(TestT, globals(){call})\n")


def test_one_class_per_device() -> None:
    """The class itself is gone; the one for CUDA is there only where there is a GPU."""
    body = "    def test_x(self, device): ...\n    @dtypes(torch.float, torch.long)\n    @dtypesIfCUDA(torch.half)\n"
    body += "    def test_t(self, device, dtype): ...\n    def helper(self): ...\n    @parametrize('a', [1])\n"
    body += "    @dtypes((torch.int8, torch.bool))\n    def test_p(self, device, dtypes, a): ...\n"
    found = device_tests("", body)
    assert {name: absent(test) for name, test in found.items()} == {
        "TestTCPU::test_x_cpu": [],
        "TestTCPU::test_t_cpu_float32": [],
        "TestTCPU::test_t_cpu_int64": [],
        "TestTCPU::test_p_a_1_cpu_int8_bool": [],
        "TestTCUDA::test_x_cuda": [("gpus", "1")],
        "TestTCUDA::test_t_cuda_float16": [("gpus", "1")],
        "TestTCUDA::test_p_a_1_cuda_int8_bool": [("gpus", "1")],
    }
    assert found["TestTCUDA::test_t_cuda_float16"].case == (("device", "cuda"), ("dtype", "torch.float16"))
    assert found["TestTCUDA::test_x_cuda"].class_name == "TestTCUDA"


@pytest.mark.parametrize(
    ("call", "classes"),
    [
        (", only_for='cpu'", ["CPU"]),
        (", only_for=('cuda', 'hpu')", ["CUDA", "HPU"]),
        (", except_for=['cuda']", ["CPU"]),
        (", None, 'cuda'", ["CUDA"]),
        (", allow_xpu=True", ["CPU", "CUDA", "XPU"]),
        (", allow_mps=True, only_for=['mps', 'xpu']", ["MPS"]),
        (", include_lazy=True, only_for='cpu'", ["CPU", "LAZY"]),
        (", only_for=None", ["CPU", "CUDA"]),
    ],
)
def test_which_devices(call: str, classes: list[str]) -> None:
    """The arguments of the call choose the devices."""
    assert [test.class_name for test in device_tests(call).values()] == [f"TestT{name}" for name in classes]


def test_what_the_machine_decides() -> None:
    """A device, or a case, that only some machines have says so with the condition that decides."""
    found = device_tests(", only_for=DEVICE", before="DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'\n")
    assert {name: absent(test) for name, test in found.items()} == {
        "TestTCPU::test_x_cpu": [("gpus", "<= 0")],
        "TestTCUDA::test_x_cuda": [("gpus", "1")],
    }
    text = f"{TORCH}import sys\nKINDS = ['a'] + (['b'] if FLAG else [])\n@instantiate_parametrized_tests\nclass TestT(TestCase):\n"
    text += "    @parametrize('k', KINDS)\n    def test_k(self, k): ...\n"
    assert {name: absent(test) for name, test in listed_in(text).items()} == {
        "TestT::test_k_k_a": [],
        "TestT::test_k_k_b": [("condition", "FLAG")],
    }


def test_a_constant_of_several_assignments() -> None:
    """Where a module sets a name in several branches, each value counts, under the condition that leads to it."""
    before = "DEVICE = 'xla'\nDEVICE = 'cuda'\nif HPU:\n    DEVICE = 'hpu'\n"
    found = device_tests(", only_for=DEVICE", before=before)
    assert {test.class_name: absent(test)[-1] for test in found.values()} == {
        "TestTCUDA": ("condition", "not HPU"),
        "TestTHPU": ("condition", "HPU"),
    }


def test_what_is_added_to_a_list() -> None:
    """What a module adds to a list counts, under its condition where it has one."""
    before = (
        "KINDS = ['a']\nKINDS += ['b']\nKINDS = KINDS + ['c']\nKINDS.extend(['d'])\nif X:\n    KINDS.append('e')\nelse:\n    KINDS += 'f'\n"
    )
    text = f"{TORCH}{before}@instantiate_parametrized_tests\nclass TestT(TestCase):\n"
    text += "    @parametrize('k', KINDS)\n    def test_x(self, k): ...\n"
    needs = {test.name.rpartition("_")[2]: absent(test) for test in listed_in(text).values()}
    assert needs == {"a": [], "b": [], "c": [], "d": [], "e": [("condition", "X")], "f": [("condition", "not X")]}


def test_tests_of_bases_are_not_made_for_devices() -> None:
    """PyTorch makes tests per device of what the class itself defines; a subclass of it inherits none of them."""
    text = f"{DEVICES}class Base(TestCase):\n    def test_b(self): ...\nclass TestT(Base):\n    def test_x(self, device): ...\n"
    text += "instantiate_device_type_tests(TestT, globals(), only_for='cpu')\nclass TestLater(TestT): ...\n"
    assert list(listed_in(text)) == ["Base::test_b", "TestTCPU::test_x_cpu", "TestTCPU::test_b", "TestLater::test_b"]


@pytest.mark.parametrize(
    ("decorator", "says"),
    [
        ("@ops(op_db)", "one test for each operator and data type of `ops(op_db)`"),
        ("@parametrize('a', load())", "one test for each case of `parametrize('a', load())`: `load` is defined in no known file"),
        (
            "@parametrize('a', range(10 ** 9))",
            "one test for each case of `parametrize('a', range(10 ** 9))`: it holds more than 2,000 values",
        ),
        ("@parametrize('a', [x.y])", "one test for each case of `parametrize('a', [x.y])`: `x` is defined in no known file"),
        ("@parametrize(*both)", "one test for each case of `parametrize(*both)`: it is known when it runs"),
    ],
)
def test_what_cannot_be_read(decorator: str, says: str) -> None:
    """One entry stands for tests whose names only a run can tell, and says why."""
    (test,) = device_tests(", only_for='cpu'", f"    {decorator}\n    def test_x(self, device, a): ...\n").values()
    assert (test.id, test.family) == ("TestTCPU::test_x", says)


HELPERS = """
import pytest
def device(*kinds, half=False):
    if half and not kinds:
        raise ValueError("none")
    known = {"cpu": pytest.param("cpu", id="cpu"), "gpu": pytest.param("gpu", id="gpu", marks=pytest.mark.gpu)}
    chosen = [known[kind] for kind in kinds]
    def put(test):
        if not chosen:
            return test
        return pytest.mark.parametrize("device", chosen)(test)
    return put
def ranks(*sizes, name="size"):
    found = []
    for each in sizes:
        if each == 1:
            found.append(pytest.param(1))
        else:
            found.append(pytest.param(each, marks=pytest.mark.world_size(each)))
    return pytest.mark.parametrize(name, found)
"""


def test_parameters_of_helpers_with_statements() -> None:
    """A decorator of the suite that parametrises by more than one statement is followed, with the marks of its cases."""
    text = "from helpers import device, ranks\n@device('cpu', 'gpu')\n@ranks(1, 2)\ndef test_a(device, size): ...\n"
    text += "@device()\ndef test_b(): ...\n@device(*read())\ndef test_c(device): ...\n"
    text += "@ranks(4, name='n')\nclass TestD:\n    def test_d(self, n): ...\n"
    found = listed_in(text, helpers=HELPERS)
    assert {name: [need.text for need in test.requirements] for name, test in found.items()} == {
        "test_a[1-cpu]": [],
        "test_a[1-gpu]": ["1 GPU"],
        "test_a[2-cpu]": ["world size 2"],
        "test_a[2-gpu]": ["2 GPUs", "world size 2"],
        "test_b": [],
        "test_c": [],
        "TestD::test_d[4]": ["world size 4"],
    }
    assert found["test_c"].family == "one test for each case of `device(*read())`: its cases are known when it runs"


CHOSEN_FROM = """\
import enum, functools, pytest, torch
from elsewhere import read
class Kind(enum.StrEnum):
    ONE = "one"
    TWO = "two"
class Runner:
    def run(self): ...
class Other:
    def run(self): ...
ALL = [pytest.param(1, id="a"), pytest.param(2, id="b", marks=pytest.mark.slow), pytest.param(3, id="c"), pytest.param(read(), id="d")]
NAMED = {Kind.ONE: "x", "two": "y"}
def pick(*, exclude=()):
    excluded = set(exclude)
    return [p for p in ALL if p.id not in excluded]
"""


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("[p for p in ALL if p.id != 'b']", ["a", "c", "d"]),
        ("pick(exclude=('b', 'd'))", ["a", "c"]),
        ("[p for p in ALL[:3] if p.values[0] != 2]", ["a", "c"]),
        ("[p for p in ALL if p.values[0] != 2]", None),
        ("[p for p in ALL if not p.marks]", None),
        ("[p for p in ALL[2:] if not p.marks]", ["c", "d"]),
        ("[p.values[0] for p in ALL[:2]]", ["1", "2"]),
        ("[n for n in [1, 2] if n.denominator != 2]", None),
        ("[k for k in Kind if k != 'one']", ["two"]),
        ("[k.value for k in Kind if k in ['one']]", ["one"]),
        ("[k.value for k in ['two', Kind.ONE] for k in [Kind(k)]]", None),
        ("[NAMED['one'], NAMED[Kind.TWO]]", ["x", "y"]),
        ("[n for n in 'ab' if n not in [read()]]", None),
        ("[n for n in 'ab' if n not in ['a', read()]]", None),
        ("[n for n in 'ab' if (n, read()) != ('a', 1)]", None),
        ("[n for n in 'ab' if (n, read()) != ('c', 1)]", ["a", "b"]),
        ("[n for n in 'ab' if (n, Runner.run) == (n, Other.run)]", None),
        ("[n for n in 'ab' if (n, functools.partial(read, 1)) == (n, functools.partial(read, 2))]", None),
        ("[n for n in 'ab' if (n, pytest.mark.slow(1)) == (n, pytest.mark.slow(2))]", None),
        ("[len({torch.ones(1), torch.ones(2)})]", None),
        ("[n for n in [torch.half, torch.int] if n != torch.float16]", ["n0"]),
    ],
)
def test_values_that_a_comparison_chooses(chosen: str, names: list[str] | None) -> None:
    """What is compared is known to be equal, or known not to be; where it is neither, which cases there are is known when it runs."""
    text = f"{CHOSEN_FROM}@pytest.mark.parametrize('n', {chosen})\ndef test_n(n): ...\n"
    assert names_of(text) == (["test_n"] if names is None else [f"test_n[{name}]" for name in names])


def test_a_text_that_is_not_known_names_no_case() -> None:
    """A value that is a text gives a case its name: where only a run can tell it, the cases have none on the page."""
    text = "import pathlib, pytest\n@pytest.mark.parametrize('p', ['a', str(pathlib.Path('b/c'))])\ndef test_p(p): ...\n"
    (test,) = listed_in(text).values()
    assert test.id == "test_p"
    assert test.family.endswith("the text of `object()` is known when it runs")


# Decorators that put tests under names of their own.

NAMING = """
import functools, inspect, pytest
def spawned(sizes=None):
    if sizes is None:
        sizes = all_sizes()
    def prepare(func):
        name = func.__name__
        if name.startswith("test"):
            raise ValueError(name)
        @functools.wraps(func)
        def replacement(*args, **kwargs):
            with started(sizes) as ranks:
                ranks.run(func)
        frame = inspect.currentframe()
        assert frame is not None
        module = inspect.getmodule(frame.f_back)
        setattr(module, f"test_{name}", replacement)
        return func
    return prepare
def alone(func):
    def inner():
        func(None)
    globals()["test_" + func.__name__] = inner
def by_name(names):
    def named(func):
        for name in names:
            globals()[f"test_{func.__name__}_{name}"] = func
        return func
    return named
def secret(func):
    globals()[hidden(func)] = func
    return func
def kept(func):
    func.__dict__["test_label"] = 1
    setattr(func, "test_" + func.__name__, 1)
    return func
"""


def test_decorators_that_put_tests_under_other_names() -> None:
    """They are followed: a test has the decorators below, and those of its function where that is wrapped or put there itself."""
    text = f"{NAMING}@pytest.mark.gpu(8)\n@spawned([2])\n@pytest.mark.parametrize('n', [1, 2])\n@pytest.mark.gpu(2)\ndef ring(n): ...\n"
    text += "@spawned()\ndef all_ranks():\n    'Run on all.'\n"
    text += "@alone\n@pytest.mark.gpu(2)\n@pytest.mark.parametrize('n', [1])\ndef single(n): ...\n"
    text += "@by_name(['a', 'b'])\ndef copy(): ...\n@kept\ndef helper(): ...\n@kept\ndef test_own(): ...\n"
    found = listed_in(text)
    assert {name: [need.text for need in test.requirements] for name, test in found.items()} == {
        "test_ring[1]": ["2 GPUs"],
        "test_ring[2]": ["2 GPUs"],
        "test_all_ranks": [],
        "test_single": [],
        "test_copy_a": [],
        "test_copy_b": [],
        "test_own": [],
    }
    assert [test.function for test in found.values()][:4] == ["ring", "ring", "all_ranks", "single"]
    assert found["test_all_ranks"].docstring == "Run on all."
    assert not any(test.family for test in found.values())


def test_decorators_that_put_tests_under_names_that_are_not_known() -> None:
    """An entry stands for the tests that are made of a function, and says why they have no names on the page."""
    text = "import tools\n@tools.secret\ndef ring(): ...\n@tools.by_name(read())\ndef copy(): ...\n"
    assert names_of(text, tools=NAMING) == []  # `globals()` are those of the other file
    found = listed_in(NAMING + text.replace("tools.", ""))
    assert {name: test.family for name, test in found.items()} == {
        "ring": "the tests that `secret` makes of it: `hidden` is defined in no known file",
        "copy": "the tests that `by_name(read())` makes of it: `read` is defined in no known file",
    }
    assert names_of("import tools\n@tools.spawned()\ndef ring(): ...\n", tools=NAMING) == ["test_ring"]


MAKING = """
import sys, unittest
def make(n):
    def inner(): ...
    return inner
def add(cls, names):
    for name in names:
        setattr(cls, "test_" + name, make(name))
def generate():
    for n in range(2):
        def ring(): ...
        globals()["test_ring%d" % n] = ring
def with_two(cls):
    for n in (1, 2):
        setattr(cls, f"test_c{n}", make(n))
    return cls
def wrapped(cls):
    for name in dir(cls):
        if name.startswith("test"):
            setattr(cls, name, make(getattr(cls, name)))
    return cls
def doubled(cls):
    for name in dir(cls):
        setattr(cls, f"{name}_again", make(getattr(cls, name)))
    return cls
class TestA(unittest.TestCase):
    def test_own(self): ...
class TestB:
    def test_own(self): ...
"""


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("for n in (1, 2):\n    globals()[f'test_g{n}'] = make(n)\n", ["test_g1", "test_g2"]),
        ("for n in 'ab':\n    setattr(sys.modules[__name__], 'test_' + n, lambda: None)\n", ["test_a", "test_b"]),
        ("for n in (1, 2):\n    setattr(TestA, f'test_a{n}', lambda self: None)\n", ["TestA::test_a1", "TestA::test_a2"]),
        ("for n in (1, 2):\n    setattr(TestA, f'help{n}', make(n))\n    setattr(TestA, 'test_data', 5)\n", []),
        ("add(TestB, ['x'])\nadd(TestA, names=['y'])\n", ["TestA::test_y", "TestB::test_x"]),
        ("generate()\n", ["test_ring0", "test_ring1"]),
        ("@with_two\nclass TestC: ...\n", ["TestC::test_c1", "TestC::test_c2"]),
        ("@wrapped\nclass TestC:\n    def test_c(self): ...\n", ["TestC::test_c"]),
        ("class TestC(TestA): ...\nadd(TestA, ['x'])\n", ["TestA::test_x", "TestC::test_own", "TestC::test_x"]),
        ("for n in read():\n    globals()[f'test_h_{n}'] = make(n)\n", ["test_h *"]),
        ("for n in read():\n    name = f'test_h{n}'\n    setattr(TestB, name, make(n))\n", ["TestB::test_h *"]),
        ("for n in read():\n    globals()['Test%s' % n] = type(f'Test{n}', (TestB,), {})\n", ["Test *"]),
        ("for n in read():\n    setattr(options, f'test_{n}', n)\n    setattr(options, 'test_mode', n)\n", []),
        ("add(TestB, read())\n", ["TestB::test *"]),
        ("doubled(TestB)\n", ["TestB::test *"]),
        ("@doubled\nclass TestC:\n    def test_c(self): ...\n", ["TestC::test *", "TestC::test_c"]),
    ],
)
def test_functions_made_by_loops_and_calls(text: str, ids: list[str]) -> None:
    """What loops, calls and decorators of classes put into a module or a class is there; what only a run can name is one entry."""
    found = listed_in(MAKING + text)
    own = {"TestA::test_own", "TestB::test_own"}
    assert sorted(name + " *" * bool(test.family) for name, test in found.items() if name not in own) == ids


COMPLETING = """
import pytest
def plain(cls):
    def test_smoke(self): ...
    cls.test_smoke = test_smoke
    cls.test_data = 5
    return cls
def plainly(cls):
    def test_smoke(self): ...
    setattr(cls, "test_smoke", test_smoke)
    return cls
def made(more=None):
    if more is None:
        more = 1
    def decorator(cls):
        def test_smoke(self): ...
        cls.test_smoke = test_smoke
        return cls
    return decorator
def made_so(smokes=None):
    def decorator(cls):
        if not hasattr(cls, "run"):
            def run(self): ...
            cls.run = run
        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.gpu(2)
        def test_two(self, n):
            'Run on two.'
        setattr(cls, "test_two", test_two)
        add_smoke(cls, smokes)
        return cls
    return decorator
def add_smoke(cls, smokes):
    if smokes is None:
        return
    if "test_smoke" in cls.__dict__:
        print("it is there already")
    def test_smoke(self): ...
    cls.test_smoke = test_smoke
def handed(cls):
    add_smoke(cls, 1)
    return cls
def open_cases(sizes):
    def decorator(cls):
        @pytest.mark.parametrize("n", sizes)
        def test_size(self, n): ...
        cls.test_size = test_size
        return cls
    return decorator
def maybe(cls):
    if hasattr(cls, "run"):
        cls.test_smoke = lambda self: None
    return cls
"""
COMPLETED = """
@plain
class TestA:
    def test_own(self): ...
@plainly
class TestB: ...
@made()
class TestC: ...
@made_so()
class TestD: ...
@made_so(smokes=lambda: 1)
class TestE: ...
@handed
class TestF: ...
class TestG: ...
plain(TestG)
class TestH(TestA): ...
"""


@pytest.mark.parametrize("is_imported", [False, True])
def test_tests_that_decorators_of_classes_set_as_attributes(is_imported: bool, pytester: pytest.Pytester) -> None:
    """They are there with the marks of their functions, in whatever file the decorator stands."""
    text = f"from other import *\n{COMPLETED}" if is_imported else COMPLETING + COMPLETED
    files = {"other": COMPLETING} if is_imported else {}
    collected = collected_of(pytester, text, **files)
    found = listed_in(text, **files)
    assert len(collected) == 13
    assert sorted(found) == collected
    two = found["TestD::test_two[2]"]
    assert (two.docstring, two.path, [need.text for need in two.requirements]) == (
        "Run on two.",
        "other.py" if is_imported else "test_it.py",
        ["2 GPUs"],
    )


def test_attributes_of_classes_that_only_a_run_can_tell() -> None:
    """Where a condition, or the cases, are known when it runs, an entry stands for the tests."""
    text = "from other import *\nsizes = [2]\n@open_cases([1])\nclass TestA: ...\n@maybe\nclass TestB: ...\n"
    assert {name: test.family for name, test in listed_in(text, other=COMPLETING).items()} == {
        "TestA::test_size": "one test for each case of `pytest.mark.parametrize('n', sizes)`: `sizes` is known when it runs",
        "TestB::test_smoke": "the tests that `maybe` makes: what `hasattr` returns is known when it runs",
    }


@pytest.mark.parametrize("depth", [300, 900, 1500])
def test_what_makes_functions_may_be_deep(depth: int) -> None:
    """Expressions without end, functions that call themselves and long loops are left to a run."""
    text = f"for n in read():\n    globals()[{'+'.join('x' * depth)}] = 1\n    setattr(a{'.b' * depth}, 'test_' + n, 1)\n"
    text += "def again(func):\n    globals()['test_x'] = func\n    return again(func)\n@again\ndef ring(): ...\n"
    text += "def long(func):\n    for a in range(2000):\n        for b in range(2000):\n            pass\n    globals()['test_y'] = func\n"
    text += f"@long\ndef star(): ...\ndef deep(func):\n    globals()[{'+'.join('x' * depth)}] = func\n@deep\ndef tree(): ...\n"
    found = listed_in(text)
    assert list(found) == ["ring", "star", "tree"]
    assert all(test.family for test in found.values())


def test_functions_made_by_loops_say_where_and_why() -> None:
    """A test has the line of its function, or of what makes it; an entry says what it stands for."""
    found = listed_in(MAKING + "generate()\nfor n in read():\n    globals()[f'test_h{n}'] = make(n)\n")
    last = MAKING.count("\n") + 2
    assert (found["test_ring0"].line, found["test_ring0"].function) == (MAKING[: MAKING.index("def ring")].count("\n") + 1, "ring")
    assert found["test_h"].line == last
    assert found["test_h"].family == "the tests that `for n in read()` makes: `read` is defined in no known file"


# Functions under other names: what pytest collects of the same sources.


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("def _run(n): ...\ntest_x = _run\n", ["test_x"]),
        ("import functools\ndef _run(n): ...\ntest_x = functools.partial(_run, 3)\n", ["test_x"]),
        ("import functools\nclass TestA:\n    def _run(self, n): ...\n    test_x = functools.partialmethod(_run, 3)\n", []),
        ("def test_x(): ...\ntest_y = test_x\n", ["test_x", "test_y"]),
        ("def test_x(): ...\ntest_x = None\n", []),
        ("def _run(): ...\ntest_x = property(_run)\ntest_y = None\ntest_z = [1, 2]\ntest_w = load()\n", []),
        ("def _run(): ...\ntest_x = _run\ndel test_x\n", []),
        ("import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef _run(n): ...\ntest_x = _run\n", ["test_x[1]", "test_x[2]"]),
        ("import pytest\ndef _run(n): ...\ntest_x = pytest.mark.parametrize('n', [1])(_run)\n", ["test_x[1]"]),
        ("class TestA:\n    def _run(self): ...\n    test_x = _run\n    test_y = test_x\n", ["TestA::test_x", "TestA::test_y"]),
        ("class TestA:\n    def test_x(self): ...\nclass TestB(TestA):\n    test_x = None\n", ["TestA::test_x"]),
        (
            "class Base:\n    def _run(self): ...\nclass TestA:\n    test_x = Base._run\nclass TestB(TestA): ...\n",
            ["TestA::test_x", "TestB::test_x"],
        ),
    ],
)
def test_functions_under_other_names(text: str, ids: list[str]) -> None:
    """What an assignment binds to the name of a test is one if it is a function; its facts are those of the function."""
    assert list(listed_in(text)) == ids


@pytest.mark.parametrize(
    ("before", "base"),
    [
        ("Base = unittest.TestCase\n", "Base"),
        ("Other = unittest.TestCase\nBase = Other\n", "Base"),
        ("Base = Ranked if has_gpus() else unittest.TestCase\n", "Base"),
        ("if has_gpus():\n    Base = Ranked\nelse:\n    Base = unittest.TestCase\n", "Base"),
        ("from unittest import TestCase\nif not has_gpus():\n    TestCase = object\n", "TestCase"),
        ("class Own(unittest.TestCase): ...\nBase = Own\n", "Base"),
        ("from bases import Base\n", "Base"),
        ("import six\n", "six.with_metaclass(Meta, unittest.TestCase)"),
        ("from absl.testing import parameterized\nclass Plain: ...\n", "parameterized.CoopTestCase(Plain)"),
    ],
)
def test_bases_by_other_names(before: str, base: str) -> None:
    """A class is a test case by what its base is bound to; of several, by the one that is left when no condition holds."""
    text = f"import unittest\n{before}class Check({base}):\n    def test_x(self): ...\n"
    assert list(listed_in(text, bases="import unittest\nBase = unittest.TestCase\n")) == ["Check::test_x"]


def test_a_test_of_devices_under_another_name() -> None:
    """It is made for each device as others are, and has the needs of the function that runs."""
    text = "class Base(TestCase):\n    @dtypes(torch.float, torch.double)\n    def run_it(self, device, dtype): ...\n"
    text += "class TestA(TestCase):\n    test_x = Base.run_it\ninstantiate_device_type_tests(TestA, globals(), only_for='cuda')\n"
    found = listed_in(DEVICES + text)
    assert list(found) == ["TestACUDA::test_x_cuda_float32", "TestACUDA::test_x_cuda_float64"]
    assert {(test.function, test.line) for test in found.values()} == {("run_it", DEVICES.count("\n") + 3)}


# The package `parameterized`: the expected names are those that parameterized 0.9 makes.


def test_parameterized_expand() -> None:
    """Numbers are padded, and a first argument that is a string stands in the name."""
    text = "import unittest\nfrom parameterized import parameterized, param\nclass TestT(unittest.TestCase):\n"
    text += "    @parameterized.expand([('a b', 1), (2, 3), 'x', param('p', q=1)])\n    def test_e(self, a, b=0): ...\n"
    text += "    @parameterized.expand([(n,) for n in range(11)])\n    def test_n(self, n): ...\n"
    text += "    @parameterized.expand(read())\n    def test_u(self, n): ...\n"
    found = listed_in(text)
    names = [test.name for test in found.values()]
    assert names[:4] == ["test_e_0_a_b", "test_e_1", "test_e_2_x", "test_e_3_p"]
    assert names[4:] == [*(f"test_n_{number:02}" for number in range(11)), "test_u"]
    assert found["TestT::test_u"].family.startswith("one test for each case of `parameterized.expand(read())`")


def test_parameterized_class() -> None:
    """A class is made for each set of attributes; the class itself keeps its other methods only."""
    text = "import unittest\nfrom parameterized import parameterized_class\n"
    text += "@parameterized_class([{'backend': 'gloo'}, {'name': 'n c', 'backend': 'x'}])\n"
    text += "class TestT(unittest.TestCase):\n    def test_e(self): ...\n"
    text += "@parameterized_class(('a', 'b'), [(1, 2)])\nclass TestU(unittest.TestCase):\n    def test_e(self): ...\n"
    assert list(listed_in(text)) == ["TestT_0_gloo::test_e", "TestT_1_n_c::test_e", "TestU_0::test_e"]


@pytest.mark.parametrize(
    ("decorator", "names"),
    [
        ("parameterized.expand(list(set(ALL) - {'c'}))", None),
        ("parameterized.expand([(name, 1) for name in {*ALL}])", None),
        ("parameterized.expand(list(set(ALL))[:1])", None),
        ("parameterized.expand(MADE)", None),
        ("parameterized.expand(sorted(set(ALL) - {'c'}))", ["test_x_0_a", "test_x_1_b"]),
        ("parameterized.expand(list(set(ALL) - {'b', 'c'}))", ["test_x_0_a"]),
        ("parameterized.expand(set(ALL), name_func=lambda f, n, p: f'{f.__name__}_{p.args[0]}')", ["test_x_a", "test_x_b", "test_x_c"]),
        ("absl.named_parameters(*[(f'{n}{name}', 1) for n, name in enumerate(set(ALL))])", None),
        ("absl.named_parameters(*[(name, 1) for name in set(ALL)])", ["test_x_a", "test_x_b", "test_x_c"]),
        ("absl.parameters(*set(ALL))", ["test_x0", "test_x1", "test_x2"]),
    ],
)
def test_ids_that_hold_a_place_in_a_set(decorator: str, names: list[str] | None) -> None:
    """Which of a set comes first hangs on the run: one entry stands for tests whose names tell it, and which values a test gets is open."""
    text = "import unittest\nfrom parameterized import parameterized\nfrom absl.testing import parameterized as absl\n"
    text += "ALL = ['a', 'b', 'c']\nMADE = list(set(ALL))\nMADE.append('d')\nclass TestT(unittest.TestCase):\n"
    text += f"    @{decorator}\n    def test_x(self, name, n=0): ...\n"
    found = list(listed_in(text).values())
    if names is None:
        (test,) = found
        said = "it goes by the order of a set, which is known when it runs"
        assert (test.name, test.family) == ("test_x", f"one test for each case of `{decorator}`: {said}")
    else:
        assert sorted(test.name for test in found) == names
    if "absl.parameters" in decorator:
        assert [test.case for test in found] == [(("name", "…"),)] * 3


def test_classes_that_hold_a_place_in_a_set() -> None:
    """So it is of classes that are made of one."""
    text = "import unittest\nfrom parameterized import parameterized_class\n"
    text += "@parameterized_class([{'backend': name} for name in {'gloo', 'nccl'}])\n"
    text += "class TestT(unittest.TestCase):\n    def test_x(self): ...\n"
    (test,) = listed_in(text).values()
    assert test.id == "TestT::test_x"
    assert "the order of a set" in test.family


# `absl.testing.parameterized`: the expected names are those that absl-py 2.5 makes.

ABSL = """
from absl.testing import parameterized
ROWS = [(1, "a"), (2, "b")]
def sampled(*rows):
    return parameterized.parameters(*draw(rows))
class TestT(parameterized.TestCase):
"""


@pytest.mark.parametrize(
    ("decorator", "names"),
    [
        ("parameters((1, 'x'), (2, 'y'))", ["0", "1"]),
        ("parameters(1, 2, 3)", ["0", "1", "2"]),
        ("parameters(ROWS)", ["0", "1"]),
        ("parameters(*ROWS)", ["0", "1"]),
        ("parameters({'n': 1})", ["0"]),
        ("parameters(n for n in range(3))", ["0", "1", "2"]),
        ("parameters(read(), read())", ["0", "1"]),
        ("named_parameters(('one', 1), ('_two', 2), ('', 3))", ["_one", "_two", ""]),
        ("named_parameters(dict(testcase_name='Small', n=1), {'testcase_name': 4})", ["_Small", "_4"]),
        ("named_parameters((f'{pair=}', pair) for pair in ((1, None), (2, 'x')))", ["_pair=(1, None)", "_pair=(2, 'x')"]),
        ("product(n=(1, 2), kind=['a', 'b'])", ["0", "1", "2", "3"]),
        ("product([dict(a=1, b=2), dict(a=3, b=4)], [dict(c=5)], d=(6, 7))", ["0", "1", "2", "3"]),
    ],
)
def test_absl_parameters(decorator: str, names: list[str]) -> None:
    """Cases have numbers or names; what only a run can tell of their values does not matter."""
    text = f"{ABSL}    @parameterized.{decorator}\n    def test_x(self, n, m): ...\n"
    assert names_of(text) == [f"test_x{name}" for name in names]


def test_absl_cases_and_names_of_methods() -> None:
    """An underscore stands between two words in one case only; a class gives its cases to each of its tests, and to classes below it."""
    text = ABSL + "    @parameterized.named_parameters(('Small', 1))\n    def testSize(self, n): ...\n"
    text += "    @parameterized.product([dict(a=1, b=read())], d=(6,))\n    def test_p(self, a, b, d): ...\n"
    text += "@parameterized.parameters(('cpu', 1))\nclass TestU(parameterized.TestCase):\n    def test_x(self, device, n): ...\n"
    text += "class TestV(TestU):\n    def test_own(self): ...\n"
    found = listed_in(text)
    assert list(found) == ["TestT::testSizeSmall", "TestT::test_p0", "TestU::test_x0", "TestV::test_own", "TestV::test_x0"]
    assert found["TestT::test_p0"].case == (("a", "1"), ("b", "…"), ("d", "6"))
    assert found["TestV::test_x0"].case == (("device", "'cpu'"), ("n", "1"))


@pytest.mark.parametrize("decorator", ["parameterized.parameters(read())", "parameterized.parameters(*read())", "sampled(1, 2)"])
def test_absl_cases_that_are_known_when_it_runs(decorator: str) -> None:
    """One entry stands for all tests that a run makes."""
    (test,) = listed_in(f"{ABSL}    @{decorator}\n    def test_x(self, n): ...\n").values()
    assert test.id == "TestT::test_x"
    assert test.family.startswith(f"one test for each case of `{decorator}`: ")


ABSL_HELPERS = """
import re
from absl.testing import parameterized
UNSAFE = re.compile(r"[ ,.()=-]+")
def safe(name):
    return UNSAFE.sub("_", name)
def each_of(*, cases, name=None, only=None):
    if name is not None:
        named = [dict(testcase_name=safe(str(name(case))), **case) for case in cases]
    else:
        for case in cases:
            text = case.get("testcase_name")
            if text is None:
                text = "_".join(f"{key}={case[key]}" for key in sorted(case))
            case["testcase_name"] = safe(text)
        named = cases
    if only is not None:
        return parameterized.named_parameters([named[0]])
    else:
        return parameterized.named_parameters(*named)
def doubled(*rows):
    found = []
    same = found
    for row in rows:
        same.append((row, 2 * row))
    found += [(0, 0)]
    more = dict(n=5)
    more.update(m=6)
    more["m"] = 7
    return parameterized.parameters(*same, more)
def changed(rows):
    rows[0]["n"] = read()
    return parameterized.parameters(*rows)
def sometimes(*rows):
    if read():
        return parameterized.parameters(*rows)
    return parameterized.parameters(*rows, 9)
class TestT(parameterized.TestCase):
"""


@pytest.mark.parametrize(
    ("decorator", "cases"),
    [
        ("each_of(cases=[dict(n=1, m='a.b'), dict(n=2, m=3)])", {"_m_a_b_n_1": "1", "_m_3_n_2": "2"}),
        ("each_of(cases=[dict(n=1, testcase_name='a.b')])", {"_a_b": "1"}),
        ("each_of(cases=[dict(n=1), dict(n=2)], name=lambda case: f'v{case[\"n\"]}')", {"_v1": "1", "_v2": "2"}),
        ("each_of(cases=[dict(n=1), dict(n=2)], only=1)", {"_n_1": "1"}),
        ("doubled(3)", {"0": "3", "1": "0", "2": "5"}),
        ("changed([dict(n=1, m=2)])", {"0": "…"}),
    ],
)
def test_absl_decorators_that_functions_make(decorator: str, cases: dict[str, str]) -> None:
    """What the statements of a function make of its arguments is followed, through all names that an object has."""
    found = listed_in(f"{ABSL_HELPERS}    @{decorator}\n    def test_x(self, n, m): ...\n")
    assert {name: dict(test.case).get("n") for name, test in found.items()} == {f"TestT::test_x{name}": n for name, n in cases.items()}


def test_absl_decorators_that_are_known_when_they_run() -> None:
    """One entry stands for the tests of a function of which only a run can tell what it returns."""
    (test,) = listed_in(f"{ABSL_HELPERS}    @sometimes(1)\n    def test_x(self, n): ...\n").values()
    assert (test.id, test.family.partition(":")[0]) == ("TestT::test_x", "one test for each case of `sometimes(1)`")


CHANGED = {
    "rows.sort()": None,
    "kinds = set()\n    kinds.add(3)\n    rows = sorted(kinds)": None,
    "rows = sorted({4, 3})": ["[3]", "[4]"],
    "rows = [f'{n}{place}' for place, n in enumerate({3, 4})]": None,
    "last = rows.pop()": None,
    "rows = iter(rows)\n    next(rows)": None,
    "rows[:] = [5]": None,
    "def add():\n        rows.append(3)\n    add()": None,
    "def put():\n        rows[0] = 3\n    number = put()": None,
    "grown(rows)": None,
    "random.shuffle(rows)": None,
    "print(rows)\n    counted(rows)": ["[1]", "[2]"],
    "same = rows\n    same.append(7)": ["[1]", "[2]", "[7]"],
    "same = rows\n    rows += [7]\n    rows = same": ["[1]", "[2]", "[7]"],
    "held = {'a': [rows]}\n    held['a'][0][1] = 8": ["[1]", "[8]"],
    "held = {'a': rows}\n    held['a'].extend([8, 9])": ["[1]", "[2]", "[8]", "[9]"],
    "copy = list(rows)\n    copy.append(8)": ["[1]", "[2]"],
}


@pytest.mark.parametrize("statement", CHANGED)
def test_what_changes_in_a_function_that_makes_marks(statement: str) -> None:
    """A list that changes is read, under all of its names, or is said not to be known: never as it was before."""
    text = "import pytest, random\ndef grown(given):\n    more = 3\n    given.append(more)\n"
    text += "def counted(given):\n    number = 3\n    return number\n"
    text += f"def each():\n    rows = [1, 2]\n    {statement}\n    return pytest.mark.parametrize('n', rows)\n@each()\ndef test_x(n): ...\n"
    (*found,) = listed_in(text).values()
    expected = CHANGED[statement]
    if expected is None:
        assert [test.id for test in found] == ["test_x"]
        assert found[0].family
    else:
        assert [test.id for test in found] == [f"test_x{each}" for each in expected]


NAMERS = """
import unittest
from parameterized import parameterized, parameterized_class, param
def all_of(func, number, given):
    joined = parameterized.to_safe_name("_".join(str(each) for each in given.args))
    return f"{func.__name__}_{joined}"
def by_kind(func, number, given):
    name = "yes" if given.args[0] is True else "no"
    if len(given.args) > 1:
        name += "_" + str(given.args[1])
    return "%s_%s" % (func.__name__, name)
def of_class(cls, number, values):
    kind = "safe" if values["safe"] else "raw"
    return f"{cls.__name__}_{kind}_{number}"
"""


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("[(1, 'a b'), (None, 2.5)], name_func=all_of", ["test_e_1_a_b", "test_e_None_2_5"]),
        ("[True, (False, 4)], by_kind", ["test_e_yes", "test_e_no_4"]),
        ("[1, 2], name_func=lambda func, number, given: f'{func.__name__}{number}'", ["test_e0", "test_e1"]),
        ("lambda: [1, 'x']", ["test_e_0", "test_e_1_x"]),
        ("input=[(), ('',), b'x', {'k': 1}]", ["test_e_0", "test_e_1_", "test_e_2", "test_e_3_k"]),
        ("[], skip_on_empty=True", ["test_e"]),
        ("[1], name_func=lambda func, number, given: f'check_{number}'", []),
    ],
)
def test_parameterized_names(call: str, names: list[str]) -> None:
    """A function that makes names is followed through its statements, for methods and for functions; what it calls otherwise is no test."""
    method = f"{NAMERS}class TestT(unittest.TestCase):\n    @parameterized.expand({call})\n    def test_e(self, a, b=0): ...\n"
    function = f"{NAMERS}@parameterized.expand({call})\ndef test_e(a, b=0): ...\n"
    assert names_of(method) == names_of(function) == names


@pytest.mark.parametrize(
    ("above", "needed"),
    [
        ("@pytest.mark.multi", []),
        ("@mark", []),
        ("@pytest.mark.skip", []),
        ("@pytest.mark.skip(reason='x')", []),
        ("@pytest.mark.skipif(True, reason='x')", []),
        ("@pytest.mark.parametrize('q', [1, 2])", []),
        ("@pytest.mark.a(1)\n    @pytest.mark.b", []),
        ("@unittest.skip('x')", ["disabled: x"]),
        ("@pytest.mark.a\n    @unittest.skip('x')", ["disabled: x", "mark a"]),
        ("@unittest.skip('x')\n    @pytest.mark.a", ["disabled: x"]),
        ("@unittest.skipIf(A, 'x')\n    @pytest.mark.a", ["not A"]),
        ("@unittest.skipUnless(A, 'x')", ["not A", "A"]),
        ("@unittest.skipIf(A, 'x')\n    @unittest.skipUnless(B, 'x')", ["not B or A", "B", "not A"]),
        ("@given", None),
        ("@given\n    @pytest.mark.a", None),
    ],
)
def test_what_is_put_on_what_parameterized_expand_leaves(above: str, needed: list[str] | None) -> None:
    """A mark of pytest on nothing is called as a test by unittest, which passes whatever the mark; what a skip makes of nothing is skipped.

    pytest itself finds neither.
    """
    text = f"{NAMERS}import pytest\nfrom torch import A, B\nfrom somewhere import given\nmark = pytest.mark.kept\n"
    test = f"{above}\n    @parameterized.expand(['a'])\n    def test_e(self, q):\n        if q: raise unittest.SkipTest('no')\n"
    found = listed_in(f"{text}class TestT(unittest.TestCase):\n    {test}")
    assert list(found) == ["TestT::test_e_0_a", *(["TestT::test_e"] if needed is not None else [])]
    if needed is not None:
        left = found["TestT::test_e"]
        assert sorted(need.text for need in left.requirements) == sorted(needed)
        assert left.parameters == ()
    assert names_of(f"{text}class TestT:\n    {test}") == ["test_e_0_a"]
    assert names_of(text + test.replace("\n    ", "\n").replace("\nif", "\n    if")) == ["test_e_0_a"]


def test_what_parameterized_expand_leaves_is_no_test_of_its_own() -> None:
    """It takes the name of a test that is made under the same; where only a run can tell the tests, their entry stands for it, too."""
    text = (
        f"{NAMERS}import pytest\nclass Mixin:\n    @pytest.mark.a\n    @parameterized.expand([1], name_func=lambda f, n, p: f.__name__)\n"
    )
    text += "    def test_e(self, q): ...\n    @pytest.mark.a\n    @parameterized.expand(read())\n    def test_f(self, q): ...\n"
    text += "    @pytest.mark.a\n    @parameterized.expand([], skip_on_empty=True)\n    def test_g(self, q): ...\n"
    found = listed_in(f"{text}class TestT(Mixin, unittest.TestCase): ...\n")
    assert list(found) == ["TestT::test_e", "TestT::test_f", "TestT::test_g"]
    assert found["TestT::test_e"].idle == "a mark above `parameterized.expand` is put on nothing"
    assert found["TestT::test_f"].family
    assert [need.text for need in found["TestT::test_g"].requirements] == ["disabled: no cases"]


def test_what_parameterized_expand_leaves_hides_the_test_of_a_base() -> None:
    """A class that makes tests of one that it has in the place of its base's has no longer that of the base."""
    text = f"{NAMERS}class Base:\n    def test_e(self, q): ...\n    def test_f(self): ...\n"
    text += "class TestT(Base, unittest.TestCase):\n    @parameterized.expand([1])\n    def test_e(self, q): super().test_e(q)\n"
    text += "class TestP(Base):\n    @parameterized.expand([1])\n    def test_e(self, q): ...\n"
    assert list(listed_in(text)) == ["TestT::test_e_0", "TestT::test_f", "TestP::test_e_0", "TestP::test_f"]
    guarded = "class TestT(Base, unittest.TestCase):\n    if A:\n        @parameterized.expand([1])\n        def test_e(self, q): ...\n"
    found = listed_in(f"{NAMERS}from torch import A\nclass Base:\n    def test_e(self): ...\n    def test_f(self): ...\n{guarded}")
    assert set(found) == {"TestT::test_e_0", "TestT::test_e", "TestT::test_f"}
    anew = "class TestT(Base, unittest.TestCase):\n    @parameterized.expand([1])\n    def test_e(self, q): ...\n    test_e = Base.test_f\n"
    found = listed_in(f"{NAMERS}class Base:\n    def test_e(self): ...\n    def test_f(self): ...\n{anew}")
    assert {"TestT::test_e_0", "TestT::test_e", "TestT::test_f"} <= set(found)


def test_tests_have_what_stands_below_parameterized_expand() -> None:
    """The tests have the decorators below it; one without cases is skipped."""
    text = f"{NAMERS}class TestT(unittest.TestCase):\n    @parameterized.expand([1])\n"
    text += "    @unittest.skip('below')\n    def test_e(self, a): ...\n"
    text += "    @parameterized.expand([], skip_on_empty=True)\n    def test_f(self): ...\n"
    needed = {name: [need.text for need in test.requirements] for name, test in listed_in(text).items()}
    assert needed == {"TestT::test_e_0": ["disabled: below"], "TestT::test_f": ["disabled: no cases"]}


def test_parameterized_class_names() -> None:
    """The package writes what is called `name`, else the first text; a function of the suite may make the name."""
    text = f"{NAMERS}@parameterized_class(('safe',), [[True], [False]], class_name_func=of_class)\n"
    text += "class TestT(unittest.TestCase):\n    def test_e(self): ...\n"
    text += (
        "@parameterized_class([{'name': 5, 'b': 'x'}, {'name': ''}, {'a': None, 'b': 'p q'}])\nclass TestU:\n    def test_e(self): ...\n"
    )
    assert list(listed_in(text)) == [f"TestT_{name}::test_e" for name in ("safe_0", "raw_1")] + [
        f"TestU_{name}::test_e" for name in ("0_5", "1", "2_p_q")
    ]


def test_parameterized_class_takes_the_tests_of_its_class() -> None:
    """A class that derives from it has only its own tests; what is set on each class counts for what its tests need."""
    text = f"{NAMERS}from torch.testing._internal.common_distributed import MultiProcessTestCase\n"
    text += "@parameterized_class(('world_size', 'backend'), [(2, 'gloo'), (3, 'nccl')])\n"
    text += "class TestT(MultiProcessTestCase):\n    backend = 'ucc'\n    def test_e(self): ...\n    def helper(self): ...\n"
    text += "class TestU(TestT):\n    def test_own(self): ...\n"
    found = listed_in(text)
    needed = {name: [need.text for need in test.requirements] for name, test in found.items()}
    assert needed == {
        "TestT_0_gloo::test_e": ["world size 2", "backend gloo"],
        "TestT_1_nccl::test_e": ["world size 3", "backend nccl"],
        "TestU::test_own": ["world size 4", "backend ucc"],
    }
    assert {test.inherited_from for test in found.values()} == {None}


# pytest's own generators.

PYTEST = """
import enum, pytest, re, unittest
class E(enum.Enum):
    A = 1
    B = 2
class I(enum.IntEnum):
    A = 1
class S(str, enum.Enum):
    A = "x.y"
@pytest.fixture(params=["f1", "f2"])
def fix(request): ...
@pytest.fixture
def outer(fix): ...
@pytest.fixture(params=[1, 2], ids=["one", "two"], name="renamed")
def _named(request): ...
VALUES = [E.A, I.A, S.A, E, len, lambda x: x, [1], None, True, 1.0, 1e-8, b"q\\xff\\n", "", "dup", "dup"]
VALUES += [pytest.param(3, id="p"), object(), {}, re.compile(r"a.b\\d", re.I), re.compile(b"q\\xff"), re.compile(re.escape("a.(b"))]
@pytest.mark.parametrize("v", VALUES)
def test_v(v): ...
@pytest.mark.parametrize("v", [float("inf"), -0.0, "a1", "a1", "a10", "é\\n", "x" * 101, "[::]", (1, 2), 1 + 2, not True])
def test_w(v): ...
@pytest.mark.parametrize("a", [1, 2])
def test_a(fix, a, conf): ...
@pytest.mark.parametrize("a", [1])
@pytest.mark.parametrize("b", ["x y", "z"])
def test_b(a, outer, b): ...
@pytest.mark.parametrize("v", [])
def test_empty(v): ...
@pytest.mark.parametrize("v,w", [(1, 2), (3, "a")], ids=["one", None])
def test_ids(v, w): ...
@pytest.mark.parametrize(("v",), [(1,), (2,)], ids=lambda v: f"v{v}" if v == 2 else None)
def test_namer(v): ...
@pytest.mark.parametrize("v", [1, 2], ids=str)
def test_str(v): ...
@pytest.mark.parametrize("fix", ["q"], indirect=True)
def test_indirect(fix): ...
@pytest.mark.usefixtures("renamed")
def test_used(): ...
each = pytest.mark.parametrize("k", E)
@each
def test_members(k): ...
@pytest.mark.parametrize("c", ["cls"])
class TestC:
    pytestmark = pytest.mark.parametrize("d", ["dcl"])
    @pytest.fixture(params=["own"])
    def local(self): ...
    @pytest.mark.parametrize("a", [1])
    def test_m(self, a, c, fix, d, local): ...
    class TestInner:
        def test_i(self, fix, c, d): ...
    def helper(self): ...
class TestSub(TestC):
    def test_s(self, c, d): ...
class TestU(unittest.TestCase):
    @pytest.mark.parametrize("a", [1])
    def test_m(self): ...
class TestRun(unittest.TestCase):
    def runTest(self): ...
Alias = TestU
TestMade = type("TestMade", (TestU,), {"backend": "gloo"})
for backend in ("gloo", "nccl"):
    globals()[f"Test{backend.title()}"] = type(f"Test{backend.title()}", (TestU,), {"backend": backend})
class TestOff:
    __test__ = False
    def test_o(self): ...
"""
CONFTEST = """
import pytest
@pytest.fixture(params=["c1", "c2"], scope="session")
def conf(request): ...
@pytest.fixture(params=[1.5], autouse=True, ids=["auto"])
def auto(request): ...
"""


def test_as_pytest_collects(pytester: pytest.Pytester) -> None:
    """What pytest itself collects of a file with all its ways to make tests is what is listed, letter for letter."""
    pytester.makeconftest(CONFTEST)
    collected = collected_of(pytester, PYTEST)
    assert len(collected) > 60
    assert sorted(listed_in(PYTEST, conftest=CONFTEST)) == collected


def collected_of(pytester: pytest.Pytester, text: str, **files: str) -> list[str]:
    """Give what pytest itself collects of `test_it.py`, with other files beside it."""
    pytester.makepyfile(test_it=text, **files)
    items, _ = pytester.inline_genitems("test_it.py", "-p", "no:rankbook", "-p", "no:cacheprovider")
    return sorted(item.nodeid.partition("::")[2] for item in items)


LINES = """
import pytest
from other import FAR, far, NEAR
P = pytest.mark.parametrize
@P("n", NEAR)
def test_imported(n): ...
NEAR = ["near"]
@P("n", NEAR)
def test_assigned(n): ...
A = [1, 2]
B = A + [3]
C = A
D = [*A]
E = (A, C)
F = tuple(A)
name = lambda n: f"{len(A)}-{n}"
def all_of(n, first=A[-1]):
    values = [first, *A]
    return [*values, n]
def each(n):
    values = [*A, n]
    return pytest.mark.parametrize("n", values)
needs = P("n", A)
@pytest.fixture(params=A)
def fix(request): ...
@P("n", A, ids=name)
def test_first(n): ...
@P("n", all_of(7))
def test_called(n): ...
@each(8)
def test_each(n): ...
@P("n", E)
def test_held(n): ...
@P("n", [len(each) for each in E])
def test_lengths(n): ...
@P("n", F)
def test_copied(n): ...
@P("n", C)
def test_other_name(n): ...
@P("n", D)
def test_unpacked(n): ...
def test_fixture(fix): ...
A.append(4)
A += [5]
@P("n", [*A])
def test_grown(n): ...
@P("n", C)
def test_grown_by_another_name(n): ...
@P("n", [len(each) for each in E])
def test_grown_inside(n): ...
@P("n", all_of(9))
def test_called_again(n): ...
A.append(6)
A = ["new"]
A.append("newer")
@P("n", A, ids=name)
def test_second(n): ...
@P("n", B)
def test_before(n): ...
@needs
def test_needs(n): ...
A = A + ["newest"]
@P("n", A)
def test_third(n): ...
@each("each")
def test_each_again(n): ...
N = 1
M = N
N += 1
@P("n", [M, N])
def test_number(n): ...
N += 1
@P("n", [N])
def test_next_number(n): ...
class TestC:
    A = ["class"]
    @P("n", A)
    def test_one(self, n): ...
    A = A + ["body"]
    @P("n", A)
    def test_two(self, n): ...
    N = N + 10
    @P("n", [N])
    def test_outer(self, n): ...
@P("n", TestC.A[:2])
def test_of_class(n): ...
@P("n", FAR)
def test_far(n): ...
@P("n", far())
def test_far_function(n): ...
def late(): return K
K = [1]
@P("k", late())
def test_late(k): ...
K = [2, 3]
@P("k", late())
def test_later(k): ...
def G(): return ["def"]
@P("g", G())
def test_def(g): ...
G = ["constant"]
@P("g", G)
def test_constant(g): ...
both = pytest.mark.parametrize("m", ["one"])
@both
def test_both(m): ...
both = pytest.mark.parametrize("m", ["two"])
@both
def test_both_again(m): ...
W = ["w"]
class TestW:
    W = ["in class"]
    pytestmark = P("w", W)
    W = ["below"]
    def test_w(self, w): ...
    @P("v", W)
    def test_v(self, v, w): ...
W = ["below all"]
N = 100
A = ["last"]
"""
OTHER = """
NEAR = ["imported"]
FAR = [1]
def far(): return FAR + [9]
FAR = [2, 3]
FAR.append(4)
"""


def test_a_name_means_what_it_was_set_to_above(pytester: pytest.Pytester) -> None:
    """What is evaluated when a file is imported sees what has been set above; a function sees what is set when it is called."""
    collected = collected_of(pytester, LINES, other=OTHER)
    assert sorted(listed_in(LINES, other=OTHER)) == collected


EITHER = """
import functools
def wraps(test):
    @functools.wraps(test)
    def wrapper(*args, **kwargs):
        return test(*args, **kwargs)
    return wrapper
def purge(test):
    if not isinstance(test, type):
        return wraps(test)
    for name in dir(test):
        if name.startswith("test"):
            setattr(test, name, wraps(getattr(test, name)))
    return test
@purge
def test_one(): ...
@purge
class TestTwo:
    def test_two(self): ...
"""


def test_decorators_of_functions_and_classes(pytester: pytest.Pytester) -> None:
    """A decorator that asks whether it has got a class does to a function what it does to one."""
    collected = collected_of(pytester, EITHER)
    assert sorted(listed_in(EITHER)) == collected


TAKING = """
import functools
from functools import wraps
def skip_on_error(reason="offline"):
    def decorator(function):
        @wraps(function)
        def run(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except OSError:
                raise RuntimeError(reason)
        return run
    return decorator
def plain(function):
    if function is None:
        raise ValueError(function)
    def run(*args):
        return function(*args)
    return run
def either(function):
    if function.__name__.endswith("F"):
        async def later(*args): ...
        return later
    @functools.wraps(function)
    def run(*args): ...
    return run
def kept(cls):
    def run(*args):
        return cls
    return cls
def functions_only(thing):
    if isinstance(thing, type):
        return thing
    @wraps(thing)
    def run(*args): ...
    return run
def replaced(thing):
    def run(*args): ...
    run = thing
    return run
def given_back(run):
    if run is None:
        def run(*args): ...
    return run
def undone(thing):
    def give(function):
        return thing
    @give
    def run(*args): ...
    return run
def caught(thing):
    def run(*args): ...
    try:
        return thing
    except OSError:
        return run
def changed(thing):
    def run(*args): ...
    def swap():
        nonlocal run
        run = thing
    swap()
    return run
"""
TAKEN = """
import unittest
@skip_on_error()
class TestA:
    def test_a(self): ...
@skip_on_error
class TestB:
    def test_b(self): ...
@plain
class TestC:
    def test_c(self): ...
@plain
class Case(unittest.TestCase):
    def test_d(self): ...
@either
class TestE:
    def test_e(self): ...
@either
class TestF:
    def test_f(self): ...
class TestG:
    def test_g(self): ...
    @plain
    class TestH:
        def test_h(self): ...
@plain
def test_i(): ...
@kept
class TestJ:
    def test_j(self): ...
@functions_only
class TestK:
    def test_k(self): ...
@replaced
class TestL:
    def test_l(self): ...
@given_back
class TestM:
    def test_m(self): ...
@undone
class TestN:
    def test_n(self): ...
@caught
class TestO:
    def test_o(self): ...
@changed
class TestP:
    def test_p(self): ...
"""


@pytest.mark.parametrize("is_imported", [False, True])
def test_classes_that_decorators_make_functions(is_imported: bool, pytester: pytest.Pytester) -> None:
    """A decorator that returns a function of its own whatever happens leaves no class; one that may give the class back does."""
    text = f"from other import *\n{TAKEN}" if is_imported else TAKING + TAKEN
    files = {"other": TAKING} if is_imported else {}
    collected = collected_of(pytester, text, **files)
    assert len(collected) == 9
    assert sorted(listed_in(text, **files)) == collected


MEMBERS = """
import enum, pytest
class I(enum.IntEnum):
    A = (0,)
    B = ("10", 2)
    C = True
    D = "7"
class F(enum.IntFlag):
    A = (4,)
class S(str, enum.Enum):
    A = ("x",)
    B = (b"y", "ascii")
    C = 5
class T(enum.StrEnum):
    A = ("t",)
class G(float, enum.Enum):
    A = ("1.5",)
class P(enum.Enum):
    A = (1, 2)
ALL = list(I) + list(F) + list(S) + list(T) + list(G) + list(P)
@pytest.mark.parametrize("m", ALL)
def test_member(m): ...
@pytest.mark.parametrize("v", [m.value for m in ALL])
def test_value(v): ...
class N(str, enum.Enum):
    def __new__(cls, value, more):
        made = str.__new__(cls, value)
        made._value_ = value
        return made
    A = ("z", 1)
"""


def test_members_are_made_of_what_is_written(pytester: pytest.Pytester) -> None:
    """A member that is a number or a string is what its type makes of what is written; where the class says how, only a run can tell."""
    assert sorted(listed_in(MEMBERS)) == collected_of(pytester, MEMBERS)
    own = listed_in(f"{MEMBERS}@pytest.mark.parametrize('m', N)\ndef test_own(m): ...\n")
    assert "what the members of `N` are is known when it runs" in own["test_own"].family


@pytest.mark.parametrize(("setting", "told"), [("", True), ("skip", True), ("xfail", False)])
def test_a_test_without_cases_is_skipped(tmp_path: Path, setting: str, told: bool) -> None:
    """An empty set of parameters skips its test for a reason that pytest gives, unless the project has it do something else."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{f'empty_parameter_set_mark = {setting}' if setting else ''}\n")
    text = "import pytest\n@pytest.fixture(params=[])\ndef size(request): ...\n@pytest.mark.parametrize('c', [1, 2])\n"
    text += "@pytest.mark.parametrize('a, b', [])\ndef test_a(a, b, c): ...\ndef test_size(size): ...\n"
    modules = {"test_it.py": parse_bytes("test_it.py", text.encode())}
    found = survey(Draft(modules, frozenset(modules), rules=rules_of(tmp_path)), "test_it.py").tests
    needs = {test.name: [(need.text, need.line) for need in test.requirements] for test in found}
    none = [("disabled: got empty parameter set for (a, b)", 5)] if told else []
    size = [("disabled: got empty parameter set for (size)", 3)] if told else []
    assert needs == {"test_a[NOTSET-1]": none, "test_a[NOTSET-2]": none, "test_size[NOTSET]": size}


GPUS = """\
import pytest, torch
def early():
    if not torch.cuda.is_available():
        return 0
    return torch.cuda.device_count()
def in_a_line():
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
"""


@pytest.mark.parametrize("count", ["min(4, early())", "early()", "max([1, in_a_line()])", "int(in_a_line())"])
def test_cases_that_hang_on_the_number_of_gpus(count: str) -> None:
    """They are not taken for those of a machine without GPUs: how many there are elsewhere only a run can tell."""
    ((name, test),) = listed_in(f"{GPUS}@pytest.mark.parametrize('n', list(range(2, {count} + 1)))\ndef test_n(n): ...\n").items()
    assert name == "test_n"
    assert test.family
    assert not test.requirements


def test_marks_of_one_case() -> None:
    """What is said of one case is needed by that case alone."""
    text = "import pytest\n@pytest.mark.parametrize('a', [1, pytest.param(2, marks=pytest.mark.gpu(4))])\ndef test_a(a): ...\n"
    needs = {name: [need.text for need in test.requirements] for name, test in listed_in(text).items()}
    assert needs == {"test_a[1]": [], "test_a[2]": ["4 GPUs"]}


@given(st.lists(st.one_of(st.text(max_size=8), st.integers(), st.floats(), st.booleans(), st.none()), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_ids_are_those_of_pytest(values: list[object]) -> None:
    """Any plain values get the names that pytest gives them."""
    from _pytest.mark.structures import ParameterSet
    from _pytest.python import IdMaker

    sets = [ParameterSet.extract_from(value, force_tuple=True) for value in values]
    ids = IdMaker(["a"], sets, None, None, None, None).make_unique_parameterset_ids()
    text = f"from pytest import mark\ninf, nan = float('inf'), float('nan')\n@mark.parametrize('a', {values!r})\ndef test_a(a): ...\n"
    assert [test.name for test in listed_in(text).values()] == [f"test_a[{name}]" for name in ids]


# Classes that a module makes.


def test_classes_made_in_loops() -> None:
    """A loop whose values can be read makes its classes; an entry stands for those of one that cannot."""
    base = "import sys, unittest\nclass Base(unittest.TestCase):\n    def test_b(self): ...\nclass Other(Base): ...\n"
    loop = base + "for kind, base in {'A': Base, 'B': Other}.items():\n    class Test(base):\n        backend = kind\n"
    loop += "    Test.__name__ = f'Test{kind}'\n    globals()[f'Test{kind}'] = Test\n"
    loop += "for n in range(2):\n    if n:\n        setattr(sys.modules[__name__], f'TestN{n}', type(f'TestN{n}', (Base,), {}))\n"
    loop += "for n in load():\n    globals()[f'TestL{n}'] = type(f'TestL{n}', (Base,), {})\n"
    found = listed_in(loop)
    made = [name for name in found if name.startswith(("TestA", "TestB", "TestN", "TestL"))]
    assert made == ["TestA::test_b", "TestB::test_b", "TestN1::test_b", "TestL"]
    assert found["TestL"].family == "the tests that `for n in load()` makes: `load` is defined in no known file"


def test_classes_of_rpc_tests() -> None:
    """PyTorch joins classes with a fixture and puts them into the module."""
    shared = (
        "import unittest\nclass SpawnHelper(unittest.TestCase): ...\nclass One:\n    def test_o(self): ...\nclass Fix: ...\nALL = [One]\n"
    )
    shared += "def generate_tests(prefix, mixin, tests, module_name): ...\n"
    text = "from shared import generate_tests, Fix, ALL\nglobals().update(generate_tests('Rpc', Fix, ALL, __name__))\n"
    assert {name: test.inherited_from for name, test in listed_in(text, shared=shared).items()} == {"RpcOne::test_o": "One"}


def test_functions_that_make_classes() -> None:
    """A function that is one `return type(...)` makes a class."""
    text = "import unittest\nclass Base(unittest.TestCase):\n    def test_b(self): ...\n"
    text += (
        "def make(backend):\n    return type(f'T{backend}', (Base,), {'backend': backend})\nTestGloo = make('gloo')\nTestAny = load('x')\n"
    )
    result = listed_in(text)
    assert list(result) == ["Base::test_b", "TestGloo::test_b"]
    assert [need.value for need in result["TestGloo::test_b"].requirements if need.kind == "backend"] == ["gloo"]


# Bases outside the tree, and what pytest is told to collect.


def test_bases_in_packages(tmp_path: Path) -> None:
    """A base class of a package gives its tests when its folder is named; else it is named as unresolved."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("from .cases import Case\n")
    (tmp_path / "lib" / "cases.py").write_text("import unittest\n\nclass Case(unittest.TestCase):\n    def test_c(self): ...\n")
    text = {"test_it.py": "from lib import Case\nclass TestIt(Case): ...\n"}
    found = of(text, Packages((tmp_path / "none", tmp_path)))
    assert [(test.id, test.path, test.line) for test in found.tests["test_it.py"]] == [
        ("Case::test_c", "site-packages/lib/cases.py", 4),
        ("TestIt::test_c", "site-packages/lib/cases.py", 4),
    ]
    assert not found.surveys["test_it.py"].unresolved
    alone = of(text)
    assert not alone.tests
    assert [base.text for base in alone.surveys["test_it.py"].unresolved] == ["Case"]


def test_packages_by_the_door(tmp_path: Path) -> None:
    """A test that a package holds stands on the page as code, without a link: it has no page."""
    (tmp_path / "env" / "lib").mkdir(parents=True)
    (tmp_path / "env" / "lib" / "__init__.py").write_text("import unittest\n\nclass Case(unittest.TestCase):\n    def test_c(self): ...\n")
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "test_it.py").write_text("from lib import Case\n\n\nclass TestIt(Case):\n    def test_own(self): ...\n")
    assert main(["gen", "suite", "--root", str(tmp_path), "--out", "docs", "--package-path", "env", "--jobs", "1"]) == 0
    page = (tmp_path / "docs" / "suite" / "test_it.py_docs.md").read_text()
    assert "| `test_c` |" in page
    assert "`Case` (`lib/__init__.py:4`)" in page
    assert "site-packages/lib/__init__.py_docs.md" not in page


def test_the_folders_of_packages(tmp_path: Path) -> None:
    """Folders are below the root or absolute; a word stands for those of the interpreter."""
    folders = package_folders(tmp_path, ("env", "/abs", sources_packages.INSTALLED))
    assert folders[:2] == ((tmp_path / "env").resolve(), Path("/abs").resolve())
    assert all((folder / "pytest").is_dir() for folder in folders[2:])
    found = Packages(folders)
    assert "site-packages/pytest/__init__.py" in found
    assert "site-packages/pytest/nothing.py" not in found
    assert "pytest/__init__.py" not in found
    assert found["site-packages/pytest/__init__.py"].source.language == "python"
    with pytest.raises(KeyError):
        found["site-packages/nothing.py"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\npython_files = check_*.py\npython_classes = Check *Suite\npython_functions = check_*\n"),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\npython_files = "check_*.py"\npython_classes = ["Check", "*Suite"]\npython_functions = "check_*"\n',
        ),
        ("tox.ini", "[pytest]\npython_files = check_*.py\npython_classes = Check *Suite\npython_functions = check_*\n"),
        ("setup.cfg", "[tool:pytest]\npython_files = check_*.py\npython_classes = Check *Suite\npython_functions = check_*\n"),
    ],
)  # fmt: skip
def test_what_the_project_calls_a_test(tmp_path: Path, name: str, text: str) -> None:
    """The patterns of the project's configuration decide, whatever file it stands in."""
    (tmp_path / name).write_text(text)
    (tmp_path / "check_it.py").write_text(
        "import unittest\ndef check_a(): ...\ndef test_b(): ...\nclass MySuite:\n    def check_c(self): ...\n"
        "class TestD:\n    def check_d(self): ...\n"
        "class U(unittest.TestCase):\n    def test_u(self): ...\n    def check_u(self): ...\n"
    )
    (tmp_path / "test_it.py").write_text("def check_a(): ...\n")
    modules = {path: parse(tmp_path, path) for path in ("check_it.py", "test_it.py")}
    draft = Draft(modules, frozenset(modules), rules=rules_of(tmp_path))
    assert [test.id for test in survey(draft, "check_it.py").tests] == ["check_a", "MySuite::check_c", "U::test_u"]
    assert not survey(draft, "test_it.py").tests


def test_a_broken_configuration_is_none(tmp_path: Path) -> None:
    """What cannot be read leaves pytest's own patterns; an earlier file wins."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest\n")
    (tmp_path / "tox.ini").write_bytes(b"[pytest\xff")
    assert rules_of(tmp_path) == Rules()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\npython_files = x.py\n")
    assert rules_of(tmp_path) == Rules()


# Whatever stands in a source.


@pytest.mark.parametrize(
    "values",
    [
        "itertools.product(*[range(1000)] * 9)", "'x' * 10 ** 9", "[0] * 10 ** 9", "2 ** 2 ** 2 ** 9", "f'{1:>999999999}'",
        "'%999999999d' % 1", "'{:>999999999}'.format(1)", "'{0.__class__}'.format(1)", "[[[]]] * 99999", "list(range(10 ** 12))",
        "[x for x in x]", "(lambda f: f(f))(lambda f: f(f))",
        "'a'.replace('a', 'b' * 9999).replace('b', 'c' * 9999)", "1 / 0", "{}['x']", "[][1]", "A", "B",
        "(" * 90 + "1" + ")" * 90, "1 << 10 ** 9",
        "itertools.permutations(range(30))", "sum([[1] * 999] * 999, [])", "[i for i in range(2000) for j in range(2000)]",
        "not " * 150 + "x",
    ],
)  # fmt: skip
def test_what_would_not_end(values: str) -> None:
    """Sources that would take forever, or all memory, cost one entry and no time."""
    start = time.process_time()
    text = f"import itertools, pytest\nA = B\nB = A + [1]\n@pytest.mark.parametrize('a', {values})\ndef test_a(a): ...\ndef test_b(): ...\n"
    found = listed_in(text)
    assert "test_b" in found
    assert all(test.family for name, test in found.items() if name != "test_b")
    assert time.process_time() - start < 5


EXPRESSIONS = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), st.none(), st.sampled_from(["", "a", "b c"])).map(repr),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({', '.join(parts)},)"),
        st.tuples(inner, st.sampled_from(["+", "-", "*", "%", "==", "<", "and", "or", "in", "is"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        inner.map(lambda part: f"[x for x in {part} if x]"),
        inner.map(lambda part: f"str({part})"),
        inner.map(lambda part: f"f'{{{part}}}-'"),
        st.tuples(inner, inner).map(lambda parts: f"{{{parts[0]}: {parts[1]}}}"),
        inner.map(lambda part: f"len({part})"),
        inner.map(lambda part: f"list(reversed({part}))"),
        inner.map(lambda part: f"(lambda y: [y, {part}])(1)"),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
@settings(max_examples=300, deadline=None)
def test_evaluation_is_that_of_python(text: str) -> None:
    """What an expression comes to is what Python makes of it, or nothing is said."""
    evaluator = Evaluator(Draft({"a.py": parse_bytes("a.py", b"")}, frozenset({"a.py"})))
    try:
        found = evaluator.of(text, Frame("a.py"))
        if "Thing(" in repr(found):
            return
    except (Unknown, Undecided):
        return
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = eval(text)
        except (TypeError, ValueError, ArithmeticError):
            return
    assert (type(found), found) == (type(expected), expected)


@given(
    st.text(max_size=60),
    st.sampled_from(["parametrize('a', {})", "parametrize({})", "dtypes({})", "pytest.mark.parametrize('a', {})", "{}"]),
)
@settings(max_examples=150, deadline=None)
def test_no_decorator_makes_it_raise(text: str, template: str) -> None:
    """Whatever stands in a decorator, each function of the file is there, under its own name or with its variants."""
    source = f"{DEVICES}import pytest\nclass TestT(TestCase):\n    @{template.format(text)}\n    def test_x(self): ...\n"
    source += "instantiate_device_type_tests(TestT, globals())\nclass TestP:\n" + source.partition("class TestT(TestCase):\n")[2]
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return
    assert {test.function for test in listed_in(source).values()} <= {"test_x"}


def test_the_same_answers_in_any_order() -> None:
    """What is remembered on the way does not depend on which file is asked first."""
    files = {"a.py": "from b import B\nA = [B, 1]\n", "b.py": "from a import A\nB = A + [2]\n"}
    files |= {f"test_{name}.py": f"import pytest\nfrom {name} import *\nX = {name.upper()}\n" for name in "ab"}
    files = {
        path: text + "@pytest.mark.parametrize('v', X)\ndef test_x(v): ...\n" if path.startswith("test") else text
        for path, text in files.items()
    }
    modules = {path: parse_bytes(path, text.encode()) for path, text in files.items()}
    found = []
    for order in (sorted(modules), sorted(modules, reverse=True)):
        draft = Draft(modules, frozenset(modules))
        found.append({path: survey(draft, path).tests for path in order})
    assert found[0] == found[1]


# Rows on the page.


def test_variants_stand_in_one_row(tmp_path: Path) -> None:
    """A function that is made into many tests is one row, and the count says tests."""
    text = (
        f"{TORCH}@instantiate_parametrized_tests\nclass TestT(TestCase):\n    @parametrize('a', range(12))\n    def test_x(self, a): ...\n"
    )
    text += "    @parametrize('a', load())\n    def test_y(self, a): ...\n"
    (tmp_path / "test_it.py").write_text(text)
    assert main(["gen", "test_it.py", "--root", str(tmp_path), "--out", "docs", "--jobs", "1"]) == 0
    page = (tmp_path / "docs" / "test_it.py_docs.md").read_text()
    assert "13 tests of `TestT`" in page
    assert "12 variants of `parametrize('a', range(12))`: `a_0`, `a_1`, `a_2`, `a_3`, `a_4`, `a_5` and 6 more" in page
    assert page.count("`test_x`](#") == 1
    assert "one test for each case of `parametrize('a', load())`: `load` is defined in no known file" in page


def test_what_the_tests_of_a_class_have_in_common_is_said_once(tmp_path: Path) -> None:
    """Needs, calls that make tests, and what their names depend on stand above a table whose rows all have them."""
    text = f"{DEVICES}from functools import partial\nfrom elsewhere import cases\ncases = partial(cases, 2)\nclass TestT(TestCase):\n"
    for name in "xy":
        text += f"    @parametrize('a', [1], cases)\n    def test_{name}(self, device, a): ...\n"
    text += "class TestU(TestCase):\n    def test_u(self, device): ...\n"
    text += "".join(f"instantiate_device_type_tests({name}, globals(), only_for='cuda')\n" for name in ("TestT", "TestU"))
    (tmp_path / "test_it.py").write_text(text)
    assert main(["gen", "test_it.py", "--root", str(tmp_path), "--out", "docs", "--jobs", "1"]) == 0
    page = (tmp_path / "docs" / "test_it.py_docs.md").read_text().partition("## What it needs")[0]
    made = "Each is made by `instantiate_device_type_tests(TestT, globals(), only_for='cuda')`; it stands for one test for each case of "
    assert f"{made}`parametrize('a', [1], cases)`: `cases` is defined in no known file.\n" in page
    assert page.count("parametrize('a', [1], cases)") == 1
    assert "`instantiate_device_type_tests(TestU, globals(), only_for='cuda')`: `device = cuda` |" in page


# The five seeds: written by hand from reading them.


def seed(name: str) -> str:
    """Give the listing of a seed page."""
    lines = next(SEEDS.glob(f"*{name}*")).read_text(encoding="utf-8").splitlines()
    start = next(index for index, line in enumerate(lines) if line in ("```python", "```py"))
    return "\n".join(lines[start + 1 : lines.index("```", start)]) + "\n"


def read_seed(path: str, siblings: Mapping[str, str] | None = None) -> model.Project:
    return of({path: seed(path.rsplit("/", 1)[-1] if "sharded" not in path else "__init__"), **(siblings or {})})


needs_seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"no seed pages at {SEEDS}")
needs_tree = pytest.mark.skipif(not TREE.is_dir(), reason="RANKBOOK_PYTORCH names no PyTorch 2.6 source tree")
Row = tuple[str, int, str, str | None]
"""Node id, line, harness, and the class that it is inherited from."""
OWN_DDP = {
    "test_ddp_invoke_work_object": 131,
    "test_ddp_with_pypg": 150,
    "test_ddp_with_pypg_with_grad_views": 155,
    "test_ddp_no_init_sync": 162,
}
BY_HAND: dict[str, list[Row]] = {
    "test/distributed/test_p2p_ipc.py": [("P2PIpcTest::test_p2p_ipc", 33, "MultiProcContinuousTest", None)],
    "test/distributed/test_cupy_as_tensor.py": [("CupyAsTensorTest::test_cupy_as_tensor", 71, "MultiProcContinuousTest", None)],
    "test/distributed/test_c10d_spawn_gloo.py": [
        ("DistributedDataParallelSingleProcessTest::test_cpu", 73, "TestCase", None),
        ("DistributedDataParallelSingleProcessTest::test_cuda", 78, "TestCase", None),
        ("DistributedDataParallelSingleProcessTest::test_rnn", 83, "TestCase", None),
        *(
            (f"TestDistributedNNFunctionsGloo::test_{name}", line, "pytest", None)
            for name, line in {
                "broadcast": 134, "reduce": 142, "allreduce": 150, "all_gather": 158, "all_to_all": 166, "all_to_all_single": 174,
                "gather": 183, "scatter": 214,
            }.items()
        ),
    ],
    "test/distributed/test_c10d_pypg.py": [
        *(
            (f"{name}::{test}", line, "MultiThreadedTestCase", "AbstractDDPSingleRank")
            for name in ("TestDDPWithWorkSubclass", "TestDDPWithWorkWrapper")
            for test, line in OWN_DDP.items()
        ),
        ("TestPyProcessGroup::test_attr_overrides", 198, "TestCase", None),
        ("TestPyProcessGroup::test_abort_shutdown", 210, "TestCase", None),
        ("TestPyProcessGroup::test_block_current_stream", 217, "TestCase", None),
        ("TestPyProcessGroup::test_block_current_stream_use_after_free", 244, "TestCase", None),
    ],
    "torch/testing/_internal/distributed/_shard/sharded_tensor/__init__.py": [],
}  # fmt: skip


@needs_seeds
@pytest.mark.parametrize("path", BY_HAND)
def test_the_seeds_by_hand(path: str) -> None:
    """The tests of every seed source are those of a table that was written by reading it."""
    found = read_seed(path).tests.get(path, ())
    assert [(test.id, test.line, test.harness, test.inherited_from) for test in found] == BY_HAND[path]
    assert {test.path for test in found} <= {path}
    assert not any(test.parameters or test.case or test.family for test in found)


@needs_seeds
def test_a_seed_without_its_sibling() -> None:
    """The base class that the missing sibling holds is named, not passed over."""
    path = "test/distributed/test_c10d_pypg.py"
    unresolved = [base.text for base in read_seed(path).surveys[path].unresolved]
    assert "test_c10d_common.CommonDistributedDataParallelTest" in unresolved


REENTRANT = ("checkpointing_once", "checkpointing_unused_params", "checkpointing_twice", "checkpointing_twice_static_graph",
             "checkpointing_weight_sharing")  # fmt: skip
INHERITED = [
    *(f"test_ddp_{name}_use_reentrant_{value}" for name in REENTRANT for value in (True, False)),
    "test_ddp_checkpointing_dynamic_module", "test_ddp_checkpointing_dynamic_weight_sharing", "test_ddp_checkpointing_twice_weight_sharing",
    "test_invalid_powerSGD_state", "test_sync_batch_norm_only_empty_input", "test_sync_batch_norm_empty_input", "test_dataclass_output",
    "test_dataclass_output_unused_param",
]  # fmt: skip


@needs_seeds
@needs_tree
def test_a_seed_with_its_sibling() -> None:
    """With the tree that holds the sibling, each class runs its 18 tests too; each names the file and the line that holds it."""
    path, common = "test/distributed/test_c10d_pypg.py", "test/distributed/test_c10d_common.py"
    result = read_seed(path, {common: (TREE / common).read_text()})
    found = result.tests[path]
    for name in ("TestDDPWithWorkSubclass", "TestDDPWithWorkWrapper"):
        taken = [test for test in found if test.class_name == name]
        assert sorted(test.name for test in taken) == sorted([*OWN_DDP, *INHERITED])
        assert {test.name for test in taken if test.path == common} == set(INHERITED)
        assert {test.inherited_from for test in taken if test.path == common} == {"CommonDistributedDataParallelTest"}
    lines = (TREE / common).read_text().splitlines()
    assert all(f"def {test.function}(" in lines[test.line - 1] for test in found if test.path == common)


@needs_tree
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["test_c10d_pypg", "fsdp/test_fsdp_core", "fsdp/test_fsdp_state_dict", "rpc/test_faulty_agent", "test_backends"]
)
def test_as_pytest_collects_pytorch(name: str) -> None:
    """What pytest collects of PyTorch's own files with the installed torch is what is listed; the rest says what it lacks here."""
    pytest.importorskip("torch")
    path = f"test/distributed/{name}.py"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--noconftest",
        "-p",
        "no:rankbook",
        "-p",
        "no:cacheprovider",
        "--collect-only",
        "-q",
        f"distributed/{name}.py",
    ]
    done = subprocess.run(command, cwd=TREE / "test", capture_output=True, text=True, check=False)
    collected = {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}
    siblings = {file.relative_to(TREE).as_posix() for file in (TREE / path).parent.rglob("*.py")} | {"test/distributed/test_c10d_common.py"}
    modules = {file: parse(TREE, file) for file in sorted(siblings)}
    draft = Draft(modules, frozenset(modules), Packages(package_folders(TREE, (sources_packages.INSTALLED,))))
    found = {test.id: test for test in survey(draft, path).tests}
    assert collected <= found.keys()
    assert all(absent(found[name]) for name in found.keys() - collected)
