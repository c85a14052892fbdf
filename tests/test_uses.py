"""Which APIs a file uses, under which names, and which of its tests reach them."""

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook import model
from rankbook.analyse import Draft, analyse
from rankbook.analyse.public import mentioned, public_names, unknown_modules, unmentioned
from rankbook.sources.parse import parse_bytes


def project(packages: dict[str, str] | None = None, **files: str) -> model.Project:
    """Analyse files; `__` in a name stands for `/`, and `.py` is added."""
    return analyse(facts(files).values(), facts(packages or {}))


def facts(files: dict[str, str]) -> dict[str, model.Module]:
    paths = {name.replace("__", "/") + ".py" if "." not in name else name: textwrap.dedent(text) for name, text in files.items()}
    return {path: parse_bytes(path, text.encode()) for path, text in paths.items()}


def used(result: model.Project, path: str = "test_it.py") -> dict[str, model.Use]:
    return {use.name: use for use in result.surveys[path].uses}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch.distributed as dist\ndist.all_reduce(x)", "torch.distributed.all_reduce"),
        ("import torch.distributed\ntorch.distributed.all_reduce(x)", "torch.distributed.all_reduce"),
        ("from torch import distributed as d\nd.all_reduce(x)", "torch.distributed.all_reduce"),
        ("from torch.distributed import all_reduce as reduce\nreduce(x)", "torch.distributed.all_reduce"),
        ("import torch.distributed as dist\ndc = dist\ndc.all_reduce(x)", "torch.distributed.all_reduce"),
        ("def f():\n    import torch.distributed as d\n    d.all_reduce(x)", "torch.distributed.all_reduce"),
        ("import torch.distributed.distributed_c10d as c10d\nc10d.all_reduce(x)", "torch.distributed.distributed_c10d.all_reduce"),
    ],
)
def test_names_are_written_in_full(text: str, name: str) -> None:
    """However a name is imported, it is one name."""
    assert used(project(test_it=text))[name].is_called


TORCH = {
    "site-packages/torch/__init__.py": "from torch import distributed\nfrom ._tensor import Tensor\nfrom .grads import no_grad\n",
    "site-packages/torch/grads/__init__.py": "from .modes import no_grad\ndef grad(): ...\nclass Tensor: ...\n",
    "site-packages/torch/grads/modes.py": "class no_grad: ...\n",
    "site-packages/torch/_tensor.py": "class Tensor:\n    def item(self): ...\n",
    "site-packages/torch/distributed/__init__.py": "from torch._C import Store\nfrom .distributed_c10d import *\nfrom . import tensor\n",
    "site-packages/torch/distributed/distributed_c10d.py": (
        "from torch._C import Store\n__all__ = ['all_reduce']\ndef all_reduce(): ...\ndef _default(): ...\n"
    ),
    "site-packages/torch/distributed/_shim/__init__.py": "from torch.distributed.tensor import DTensor\n",
    "site-packages/torch/distributed/tensor/__init__.py": "from ._api import DTensor\n",
    "site-packages/torch/distributed/tensor/_api.py": "class DTensor:\n    def from_local(self): ...\n",
}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch.distributed.distributed_c10d as c10d\nc10d.all_reduce()", "torch.distributed.all_reduce"),
        ("from torch.distributed.distributed_c10d import all_reduce\nall_reduce()", "torch.distributed.all_reduce"),
        ("from torch.distributed.distributed_c10d import Store\nStore()", "torch.distributed.Store"),
        ("from torch.distributed.distributed_c10d import _default\n_default()", "torch.distributed.distributed_c10d._default"),
        ("from torch.distributed.tensor._api import DTensor\nDTensor.from_local()", "torch.distributed.tensor.DTensor.from_local"),
        ("from torch.distributed._shim import DTensor\nDTensor()", "torch.distributed.tensor.DTensor"),
        ("from torch._tensor import Tensor\nTensor.item()", "torch.Tensor.item"),
        ("from torch.distributed import all_reduce\nall_reduce()", "torch.distributed.all_reduce"),
        ("import torch\ntorch.rand()", "torch.rand"),
        ("from torch.grads import no_grad\nno_grad()", "torch.no_grad"),
        ("from torch.grads.modes import no_grad\nno_grad()", "torch.no_grad"),
        ("from torch.grads import grad\ngrad()", "torch.grads.grad"),
        ("from torch.grads import Tensor\nTensor()", "torch.grads.Tensor"),
    ],
)
def test_names_from_where_they_are_defined_become_public(text: str, name: str) -> None:
    """A name is called as the outermost package offers it, wherever it is imported from; the same word for another thing stays."""
    assert name in used(project(TORCH, test_it=text))


