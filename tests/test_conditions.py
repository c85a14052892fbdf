"""What the conditions ask for under which tests are skipped: through functions of several statements, parameters and names of a test."""

import gc
import textwrap

import pytest

from rankbook.analyse import analyse
from rankbook.sources.parse import parse_bytes

HEAD = """\
import enum, importlib.util, os, pytest, torch
import helpers
from helpers import *
"""


def needs(text: str, helpers: str = "") -> list[list[str]]:
    """Say what each test of a file needs."""
    files = {"test_it.py": HEAD + text, "helpers.py": helpers, "near/inner.py": ""}
    project = analyse(parse_bytes(path, source.encode()) for path, source in files.items())
    return [[need.text for need in test.requirements] for test in project.tests["test_it.py"]]


def skipped(condition: str, helpers: str = "") -> list[str]:
    """Say what a test needs that is skipped under a condition."""
    (found,) = needs(f"@pytest.mark.skipif({condition}, reason='x')\ndef test_x(): ...\n", helpers)
    return found


KINDS = """\
import enum

class Ring: ...
class Tree: ...
class Way(enum.Enum):
    SHORT = "short"
    LONG = "long"
    FAR = LONG
class Level(enum.Enum):
    LOW = enum.auto()
    HIGH = enum.auto()
class Words:
    ONE = "one"
    TWO = "two"
Circle = Ring
"""
EACH = """\
@pytest.mark.parametrize("kind", [{kind}])
def test_x(kind):
    if {condition}:
        pytest.skip("x")
"""


@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        ("Ring", "kind is Ring", ["disabled: x"]),
        ("Ring", "kind is not Circle", []),
        ("Ring", "kind == Tree", []),
        ("helpers.Tree", "kind == helpers.Tree", ["disabled: x"]),
        ("Ring", "kind in [Tree, Ring]", ["disabled: x"]),
        ("Ring", "kind not in (Tree, Way)", ["disabled: x"]),
        ("Ring", "kind in (Tree, unknown)", ["kind not in (Tree, unknown)"]),
        ("Way.LONG", "kind == Way.SHORT", []),
        ("Way.LONG", "kind != Way.SHORT", ["disabled: x"]),
        ("Way.LONG", "kind == Way.LONG", ["disabled: x"]),
        ("Way.LONG", "kind == Way.FAR", ["kind != Way.FAR"]),
        ("Way.LONG", "kind is Level.LOW", ["kind is not Level.LOW"]),
        ("Level.LOW", "kind is Level.HIGH", []),
        ("torch.half", "kind == torch.float16", ["disabled: x"]),
        ("torch.half", "kind in {torch.float32, torch.bfloat16}", []),
        ("Ring", "kind is torch.half", ["kind is not torch.half"]),
        # One of several that always holds is enough; one that never does says nothing.
        ("Ring", "kind is Tree and unknown()", []),
        ("Ring", "kind is Ring and not torch.cuda.is_available()", ["1 GPU"]),
        ("Ring", "kind is Ring and unknown()", ["kind is not Ring or not unknown()"]),
    ],
)
def test_parameters_that_are_classes_members_and_data_types(kind: str, condition: str, expected: list[str]) -> None:
    """What a test is given decides whether it is skipped, as far as two names are known to be one thing, or two."""
    assert needs(EACH.format(kind=kind, condition=condition), KINDS) == [expected]


@pytest.mark.parametrize(
    ("skip", "told"),
    [
        ("pytest.skip(reason=REASON)", "disabled: it is not supported"),
        ("raise unittest.SkipTest('no')", "disabled: no"),
        ("pytest.skip(f'no {kind}')", "disabled: no {kind}"),
        ("pytest.skip('no ' f'{kind}' f' of {len(kind)!r}')", "disabled: no {kind} of {len(kind)}"),
        ("pytest.skip('no ' + kind)", "disabled: 'no ' + kind"),
        ("raise unittest.SkipTest", "disabled"),
    ],
)
def test_the_reason_of_a_skip_under_a_condition(skip: str, told: str) -> None:
    """Where a case is skipped for sure, the skip says why."""
    test = f"@pytest.mark.parametrize('kind', [None])\ndef test_it(kind):\n    if kind is None:\n        {skip}\n"
    assert needs(f"REASON = 'it is not supported'\n{test}") == [[told]]