@pytest.mark.parametrize(
    ("common", "text"),
    [
        ("import torch.distributed as dist\n", "from common import dist\ndist.barrier()"),
        ("from torch.distributed import barrier as wait\n", "import common\ncommon.wait()"),
        ("import torch.distributed as dist\ndc = dist\n", "from common import dc\ndc.barrier()"),
        ("from deeper import *\n", "from common import dist\ndist.barrier()"),
    ],
)
def test_names_that_a_helper_passes_on(common: str, text: str) -> None:
    """What a helper of the suite has imported keeps its own name."""
    found = used(project(common=common, deeper="import torch.distributed as dist\n", test_it=text))
    assert list(found) == ["torch.distributed.barrier"]


def test_relative_imports_are_written_from_their_root() -> None:
    """Names of the tree go by the module under which they are imported."""
    found = used(
        project(**{"suite/__init__.py": "", "suite/tools.py": "", "suite/test_it.py": "from . import tools\ntools.run()\n"}),
        "suite/test_it.py",
    )
    assert list(found) == ["suite.tools.run"]


def test_uses_of_a_class() -> None:
    """A test reaches what its helpers call, what is set up around it, and no more."""
    found = used(
        project(
            test_it="""
            import unittest
            import torch.distributed as dist
            class TestIt(unittest.TestCase):
                def setUp(self):
                    dist.init_process_group()
                def helper(self):
                    self.deeper()
                def deeper(self):
                    dist.barrier()
                def unused(self):
                    dist.monitored_barrier()
                def test_a(self):
                    self.helper()
                def test_b(self):
                    def inner():
                        dist.broadcast(x)
                    inner()
            def test_c():
                dist.scatter(x)
            dist.is_available()
            """
        )
    )
    assert {name.rpartition(".")[2]: (use.lines, use.tests) for name, use in found.items() if use.is_called} == {
        "init_process_group": ((6,), ("TestIt::test_a", "TestIt::test_b")),
        "barrier": ((10,), ("TestIt::test_a",)),
        "monitored_barrier": ((12,), ()),
        "broadcast": ((17,), ("TestIt::test_b",)),
        "scatter": ((20,), ("test_c",)),
        "is_available": ((21,), ()),
    }


def test_uses_through_bases_in_other_files() -> None:
    """Methods are found in the line of inheritance; what stands in another file comes with its path."""
    result = project(
        suite__base="""
            import unittest
            import torch.distributed as dist
            class Base(unittest.TestCase):
                def setUp(self):
                    dist.init_process_group()
                def run_it(self):
                    self.hook()
                def hook(self):
                    dist.barrier()
                def test_shared(self):
                    self.run_it()
            """,
        suite__test_it="""
            import base
            import torch.distributed as dist
            class TestIt(base.Base):
                def setUp(self):
                    super().setUp()
                    dist.new_group()
                def hook(self):
                    dist.all_reduce(x)
            """,
    )
    found = used(result, "suite/test_it.py")
    assert {name.rpartition(".")[2]: (use.lines, use.places, use.tests) for name, use in found.items() if use.is_called} == {
        "init_process_group": ((), (("suite/base.py", 6),), ("TestIt::test_shared",)),
        "new_group": ((7,), (), ("TestIt::test_shared",)),
        "all_reduce": ((9,), (), ("TestIt::test_shared",)),
    }
    assert used(result, "suite/base.py")["torch.distributed.barrier"].tests == ()  # pytest runs none of it there
    assert "suite/base.py" in result.surveys["suite/test_it.py"].reads