WHERE = """\
import functools, importlib.util, torch
from packaging import version
from packaging.version import Version

LEAST = Version("2.4")
WRITTEN = version.parse(torch.__version__)
SPARE = torch.cuda.device_count() if torch.cuda.is_available() else 0
HALVES = 2 if torch.cuda.is_available() else torch.cuda.device_count()
FOUR = min(4, torch.cuda.device_count())
SOME = max(1, torch.cuda.device_count())
CAPPED = min(torch.cuda.device_count(), unknown)

def least(count):
    return min(count, torch.cuda.device_count())

def raw_count():
    raw = torch.cuda._device_count_nvml()
    return torch._C._cuda_getDeviceCount() if raw < 0 else raw

def where():
    '''Name the device.'''
    if torch.cuda.is_available():
        return "cuda"
    elif torch.xpu.is_available():
        return "xpu"
    else:
        return "cpu"

device = where()
twice = where()
twice = "cpu"

@functools.lru_cache(maxsize=None)
def takes_halves():
    if device == "cuda":
        return torch.cuda.get_device_capability() >= (8, 0)
    return device == "xpu"

def on(name="cuda"):
    there = where()
    return there in [name]

def new_enough(least="2.6"):
    if importlib.util.find_spec("fbgemm_gpu") is None:
        return False
    return version.parse(torch.__version__) >= version.parse(least)

def has_rings():
    try:
        import rings.fast
        return True
    except ImportError:
        return False

def has_no_rings():
    try:
        import rings
    except (ImportError, ModuleNotFoundError):
        return True
    return False

def has_more():
    try:
        import rings
        return rings.__version__ >= "2.0"
    except ImportError:
        return False

def fails():
    try:
        open("here")
        return True
    except OSError:
        return False

def counts():
    for each in range(2):
        if each:
            return True
    return False

@wrapped
def made():
    if torch.cuda.is_available():
        return True
    return False

def own():
    try:
        import helpers
        return True
    except ImportError:
        return False

def told(device):
    return device == "cuda"

def held(asked):
    return asked()
"""

OWN = """\
import unittest
from torch._functorch import config as flags

def skipIf(condition, reason):
    return unittest.skipIf(condition(), reason)

def any(found):
    return False

class TestA(unittest.TestCase):
    sizes = (2, 4)
    others = (2, 4)

    def setUp(self):
        self.sizes = (0,)

    @skipIf(lambda: torch.cuda.is_available(), "x")
    def test_lambda(self): ...

    @unittest.skipIf(any(n > torch.cuda.device_count() for n in (2, 4)), "x")
    def test_any(self): ...

    def test_sizes(self):
        for n in self.sizes:
            if n > torch.cuda.device_count():
                continue
            run(n)

    def test_others(self):
        for n in self.others:
            if n > torch.cuda.device_count():
                continue
            run(n)
"""