def test_the_harness_and_what_is_under_test_are_not_followed() -> None:
    """What a harness does to start ranks, and how the library under test is made, is not what a test exercises."""
    result = project(
        {"site-packages/mypkg/__init__.py": "import os\ndef work():\n    os.fork()\n"},
        lib__harness="import os\nclass MultiProcessTestCase:\n    def setUp(self):\n        self._spawn_processes()\n"
        "    def _spawn_processes(self):\n        os.fork()\n",
        core="import os\ndef inside():\n    os.fork()\n",
        tests__test_it="""
            import core
            import mypkg
            from lib.harness import MultiProcessTestCase
            class TestIt(MultiProcessTestCase):
                def setUp(self):
                    super().setUp()
                def test_a(self):
                    mypkg.work()
                    core.inside()
            """,
    )
    assert [name for name, use in used(result, "tests/test_it.py").items() if use.tests] == ["core.inside", "mypkg.work"]


def test_uses_through_functions() -> None:
    """Functions of the file and helpers of the suite are followed, however they go round in circles."""
    result = project(
        tests__helpers__ranks="import torch.distributed as dist\ndef start(rank):\n    dist.init_process_group()\n    start(rank)\n",
        tests__test_it="""
            import torch.distributed as dist
            from helpers.ranks import start
            class Model:
                def __init__(self):
                    dist.broadcast(x)
                def unused(self):
                    dist.gather(x)
            def run(rank):
                start(rank)
                again(rank)
            def again(rank):
                dist.barrier()
                run(rank)
            def test_a():
                run(0)
            def test_b():
                Model()
            """,
    )
    found = used(result, "tests/test_it.py")
    reached = {name: use.tests for name, use in found.items() if name.startswith("torch.") and use.tests}
    assert reached == {
        "torch.distributed.barrier": ("test_a",),
        "torch.distributed.broadcast": ("test_b",),
        "torch.distributed.init_process_group": ("test_a",),
    }
    assert found["torch.distributed.init_process_group"].places == (("tests/helpers/ranks.py", 3),)


def test_functions_that_are_passed_on() -> None:
    """A function that is given to what starts ranks runs too; a method that is given, and an attribute that is none, alike."""
    result = project(
        test_it="""
            import torch.distributed as dist
            import torch.multiprocessing as mp
            def run(rank):
                dist.barrier()
            def test_spawn():
                mp.spawn(run, nprocs=2)
            def test_nothing():
                run = 3
            class TestIt:
                rank = 0
                def work(self):
                    dist.all_reduce(self.rank)
                def test_method(self):
                    mp.Process(target=self.work, args=(self.rank,))
            """
    )
    found = used(result)
    assert found["torch.distributed.barrier"].tests == ("test_spawn",)
    assert found["torch.distributed.all_reduce"].tests == ("TestIt::test_method",)


def test_uses_through_fixtures() -> None:
    """Fixtures of the class, the file and the conftest files above, those that fixtures ask for, and those that come by themselves."""
    result = project(
        tests__conftest="""
            import pytest
            import torch.distributed as dist
            @pytest.fixture
            def group(world):
                dist.new_group()
            @pytest.fixture(name="world")
            def make_world():
                dist.init_process_group()
            @pytest.fixture(autouse=True)
            def clean():
                dist.destroy_process_group()
            """,
        tests__deep__test_it="""
            import pytest
            import torch.distributed as dist
            @pytest.fixture
            def group(group):
                dist.barrier()
            def test_plain(): ...
            @pytest.mark.usefixtures("world")
            def test_marked(): ...
            class TestIt:
                @pytest.fixture
                def own(self):
                    dist.scatter(x)
                def test_own(self, own): ...
                def test_group(self, group): ...
            """,
    )
    found = used(result, "tests/deep/test_it.py")
    tests = {name.rpartition(".")[2]: set(use.tests) for name, use in found.items() if name.startswith("torch.")}
    everyone = {"test_plain", "test_marked", "TestIt::test_own", "TestIt::test_group"}
    assert tests == {
        "destroy_process_group": everyone,
        "init_process_group": {"test_marked", "TestIt::test_group"},
        "new_group": {"TestIt::test_group"},
        "barrier": {"TestIt::test_group"},
        "scatter": {"TestIt::test_own"},
    }


def test_a_mention_is_no_call() -> None:
    """A name that is only mentioned is a use too; one that is called somewhere counts as called."""
    found = used(
        project(test_it="import torch.distributed as dist\ndef test_a():\n    x(dist.ReduceOp.SUM, dist.barrier)\n    dist.barrier()\n")
    )
    assert {name: (use.is_called, use.tests) for name, use in found.items()} == {
        "torch.distributed.ReduceOp.SUM": (False, ("test_a",)),
        "torch.distributed.barrier": (True, ("test_a",)),
    }