def test_names_of_python_that_are_the_suite_s_own() -> None:
    """A decorator may call what it gets, and `any` may be another; an attribute that is set when a test is run is not that of the class."""
    said = [["no GPU at all"], [], [], ["2 GPUs"]]
    assert needs(OWN) == said


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("device != 'cuda'", ["1 GPU"]),
        ("where() == 'cpu'", ["1 GPU or device xpu"]),
        ("helpers.device == 'xpu'", ["1 GPU or device not xpu"]),
        ("device not in ('cuda', 'xpu')", ["1 GPU or device xpu"]),
        ("device == 'tpu'", []),
        ("device != 'tpu'", ["disabled: x"]),
        ("twice != 'cuda'", ["twice == 'cuda'"]),
        ("device == unknown", ["device != unknown"]),
        ("not takes_halves()", ["1 GPU and capability >= 8.0 or no GPU at all and device xpu"]),
        ("not on()", ["1 GPU"]),
        ("not on('xpu')", ["no GPU at all", "device xpu"]),
        ("not new_enough()", ["library torch >= 2.6", "package fbgemm_gpu"]),
        ("not new_enough('2.9')", ["library torch >= 2.9", "package fbgemm_gpu"]),
        ("not has_rings()", ["package rings.fast"]),
        ("has_rings()", ["not has_rings()"]),
        ("not has_no_rings()", ["package not rings"]),
        ("has_no_rings()", ["package rings"]),
        ("not has_more()", ["package rings >= 2.0"]),
        ("not fails()", ["fails()"]),
        ("not counts()", ["counts()"]),
        ("not made()", ["made()"]),
        ("not own()", ["own()"]),
        ("not told('cuda')", []),
        ("not told(unknown)", ["told(unknown)"]),
        # What is counted, and what it is compared with.
        ("WRITTEN < LEAST", ["library torch >= 2.4"]),
        ("SPARE < 2", ["2 GPUs"]),
        ("HALVES < 2", ["1 GPU"]),
        ("not SPARE", ["1 GPU"]),
        # What is named and not called is true
        ("not torch.cuda.is_available", []),
        ("torch.cuda.is_available", ["disabled: x"]),
        ("not (torch.cuda.is_available and torch.distributed.is_nccl_available())", ["backend nccl"]),
        ("lambda: False", ["disabled: x"]),
        ("not (lambda: torch.cuda.is_available())", []),
        ("flags.is_other", ["not flags.is_other"]),
        ("not held(torch.cuda.is_available)", ["held(torch.cuda.is_available)"]),
        ("FOUR < 2", ["2 GPUs"]),
        ("2 > FOUR", ["2 GPUs"]),
        ("FOUR <= 2", ["3 GPUs"]),
        ("FOUR >= 2", ["at most 1 GPU"]),
        ("FOUR < 8", ["8 GPUs", "disabled: x"]),
        ("FOUR != 4", ["FOUR == 4"]),
        ("SOME < 2", ["2 GPUs"]),
        ("SOME > 2", ["at most 2 GPUs"]),
        ("CAPPED < 2", ["CAPPED >= 2"]),
        ("least(4) < 2", ["2 GPUs"]),
        ("raw_count() < 2", ["2 GPUs"]),
        ("not torch.cuda.device_count()", ["1 GPU"]),
        ("torch.cuda.device_count()", ["no GPU at all"]),
        ("not (torch.cuda.is_available() & torch.distributed.is_nccl_available())", ["1 GPU", "backend nccl"]),
        ("not (torch.cuda.is_available() | torch.xpu.is_available())", ["1 GPU or device xpu"]),
        ("not (FLAGS & 4)", ["FLAGS & 4"]),
        ("torch.cuda.is_available() if os.environ.get('CI') else False", ["environment CI not set or no GPU at all"]),
    ],
)
def test_functions_of_several_statements(condition: str, expected: list[str]) -> None:
    """They are followed where they compute what they return by names, conditions and imports; what only a run can tell stays as written."""
    assert skipped(condition, WHERE) == expected


TRIED = """\
from packaging import version
try:
    import rings
    HAS_FAST = version.parse(rings.__version__) >= version.parse("2.1")
except ImportError:
    HAS_FAST = False
try:
    import rings
    HAS_ODD = rings.odd()
except ImportError:
    HAS_ODD = False
try:
    import rings
    HAS_ALL = True
except ImportError:
    HAS_ALL = False
HAS_ALL = False
try:
    import rings
    if version.parse(rings.__version__) < version.parse("2.2"):
        raise ImportError("too old")
    HAS_NEW = True
except ImportError:
    HAS_NEW = False
HAS_PART = False
try:
    import rings
    found = version.Version(rings.__version__)
    if found < version.Version("2.3"):
        raise ImportError
    from rings.fast import ring
    HAS_PART = True
except Exception:
    pass
try:
    import rings
    if torch.cuda.is_available():
        if rings.odd():
            raise RuntimeError
    for each in (1, 2):
        if each > rings.most:
            raise ImportError
except ImportError:
    NO_LOOP = True
else:
    NO_LOOP = False
try:
    import rings
    if rings.odd():
        raise RuntimeError
except ImportError:
    NO_ODD = True
else:
    NO_ODD = False
try:
    import rings as hoops
    if rings.odd():
        raise ImportError
except ImportError:
    hoops = None
try:
    from near.inner import ring
    HAS_NEAR = True
except ImportError:
    HAS_NEAR = False
try:
    from near import inner
    HAS_INNER = True
except ImportError:
    HAS_INNER = False
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("not HAS_FAST", ["package rings >= 2.1"]),
        ("HAS_FAST", ["package not rings or rings < 2.1"]),
        ("not HAS_ODD", ["HAS_ODD"]),
        ("not HAS_ALL", ["HAS_ALL"]),
        # What is raised by hand counts as well; what cannot be read of it leaves the flag as it is.
        ("not HAS_NEW", ["package rings >= 2.2"]),
        ("HAS_NEW", ["package not rings or rings < 2.2"]),
        ("not HAS_PART", ["package rings >= 2.3", "package rings.fast"]),
        ("HAS_PART", ["not HAS_PART"]),
        ("NO_LOOP", ["not NO_LOOP"]),
        ("NO_ODD", ["package rings"]),
        ("helpers.hoops is None", ["helpers.hoops is not None"]),
        # A part of a folder of the project's own is no package, though the folder has no `__init__.py`.
        ("not HAS_NEAR", ["HAS_NEAR"]),
        ("not HAS_INNER", ["HAS_INNER"]),
    ],
)
def test_flags_that_are_set_where_an_import_works(condition: str, expected: list[str]) -> None:
    """Such a flag asks for the package, and for what it is set to."""
    assert skipped(condition, TRIED) == expected


TOO_OLD = """\
try:
    import rings
    if rings.__version__ < "2.2":
        raise ImportError("too old")
except ImportError:
    {skip}
"""


@pytest.mark.parametrize(
    "text",
    [
        TOO_OLD.format(skip="pytest.skip('x', allow_module_level=True)") + "def test_x(): ...\n",
        TOO_OLD.format(skip="pytestmark = pytest.mark.skip('x')") + "def test_x(): ...\n",
        "def test_x():\n" + textwrap.indent(TOO_OLD.format(skip="pytest.skip('x')"), "    "),
    ],
)
def test_what_is_raised_by_hand_where_an_import_is_tried(text: str) -> None:
    """A version that is refused by an `ImportError` is needed where that skips."""
    assert needs(text) == [["package rings >= 2.2"]]


INSIDE = """\
SIZES = (4, 2)
device = "cuda" if torch.cuda.is_available() else "cpu"
count = 8
def needs_more(count):
    least = count
    if torch.cuda.device_count() < least:
        pytest.skip("x")

def test_x({parameters}):
    {statements}
"""


@pytest.mark.parametrize(
    ("parameters", "statements", "expected"),
    [
        ("", "count = torch.cuda.device_count(); few = count\n    if few < 2: pytest.skip('x')", ["2 GPUs"]),
        ("", "if torch.cuda.device_count() < count: pytest.skip('x')", ["8 GPUs"]),
        (
            "",
            "count = 2\n    count = 4\n    if torch.cuda.device_count() < count: pytest.skip('x')",
            ["torch.cuda.device_count() >= count"],
        ),
        (
            "",
            "for count in (2, 4):\n        if torch.cuda.device_count() < count: pytest.skip('x')",
            ["torch.cuda.device_count() >= count"],
        ),
        ("", "def inner():\n        count = 3\n    if torch.cuda.device_count() < count: pytest.skip('x')", ["8 GPUs"]),
        ("", "two: int = 2\n    needs_more(two)", ["2 GPUs"]),
        ("", "if torch.__version__ < '2.0': pytest.skip('x')", ["library torch >= 2.0"]),
        ("", "if torch.__version__ < '2.0':\n        pytest.fail('x')", []),
        ("", "if torch.cuda.get_device_capability() < (8, 0):\n        raise AssertionError('x')", ["1 GPU"]),
        ("", "if not torch.cuda.is_available: pytest.skip('x')", []),
        ("", "if torch.cuda.is_available():\n        run(1)", ["1 GPU"]),
        ("", "size = min(4, torch.cuda.device_count())\n    if size < 2: pytest.skip('x')", ["2 GPUs"]),
        ("count=4", "size = min(count, torch.cuda.device_count())\n    if 1 >= size: pytest.skip('x')", ["2 GPUs"]),
        ("count", "size = min(count, torch.cuda.device_count())\n    if size < 2: pytest.skip('x')", ["size >= 2"]),
        ("", "for size in (4, 2):\n        if size > torch.cuda.device_count():\n            continue\n        run(size)", ["2 GPUs"]),
        ("", "for size in SIZES:\n        if torch.cuda.device_count() >= size:\n            run(size)", ["2 GPUs"]),
        ("", "for size in (4, 2):\n        torch.manual_seed(0)\n        if size > torch.cuda.device_count(): continue", []),
        ("", "for size in (4, 2):\n        if size > torch.cuda.device_count(): continue\n    run(1)", []),
        ("", "for size in (4, 2):\n        if size > torch.cuda.device_count(): break\n        run(size)", []),
        ("", "for size in found():\n        if size > torch.cuda.device_count(): continue\n        run(size)", []),
        ("", "for size in (2, 4):\n        size = size // 8\n        if size > torch.cuda.device_count(): continue\n        run(size)", []),
        ("", "for least in ('1.0', '2.0'):\n        if torch.__version__ < least: pytest.fail('x')", []),
        ("", "for size in (0.0, 2):\n        if size > torch.cuda.device_count(): continue\n        run(size)", []),
        ("", "if torch.cuda.is_available():\n        trainer.exit(run(1))", ["1 GPU"]),
        ("", "for size in (0, 2):\n        if size > torch.cuda.device_count(): continue\n        run(size)", []),
        ("", "if any(size in found() for size in SIZES): pytest.skip('x')", ["not any((size in found() for size in SIZES))"]),
        ("", "if all(torch.cuda.device_count() < size for size in (2, 4)): pytest.skip('x')", ["2 GPUs"]),
        ("", "if any(torch.cuda.device_count() < size for size in SIZES): pytest.skip('x')", ["4 GPUs"]),
        ("count=4", "needs_more(count)", ["4 GPUs"]),
        ("count=4", "count = 2\n    needs_more(count)", ["needs_more(count)"]),
        ("count", "if torch.cuda.device_count() < count: pytest.skip('x')", ["torch.cuda.device_count() >= count"]),
        ("device", "if device == 'cpu': pytest.skip('x')", ["device != 'cpu'"]),
        ("", "if device == 'cpu': pytest.skip('x')", ["1 GPU"]),
    ],
)
def test_names_and_parameters_of_a_test(parameters: str, statements: str, expected: list[str]) -> None:
    """What a test sets once, or has by default, is that; what it is given is not what its module calls by the same name."""
    (found,) = needs(INSIDE.format(parameters=parameters, statements=statements))
    assert found == expected


def test_the_line_of_the_mark_of_a_single_case() -> None:
    """What a case needs is told at its mark, however far that is from its test; at the test where the mark stands elsewhere."""
    text = (
        "import pytest\nspare = pytest.mark.gpu\nlisted = [pytest.param(4, marks=spare)]\n@pytest.mark.parametrize('n', [\n    1,\n"
        "    pytest.param(2, marks=[\n        pytest.mark.gpu,\n    ]),\n    *listed,\n])\ndef test_x(n): ...\n"
    )
    tests = analyse([parse_bytes("test_it.py", text.encode())]).tests["test_it.py"]
    assert [[(need.text, need.line) for need in test.requirements] for test in tests] == [[], [("1 GPU", 7)], [("1 GPU", 11)]]


def test_the_line_of_a_mark_that_several_cases_have() -> None:
    """Where one mark stands on several lines, what it asks for is told at the test: which of them is whose is not known."""
    case = "    pytest.param({}, marks=pytest.mark.gpu),\n"
    text = f"import pytest\n@pytest.mark.parametrize('n', [\n{case.format(2)}{case.format(3)}])\ndef test_x(n): ...\n"
    tests = analyse([parse_bytes("test_it.py", text.encode())]).tests["test_it.py"]
    assert [[(need.text, need.line) for need in test.requirements] for test in tests] == [[("1 GPU", 6)], [("1 GPU", 6)]]


def test_a_function_that_would_fold_into_an_endless_expression_stays_a_name() -> None:
    """A few lines may say an expression that no memory holds: each line here doubles it."""
    helpers = "def is_there(x):\n" + 26 * "    x = x + x\n" + "    return x\n"
    assert skipped("is_there(1)", helpers) == ["not is_there(1)"]


def test_a_function_with_more_ways_than_can_be_written_down_stays_a_name() -> None:
    """Each `if` doubles the ways through a function, whether or not one of them returns."""
    helpers = "def is_there(x):\n" + "".join(f"    if x > {number}: x = {number}\n" for number in range(40))
    assert skipped("is_there(1)", helpers) == ["not is_there(1)"]


def test_alternatives_of_alternatives_are_taken_apart_only_as_far_as_they_stay_few() -> None:
    """Each pair of alternatives that must hold together doubles what they come to."""
    pairs = " and ".join(f"(os.environ.get('A{number}') or os.environ.get('B{number}'))" for number in range(40))
    (found,) = skipped(f"not (({pairs}) or os.environ.get('Z'))")
    assert found.startswith("environment A0 set or environment B0 set and ")


@pytest.mark.parametrize(
    ("condition", "helpers"),
    [
        ("has(1)", "def has(x):\n" + "".join(f"    if x == {number}: x = 1\n" for number in range(9))),
        (" | ".join(f"A{number}" for number in range(400)), ""),
        (" or ".join(f"torch.odd({number})" for number in range(500)), ""),
        ("has()", "def has():\n    return " + " or ".join(f"torch.odd({number})" for number in range(500))),
    ],
    ids=["ifs", "bits", "calls", "calls in a function"],
)
def test_a_condition_of_more_parts_than_are_read_stays_as_it_is(condition: str, helpers: str) -> None:
    """A condition without end costs the answer, not the page."""
    (found,) = skipped(condition, helpers)
    assert found.startswith("not ")


def test_what_is_read_of_conditions_holds_nothing_in_circles():
    """Conditions are read with the collector off: what each of them left behind would stay until all are read."""
    test = "@pytest.mark.skipif(here({0}) or x == -{0} or k{0} == 'a', reason='r')\ndef test_{0}(): pass\n"

    def left_by(count: int) -> int:
        source = "import pytest\nx = 3\n" + "".join(test.format(number) for number in range(count))
        gc.collect()
        gc.disable()
        try:
            project = analyse([parse_bytes("test_a.py", source.encode())])
            assert len(project.tests["test_a.py"]) == count
            return gc.collect()
        finally:
            gc.enable()

    left_by(3)
    assert left_by(203) < left_by(3) + 200


AROUND = """\
import functools