def test_a_new_conftest_may_change_the_answer() -> None:
    """The file says what it was read from, and what was looked for in vain."""
    survey = project(tests__test_it="def test_a(group): ...\n").surveys["tests/test_it.py"]
    assert "conftest" in survey.asked


# Public names


def public(apis: list[str], packages: dict[str, str] | None = None, **files: str) -> dict[str, tuple[str, int, str]]:
    tree = facts(files)
    draft = Draft(tree, frozenset(tree), facts(packages or {}))
    return {each.name: (each.path, each.line, each.kind) for each in public_names(draft, apis)}


def test_public_names_of_a_package() -> None:
    """What it defines and what it takes from its own modules, each once, with the place of its definition."""
    files = {
        "mypkg/__init__.py": "import os\nfrom other import f\nfrom . import sub\nfrom .sub import work, _hidden\nfrom .more import *\n"
        "from mypkg._c import Native\nDistError = os.error\ndef own(): ...\nlog = make()\n",
        "mypkg__sub": "def work(): ...\ndef _hidden(): ...\ndef private_to_sub(): ...\n",
        "mypkg__more": "__all__ = ['One', 'TWO']\nclass One: ...\nTWO = 2\nclass Three: ...\n",
    }
    assert public(["mypkg"], **files) == {
        "mypkg.DistError": ("mypkg/__init__.py", 7, "constant"),
        "mypkg.Native": ("mypkg/__init__.py", 6, "name"),
        "mypkg.One": ("mypkg/more.py", 2, "class"),
        "mypkg.TWO": ("mypkg/more.py", 3, "constant"),
        "mypkg.own": ("mypkg/__init__.py", 8, "function"),
        "mypkg.work": ("mypkg/sub.py", 1, "function"),
    }
    assert list(public(["mypkg.*"], **files)) == ["mypkg.One", "mypkg.TWO", "mypkg.sub.private_to_sub", "mypkg.work"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("__all__ = ['a', 'b']", ["m.a", "m.b"]),
        ("__all__ = ('a',)", ["m.a"]),
        ("__all__ = ['a'] + ['b']", ["m.a", "m.b"]),
        ("__all__ = ['a']\nif x:\n    __all__ += ['b']", ["m.a", "m.b"]),
        ("__all__ = ['a']\n__all__.extend(['b'])", ["m.a", "m.b"]),
        ("__all__ = ['a']\n__all__.append('b')", ["m.a", "m.b"]),
        ("import other\n__all__ = ['a', *other.__all__]", ["m.a", "m.b"]),
        ("from other import *\nimport other\n__all__ = other.__all__ + ['a']", ["m.a", "m.b"]),
        ("__all__ = list(names())", ["m.a", "m.b"]),
        ("__all__ = [name for name in dir()]", ["m.a", "m.b"]),
        ("__all__ = ['gone', 'a']", ["m.a"]),
    ],
)
def test_all(text: str, names: list[str]) -> None:
    """`__all__` counts in whatever way it is put together; one that only a run can tell does not."""
    assert list(public(["m"], m=f"{text}\ndef a(): ...\nclass b: ...\n", other="__all__ = ['b']\ndef b(): ...\n")) == names


def test_names_that_no_test_mentions() -> None:
    """A name counts as mentioned when a file with tests uses it or something within it, from wherever it is imported."""
    files = {
        "mypkg/__init__.py": "from ._core import run, stop, Group\ndef idle(): ...\n",
        "mypkg/_core.py": "def run(): ...\ndef stop(): ...\nclass Group:\n    def make(self): ...\n",
        "tests__test_it": "import mypkg\nfrom mypkg._core import run\ndef test_a():\n    run()\n    mypkg.Group.make()\n",
        "tool": "import mypkg\nmypkg.idle()\n",
    }
    tree = facts(files)
    offered = public_names(Draft(tree, frozenset(tree)), ["mypkg"])
    surveys = analyse(tree.values()).surveys
    assert [each.name for each in unmentioned(offered, mentioned(surveys.values()))] == ["mypkg.idle", "mypkg.stop"]