def {name}(n):
    def wrap(f):
        @functools.wraps(f)
        def run(*args, **kwargs):
{body}
        return run
    return wrap
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("            if torch.cuda.device_count() >= n:\n                f(*args, **kwargs)\n", ["8 GPUs"]),
        ("            if torch.cuda.device_count() >= n:\n                return f(*args, **kwargs)\n", ["8 GPUs"]),
        ("            if torch.cuda.device_count() < n:\n                return\n            f(*args, **kwargs)\n", ["8 GPUs"]),
        ("            if torch.cuda.device_count() < n:\n                print('few')\n            return f(*args, **kwargs)\n", []),
    ],
)
def test_a_decorator_that_does_not_call_the_test(body, expected):
    """Without the GPUs that it asks for nothing is tested, though pytest would say that the test has passed."""
    assert needs(AROUND.format(name="enough", body=body) + "@enough(8)\ndef test_x(): ...\n") == [expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if torch.cuda.device_count() >= 8:\n        assert False", ["8 GPUs"]),
        ("n = torch.cuda.device_count()\n    if n >= 8:\n        assert False\n    else:\n        print('few')", ["8 GPUs"]),
        ("if torch.cuda.device_count() >= 8:\n        assert False\n    else:\n        assert True", []),
        ("if torch.cuda.device_count() >= 8:\n        assert False\n    assert True", []),
        ("x = work()\n    if torch.cuda.device_count() >= 8:\n        assert x", []),
        ("if not torch.cuda.is_available():\n        assert True", []),
    ],
)
def test_a_test_all_of_which_is_under_a_condition(body, expected):
    """It needs what the condition asks of the machine, as where it returns otherwise; not what a machine must lack."""
    assert needs(f"def test_x():\n    {body}\n") == [expected]


def test_a_skip_inside_of_another_decorator():
    """Of what is put around a test one after the other each counts, and what is not known hides nothing."""
    helpers = """\
import pytest, torch

def inner(f):
    return pytest.mark.distributed(pytest.mark.skipif(torch.cuda.device_count() < 2, reason="x")(f))

def outer(f):
    return pytest.mark.skipif(torch.cuda.device_count() < 2, reason="x")(pytest.mark.distributed(f))

def selected(*, num_gpus):
    selector = getattr(pytest.mark, f"distributed_{num_gpus}_gpus")
    skip = pytest.mark.skipif(torch.cuda.device_count() < num_gpus, reason="x")
    def wrapper(f):
        return selector(skip(f))
    return wrapper
"""
    tests = "@inner\ndef test_a(): ...\n@outer\ndef test_b(): ...\n@selected(num_gpus=2)\ndef test_c(): ...\n"
    assert needs(tests, helpers) == [["2 GPUs", "mark distributed"], ["2 GPUs", "mark distributed"], ["2 GPUs"]]


def test_a_world_size_that_is_set_under_a_condition():
    """Which of several it is only a run can tell; none of them is what the test needs."""
    sizes = "    if torch.cuda.device_count() >= 4:\n        world_size = [1, 2, 4]\n    else:\n        world_size = [1]\n"
    assert needs(f"class TestA:\n{sizes}    def test(self): ...\n") == [["world size as its class decides"]]