def test_a_module_is_found_behind_the_tree_and_below_it() -> None:
    """In an installed package, and in a folder such as `src`; one that is nowhere is named."""
    assert "torch.distributed.all_reduce" in public(["torch.distributed"], TORCH)
    assert list(public(["mypkg"], **{"src/mypkg/__init__.py": "def f(): ...\n"})) == ["mypkg.f"]
    assert unknown_modules(Draft({}, frozenset()), ["nowhere", "no.*"]) == ("nowhere", "no.*")


def test_modules_that_import_all_of_each_other() -> None:
    """Circles of `import *` and of `__all__` end."""
    ring = {f"m{n}": "".join(f"from m{other} import *\n" for other in range(8) if other != n) for n in range(8)}
    assert public(["m0"], **ring) == {}
    assert used(project(**ring, test_it="from m0 import nothing\nnothing()\n")).keys() == {"m0.nothing"}
    assert public(["a"], a="import b\n__all__ = b.__all__ + ['f']\ndef f(): ...\n", b="import a\n__all__ = a.__all__\n").keys() == {"a.f"}


WORDS = st.sampled_from(["a", "b", "_c", "self", "dist", "test_x"])


@given(st.lists(st.tuples(st.integers(0, 6), WORDS, WORDS, WORDS), max_size=12))
@settings(max_examples=150, deadline=None)
def test_any_tangle_has_an_answer(statements: list[tuple[int, str, str, str]]) -> None:
    """Whatever imports whatever, each use has a name, its tests are tests of the file, and its lines are lines of it."""
    forms = (
        "import {0} as {1}",
        "from {0} import {1} as {2}",
        "from .{0} import *",
        "{0} = {1}.{2}",
        "def {0}({1}):\n    {2}({0}.{1})",
        "class {0}({1}):\n    def {2}(self):\n        self.{0}()\n        super().{1}()",
        "{0}.{1}({2})",
    )
    text = "\n".join(forms[kind].format(*words) for kind, *words in statements)
    result = project(a=text, b=text, _c=text, test_x=text)
    for path, survey in result.surveys.items():
        lines = result.modules[path].source.lines + 1
        for use in survey.uses:
            assert use.name
            assert not use.name.startswith(".")
            assert set(use.tests) <= {test.id for test in survey.tests}
            assert all(1 <= line <= lines for line in use.lines)
            assert use.lines or use.places
    draft = Draft(result.modules, frozenset(result.modules))
    assert unmentioned(public_names(draft, ["a", "b", "test_x"]), {}) == public_names(draft, ["a", "b", "test_x"])


def test_whoever_asks_for_a_name_has_read_its_file() -> None:
    """Also where the file is known from another question, so that a change of it is a reason to ask again."""
    modules = {"s/a.py": parse_bytes("s/a.py", b"import os\nfirst = 1\n")}
    draft = Draft(modules, frozenset(modules))
    for name, there in (("first", True), ("first", True), ("os", True), ("none", False)):
        with draft.reads.traced() as trace:
            assert draft.names.has("s/a.py", name) is there
        assert trace.read == {"s/a.py"}, name


def test_a_package_of_tests_that_is_called_as_what_it_tests():
    """`tests/ring`, a package in a package, does not stand before the `ring` that is on the path."""
    case = "import unittest\n\n\nclass Base(unittest.TestCase):\n    def {}(self): ...\n"
    files = {
        "ring/__init__.py": "",
        "ring/base.py": case.format("test_shared"),
        "tests/__init__.py": "",
        "tests/ring/__init__.py": "",
        "tests/ring/base.py": case.format("test_other"),
        "tests/ring/test_base.py": "from ring.base import Base\n\n\nclass TestMine(Base):\n    def test_mine(self): ...\n",
    }
    packages = {f"site-packages/{path}": text for path, text in files.items() if path.startswith("ring/")}
    tests = {path: text for path, text in files.items() if path.startswith("tests/")}
    found = analyse(facts(tests).values(), facts(packages))
    assert [test.id for test in found.tests["tests/ring/test_base.py"]] == [
        "Base::test_shared",
        "TestMine::test_mine",
        "TestMine::test_shared",
    ]
    together = analyse(facts(files).values())
    assert [test.id for test in together.tests["tests/ring/test_base.py"]] == [
        "Base::test_shared",
        "TestMine::test_mine",
        "TestMine::test_shared",
    ]