def test_a_fixture_that_skips_by_its_parameter():
    """Each test needs what the fixture asks for its own parameter; what a value is made of by a call stays as it is written."""
    head = "@pytest.fixture(params=[{params}])\ndef ranks(request):\n"
    fixture = head + "    if torch.cuda.device_count() < request.param:\n        pytest.skip('x')\n"
    tests = "def test_x(ranks): ...\ndef test_y(ranks): ...\n"
    one, two, four = ["1 GPU"], ["2 GPUs"], ["4 GPUs"]
    assert needs(fixture.format(params="1, 2, 4") + tests) == [one, two, four] * 2
    assert needs(fixture.format(params="f()") + tests) == [["torch.cuda.device_count() >= request.param"]] * 2


def test_what_a_fixture_hands_to_a_test():
    """A condition on what it returns is one on that expression, through other fixtures too; a parameter of its name stands in its place."""
    fixtures = """\
@pytest.fixture(scope="session")
def gpus():
    return torch.cuda.device_count()
@pytest.fixture
def enough(gpus):
    return gpus >= 4
@pytest.fixture
def two(gpus):
    if gpus < 2:
        pytest.skip("few")
@pytest.fixture
def device():
    return "cuda" if torch.cuda.is_available() else "cpu"
@pytest.fixture
def asked():
    yield torch.cuda.device_count()
"""
    skip = "        pytest.skip('x')\n"
    tests = (
        f"def test_a(gpus):\n    if gpus < 8:\n{skip}",
        f"def test_b(enough):\n    if not enough:\n{skip}",
        "def test_c(two): ...\n",
        f"def test_d(device):\n    if device == 'cpu':\n{skip}",
        f"def test_e(asked):\n    if asked < 2:\n{skip}",
        f"@pytest.mark.parametrize('gpus', [3])\ndef test_f(gpus):\n    if torch.cuda.device_count() < gpus:\n{skip}",
        f"@pytest.mark.parametrize('gpus', [3], indirect=True)\ndef test_g(gpus):\n    if gpus < 2:\n{skip}",
    )
    found = [["8 GPUs"], ["4 GPUs"], ["2 GPUs"], ["1 GPU"], ["asked >= 2"], ["3 GPUs"], ["gpus >= 2"]]
    assert needs(fixtures + "".join(tests)) == found


@pytest.mark.parametrize("name", ["marks", "needs_four", "skips"])
def test_a_decorator_that_applies_the_marks_of_a_list(name):
    """The list may stand at the top of the module, under whatever name; one that is made by a call is told as it is written."""
    decorator = f"def some(fn):\n    for mark in {name}:\n        fn = mark(fn)\n    return fn\n@some\ndef test_a(): ...\n"
    mark = "pytest.mark.skipif(torch.cuda.device_count() < 4, reason='few')"
    assert needs(f"{name} = [{mark}]\n{decorator}") == [["4 GPUs"]]
    assert needs(f"{name} = [{mark}] + [pytest.mark.skipif(sys.platform == 'win32', reason='x')]\n{decorator}") == [
        ["4 GPUs", "platform not Windows"]
    ]
    assert needs(f"{name} = found()\n{decorator}") == [["some"]]


def test_a_skip_of_absl():
    """It is that of unittest under another name."""
    assert needs("from absl.testing import absltest\n@absltest.skip('not yet')\ndef test_a(): ...\n") == [["disabled: not yet"]]
