"""What the book says of a test, of many ways to skip one, is what pytest does with it on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankbook.analyse import analyse
from rankbook.machine import facts
from rankbook.sources.parse import parse_bytes
from rankbook.verdict import verdict

HEAD = """\
import enum, functools, importlib.util, os, sys, unittest
import pytest, torch
import helpers
from helpers import *
"""
REPORTS = """\
import json
def pytest_runtest_logreport(report):
    if report.outcome == "skipped" or report.when == "call" or report.failed:
        with open("outcomes", "a") as file:
            print(json.dumps([report.nodeid, report.outcome]), file=file)
"""


def body(*lines: str, parameters: str = "", before: str = "") -> str:
    """Write a test."""
    return f"{before}def test_x({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


def when(condition: str, helpers: str = "") -> tuple[str, str]:
    """Write a test that is skipped under a condition, and what it rests on."""
    return f"@pytest.mark.skipif({condition}, reason='x')\ndef test_x(): pass\n", helpers


def tried(*inside: str, caught: str = "ImportError", returns: str = "False") -> str:
    """Write a function that tells whether something is there."""
    return "def has():\n    try:\n" + "".join(f"        {line}\n" for line in inside) + f"    except {caught}:\n        return {returns}\n"


def in_class(*lines: str, parameters: str = "", held: str = "ok = False", before: str = "") -> str:
    """Write a test of a class."""
    inner = "".join(f"        {line}\n" for line in lines).replace("skip()", "self.skipTest('x')")
    return f"{before}class TestX(unittest.TestCase):\n    {held}\n    def test_x(self{parameters}):\n{inner}"


def number(*lines: str) -> str:
    """Write a function that gives a number."""
    return "import torch\ndef n():\n" + "".join(f"    {line}\n" for line in lines)


def kinds(helpers: str, kind: str = "helpers.K1", condition: str = "k is not helpers.K2", inside: str = "pass") -> tuple[str, str]:
    """Write a test that is given a class, and is skipped when it is not another."""
    return f"@pytest.mark.parametrize('k', [{kind}])\n" + body(inside, f"if {condition}: skip()", parameters="k"), helpers


ONE = ("c = 1", "if torch.cuda.is_available():", "    c = torch.cuda.device_count()", "return c")
WAY = "import enum\nclass Way(enum.Enum):\n"
LIST = "for t in ('a', 'b'): found.append(t)"
SKIPPED = "pytest.mark.skipif(True, reason='x')"
IDIOMS: dict[str, tuple[str, str] | str] = {
    # Names of a test that are set once, and changed.
    "a list that is appended to": body("found = []", LIST, "if found == []: skip()"),
    "a list that is appended to, and asked for": body("found = []", LIST, "if not found: skip()"),
    "a list that is extended": body("found = []", "found.extend('ab')", "if found == []: skip()"),
    "a list with an entry that is set": body("found = [None]", "def run(): found[0] = 1", "run()", "if found == [None]: skip()"),
    "a list that is added to": body("found = []", "found += [1]", "if found == []: skip()"),
    "a list by its maker": body("found = list()", LIST, "if found == []: skip()"),
    "a list of a helper": (body("found = start()", LIST, "if found == []: skip()"), "def start():\n    return []\n"),
    "a list of two": (
        body("found = start(1)", LIST, "if found == []: skip()"),
        "def start(n):\n    if n:\n        return []\n    return []\n",
    ),
    "a list under two names": body("found = []", "other = found", "found.append(1)", "if other == []: skip()"),
    "a set that is added to": body("seen = {'b'}", "seen.add('a')", "if 'a' not in seen: skip()"),
    "a dictionary that is filled": body("seen = {}", "seen['a'] = 1", "if 'a' not in seen: skip()"),
    "a list in a tuple": body("found = ([],)", "found[0].append(1)", "if found == ([],): skip()"),
    "a list of the module": body("FOUND.append(1)", "if FOUND == []: skip()", before="FOUND = []\n"),
    "a list of another module": (body("FOUND.append(1)", "if FOUND == []: skip()"), "FOUND = []\n"),
    "a list of another module by its name": (body("helpers.FOUND.append(1)", "if helpers.FOUND == []: skip()"), "FOUND = []\n"),
    "a set of another module": (body("helpers.FOUND.discard(2)", "if 2 in helpers.FOUND: skip()"), "FOUND = {2}\n"),
    "a set of another module that is not changed": (body("if 2 in helpers.FOUND: skip()"), "FOUND = {2}\n"),
    "a set of the class": in_class("self.found.discard(2)", "if 2 in self.found: skip()", held="found = {2}"),
    "a set of the module": body("if 2 in FOUND: skip()", before="FOUND = {2}\nFOUND.discard(2)\n"),
    "a list that is given": body("n.append(1)", "if n == []: skip()", parameters="n", before="@pytest.mark.parametrize('n', [[]])\n"),
    "nothing changes": body("found = (1, 2)", "if 1 in found: skip()"),
    "a tuple is no list": body("found = (1, 2)", "if found != [1, 2]: skip()", "assert 1"),
    "a tuple is not that list": body("found = (1, 2)", "if found == [1, 2]: skip()"),
    # Other ways to bind a name.
    "nonlocal": body("ok = False", "def probe():", "    nonlocal ok", "    ok = True", "probe()", "if not ok: skip()"),
    "nonlocal in a class": body(
        "ok = False", "class Hook:", "    def __call__(self):", "        nonlocal ok", "        ok = True", "Hook()()", "if not ok: skip()"
    ),
    "global": body("global ok", "ok = True", "if not ok: skip()", before="ok = False\n"),
    "global elsewhere": body("make()", "if not ok: skip()", before="ok = False\ndef make():\n    global ok\n    ok = True\n"),
    "a handler": body("err = 1", "try: raise OSError", "except OSError as err: pass", "if 'err' in locals() and err == 1: skip()"),
    "an import": body("got = None", "import os as got", "if got is None: skip()"),
    "an import of a name": body("got = None", "from os import path as got", "if got is None: skip()"),
    "an import that works": body("json = None", "try: import json", "except ImportError: pass", "if json is None: skip()"),
    "an import that fails": body("got = None", "try: import not_there as got", "except ImportError: pass", "if got is None: skip()"),
    "a pattern": body("v = 0", "match {'a': 1}:", "    case {'a': v}: pass", "if v == 0: skip()"),
    "a context": body("v = None", "with open(os.devnull) as v: pass", "if v is None: skip()"),
    "a loop": body("v = 0", "for v in (1, 2): pass", "if v == 0: skip()"),
    "a star": body("v = 0", "a, *v = 1, 2", "if v == 0: skip()"),
    "an assignment inside": body("v = 0", "if (v := 3): pass", "if v == 0: skip()"),
    "a definition": body("v = None", "def v(): pass", "if v is None: skip()"),
    "a class": body("v = None", "class v: pass", "if v is None: skip()"),
    "del": body("v = 0", "del v", "try: v", "except NameError: v = 1", "if v == 0: skip()"),
    "a loop of the module": body("if V == 0: skip()", before="V = 0\nfor V in (1, 2): pass\n"),
    "a context of the module": body("if V is None: skip()", before="V = None\nwith open(os.devnull) as V: pass\n"),
    "an assignment inside one of the module": body("if V == 0: skip()", before="V = 0\nprint(V := 1)\n"),
    "a handler of the module": body(
        "if 'E' in globals() and E == 1: skip()", before="E = 1\ntry:\n    raise OSError\nexcept OSError as E:\n    pass\n"
    ),
    "an attribute of another module": body("helpers.FLAG = True", "if not helpers.FLAG: skip()"),
    "a name that hides another": (body("from json import dumps as FLAG", "if not FLAG: skip()"), "FLAG = False\n"),
    "a function that hides another": (body("def need(): pass", "need()"), "def need():\n    pytest.skip('x')\nimport pytest\n"),
    "a class that hides another": body("class ok: pass", "if not ok: skip()", before="ok = False\n"),
    "what is set later": body("while len(seen) < 2:", "    n = len(seen)", "    seen.append(n)", "if n == 0: skip()", before="seen = []\n"),
    "a closure": body("ok = True", "def run():", "    if not ok: skip()", "run()", before="ok = False\n"),
    # Attributes of a class.
    "an attribute that is set before": in_class("if not self.ok: skip()", held="ok = False\n    def setUp(self): self.ok = True"),
    "an attribute that is set twice": in_class("if not self.ok: skip()", held="ok = False\n    if sys: ok = True"),
    "an attribute that stays": in_class("if not self.ok: skip()"),
    "a method with an argument": in_class("if not self.has(2): skip()", held="def has(self, n): return n == 2", before="n = 1\n"),
    "a method that is not called": in_class("if not self.has: skip()", held="def has(self): return False"),
    # Imports that may fail.
    "a name that a package lacks": when("not has()", tried("from json import newthing", "return False", returns="True")),
    "a module that a package lacks": when("not has()", tried("import json.newthing", "return False", returns="True")),
    "a package that is missing": when("not has()", tried("import not_there", "return True")),
    "a package that must be missing": when("has()", tried("import json", "return True")),
    "a name that a package lacks, wanted": when("not has()", tried("from json import newthing", "return True")),
    "a check that fails": when("has()", tried("import json", "x = json.check()", "return True", caught="Exception")),
    "an attribute that fails": when("has()", tried("import json", "return json.check", caught="Exception")),
    "a check that fails under a bare except": when("has()", tried("import json", "return json.check()", caught="")),
    "a check that fails, of two errors": when("has()", tried("import json", "return json.check()", caught="(ImportError, AttributeError)")),
    "a check that works, of two errors": when("not has()", tried("import json", "return True", caught="(ImportError, AttributeError)")),
    "a check that imports": when("has()", "def load(x): import not_there\n" + tried("import json", "return load(json)")),
    "a definition where a name is missing": (
        "try:\n    from json import newthing\nexcept ImportError:\n    def test_old(): pass\ndef test_x(): pass\n",
        "",
    ),
    "a flag where a name is missing": when(
        "HAS", "try:\n    from json import newthing\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
    ),
    "a flag that says what is missing": when(
        "NO", "try:\n    import not_there\nexcept ImportError:\n    NO = True\nelse:\n    NO = False\n"
    ),
    "a flag that says what is there": when(
        "not NO", "try:\n    import json\nexcept ImportError:\n    NO = True\nelse:\n    NO = False\n"
    ),
    "a flag that is imported too": when(
        "not HAS", "HAS = False\ntry:\n    from json import dumps as HAS\nexcept ImportError:\n    HAS = False\n"
    ),
    "a flag where nothing fails": when("not HAS", "try:\n    import json\nexcept ImportError:\n    HAS = False\nelse:\n    HAS = True\n"),
    "a flag that is set before": when("HAS", "HAS = True\ntry:\n    import not_there\nexcept ImportError:\n    HAS = False\n"),
    "a flag that is set after": when("not HAS", "try:\n    import not_there\nexcept ImportError:\n    HAS = False\nHAS = True\n"),
    "a flag that is set where all is there": when(
        "HAS", "HAS = False\ntry:\n    import json\n    import not_there\n    HAS = True\nexcept ImportError:\n    pass\n"
    ),
    "a flag where something else fails": when(
        "HAS", "try:\n    import json\n    X = json.dumps(json)\n    HAS = True\nexcept (ImportError, TypeError):\n    HAS = False\n"
    ),
    "a flag where all errors are caught": when(
        "HAS", "try:\n    import json\n    X = json.dumps(json)\n    HAS = True\nexcept:\n    HAS = False\n"
    ),
    "a flag where a call imports": when(
        "HAS", "def load(): import not_there\ntry:\n    import json\n    X = load()\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
    ),
    "a flag where another import is missing": when(
        "HAS", "try:\n    import json\n    import not_there\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
    ),
    "a flag after something that fails": when(
        "HAS", "try:\n    import json\n    json.check()\n    HAS = True\nexcept Exception:\n    HAS = False\n"
    ),
    "a name that is None after something that fails": when(
        "helpers.json is not None", "try:\n    import json\n    json.check()\nexcept Exception:\n    json = None\n"
    ),
    "a name that is None for another": when(
        "helpers.json is not None", "try:\n    import json\n    import not_there\nexcept ImportError:\n    json = None\n"
    ),
    "a definition after something that fails": (
        "try:\n    import json\n    json.check()\nexcept Exception:\n    def test_old(): pass\ndef test_x(): pass\n",
        "",
    ),
    "a flag under a variable": when(
        "not HAS", "import os\nHAS = False\nif os.environ.get('IDIOM_NO'):\n    import json\n    HAS = True\n"
    ),
    "a name that is None": (
        "try:\n    from json import newthing\nexcept ImportError:\n    newthing = None\n" + body("if newthing is not None: skip()"),
        "",
    ),
    "an import that hides a function": when(
        "not has()", "def ok(): return False\ndef has():\n    from json import dumps as ok\n    return ok\n"
    ),
    "an import that hides a module": when(
        "not has()", "import torch\nlast = 1\ndef has():\n    import os as torch\n    n = 1\n    return torch.path is not None\n"
    ),
    "an import that hides a call": when(
        "not has()",
        "def ok(): return False\ndef has():\n    from torch.distributed import is_available as ok\n    x = ok()\n    return x\n",
    ),
    # Fixtures.
    "a name of a fixture": body(
        "pass",
        parameters="n",
        before="ok = False\n@pytest.fixture\ndef n():\n    ok = len('a')\n    if not ok: skip()\n",
    ),
    "a parameter of a fixture": body(
        "pass",
        parameters="n",
        before="ok = False\n@pytest.fixture\ndef ok_(): return True\n@pytest.fixture(name='ok')\ndef _ok(): return True\n"
        "@pytest.fixture\ndef n(ok):\n    if not ok: skip()\n",
    ),
    "a case that a fixture changes": body(
        "if n == 0: skip()",
        parameters="n",
        before="@pytest.fixture\ndef n(request): return request.param + 1\n@pytest.mark.parametrize('n', [0, 4], indirect=True)\n",
    ),
    "a parameter that its fixture changes": body(
        "if n == 0: skip()",
        parameters="n",
        before="@pytest.fixture(params=[0, 4])\ndef n(request): return request.param + 1\n",
    ),
    "a parameter of a fixture that is given": body(
        "if n == 0: skip()",
        parameters="n",
        before="@pytest.fixture(params=[0, 4])\ndef n(request): return request.param\n",
    ),
    # What is put around a test, or a function.
    "a decorator that gives": body(
        "if n == 0: skip()",
        parameters="n=0",
        before="def with_n(f):\n    def test_x():\n        return f(n=2)\n    return test_x\n@with_n\n",
    ),
    "a decorator of a class that gives": in_class(
        "if n == 0: skip()",
        parameters=", n=0",
        before="def with_n(c):\n    f = c.test_x\n    c.test_x = lambda self: f(self, n=2)\n    return c\n@with_n\n",
    ),
    "a default": body("if n == 0: skip()", parameters="n=0"),
    "a default of a test with a mark": body("if n == 0: skip()", parameters="n=0", before="@pytest.mark.filterwarnings('ignore')\n"),
    "a function that is replaced": when("not has()", "def not_it(f): return lambda: True\n@not_it\ndef has(): return False\n"),
    "a function that is replaced by a cache": when(
        "not has()",
        "class mylib:\n    def cache(f): return lambda: True\n@mylib.cache\ndef has():\n    x = 1\n    return False\n",
    ),
    "a function that is cached": when("not has()", "import functools\n@functools.cache\ndef has():\n    x = False\n    return x\n"),
    "a generator": when("not has()", "def has():\n    x = yield\n    return False\n"),
    "a generator of one line": when("not has()", "def has():\n    return (yield) and False\n"),
    "an async function": when("not has()", "async def has():\n    return False\n"),
    "an async function of several statements": when("not has()", "async def has():\n    x = False\n    return x\n"),
    "a function that is set again": when("not has()", "def has(): return False\nhas = lambda: True\n"),
    "a function that is defined twice": when(
        "not has()", "if 1:\n    def has(): return True\nelse:\n    def has(): return False\n"
    ),
    "a function that is imported too": when(
        "not has()", "try:\n    from torch.distributed import is_available as has\nexcept ImportError:\n    def has(): return False\n"
    ),
    "a constant that is imported too": when("not HAS", "HAS = False\nfrom json import dumps as HAS\n"),
    "a function of the project by a known name": when(
        "not is_peft_available()", "import os\ndef is_peft_available():\n    return os.environ.get('IDIOM_SET') == 'yes'\n"
    ),
    # Arguments of a call.
    "keywords by name": when("not has(b=3)", "def has(a=1, b=2): return b == 3\n"),
    "two stars": when("not has(**OPT)", "OPT = {'b': 3}\ndef has(a=1, b=2): return b == 3\n"),
    "a star of a call": when("not has(*ARGS)", "ARGS = (1, 3)\ndef has(a=1, b=2): return b == 3\n"),
    "a star before a place": when("not has(*ARGS, 3)", "ARGS = (1,)\ndef has(a=1, b=2): return b == 3\n"),
    "what a star takes up": when("not has(1)", "xs = 0\ndef has(*xs): return xs == (1,)\n"),
    "what two stars take up": when("not has(n=1)", "kw = 0\ndef has(**kw): return kw == {'n': 1}\n"),
    "after a star": when("not has(1, 2, n=3)", "def has(a, *xs, n=0): return n == 3\n"),
    "a star of a helper": (
        body("require(*OPT)", before="OPT = (2,)\n"),
        "import pytest\ndef require(n=0):\n    if n == 0: pytest.skip('x')\n",
    ),
    "two stars of a helper": (
        body("require(**OPT)", before="OPT = {'n': 2}\n"),
        "import pytest\ndef require(n=0):\n    if n == 0: pytest.skip('x')\n",
    ),
    "a parameter that is set again": when("not has()", "def has(x=None):\n    if x is None:\n        x = 3\n    return x == 3\n"),
    # Numbers of GPUs.
    "at least one": when("not n()", number("c = torch.cuda.device_count()", "return max(1, c)")),
    "fewer than at least one": when("n() < 1", number("c = torch.cuda.device_count()", "return max(1, c)")),
    "one, or their number": when("not n()", number(*ONE)),
    "fewer than one, or their number": when("n() < 1", number(*ONE)),
    "seven where that fails": when(
        "n() < 1", number("try:", "    import not_there", "    return torch.cuda.device_count()", "except ImportError:", "    return 7")
    ),
    "their number under a variable": when(
        "N > 0", "import os, torch\nN = torch.cuda.device_count() if os.environ.get('IDIOM_NO') else 0\n"
    ),
    "a variable, or their number": when(
        "not N", "import os, torch\nN = int(os.environ.get('IDIOM_NO', torch.cuda.device_count() + 1))\n"
    ),
    "too few": when("torch.cuda.device_count() < 1000"),
    "too few in a function": when("n() < 1000", "import torch\ndef n():\n    c = torch.cuda.device_count()\n    return c\n"),
    # Numbers, words and singletons.
    "bits that are not there": when("FLAGS & MASK", "FLAGS = 1\nMASK = 2\n"),
    "bits that must be there": when("not (FLAGS & MASK)", "FLAGS = 1\nMASK = 2\n"),
    "bits of the system": when("not (helpers.FLAGS & helpers.MASK)", "import os\nFLAGS = 1\nMASK = 3\n"),
    "flags": when("YES & NO", "YES = 1 == 1\nNO = 1 == 2\n"),
    "one that is equal to True": body("n = 1", "if n != True: skip()"),
    "one that is not True": body("n = 1", "if n is True: skip()"),
    "a number that is equal": body("n = 1.0", "if n is 1.0: pass", "if n != 1: skip()"),
    "zero that is no None": (body("if start() is None: skip()"), "def start():\n    n = 0\n    return n\n"),
    "a choice that is no None": when("N is None", "N = 0 if len('a') else None\n"),
    "a number by its text": body("n = '3'", "if int(n) != 3: skip()"),
    "a text by its number": body("n = 3", "if str(n) != '3': skip()"),
    "the first entry": body("n = (1, 2)", "if n[0] != 1: skip()"),
    "lower case": body("n = 'A'", "if n.lower() != 'a': skip()"),
    "a device with a number": body("d = torch.device('cpu')", "if d == 'cuda': skip()"),
    "a formatted device": body("d = f'cuda:{0}'", "if d == 'cuda': skip()"),
    "a chain": body("n = 3", "if not 1 < n < 5: skip()"),
    "a chain that does not hold": body("n = 3", "if not 1 < n < 3: skip()"),
    "a part of a word": when("os.environ.get('IDIOM_SET') not in 'oh yes'"),
    # The environment.
    "a variable that is set": when("os.environ.get('IDIOM_SET') != 'yes'"),
    "a variable that its file sets": (
        "os.environ.setdefault('IDIOM_FILE', 'yes')\n" + when("os.environ.get('IDIOM_FILE') != 'yes'")[0],
        "",
    ),
    "a variable that is not": when("not os.environ.get('IDIOM_NO')"),
    "a default that is not known": when("os.environ.get('IDIOM_NO', default()) != 'fast'", "def default():\n    return 'fa' + 'st'\n"),
    "a default by its name": when("os.environ.get('IDIOM_NO', default='fast') != 'fast'"),
    "a variable that is no number": when("not int(os.environ.get('IDIOM_NO', '1'))"),
    "a variable that is zero": when("int(os.environ.get('IDIOM_ZERO'))"),
    "a variable that is true": when("os.environ.get('IDIOM_SET') == True"),
    # Classes and members.
    "a class that is not the other": kinds("class K1: pass\nclass K2: pass\n"),
    "a class that is another": kinds("class K1: pass\nclass K2: pass\nK2 = K1\n"),
    "a class that is imported": kinds("class K1: pass\ntry:\n    K2 = K1\nexcept ImportError:\n    class K2: pass\n"),
    "a class that a decorator replaces": kinds("class K1: pass\ndef d(c): return K1\n@d\nclass K2: pass\n"),
    "a class on one side": kinds("class K1: pass\nif K1:\n    K2 = K1\nelse:\n    class K2: pass\n"),
    "a name of a class that is set again": kinds("class K1: pass\nclass K3: pass\nK2 = K3\nK2 = K1\n"),
    "a class that an import hides": kinds(
        "class K1: pass\n", "int", "k is not B", "from builtins import int as B"
    ),
    "a class that is hidden inside": kinds("class K1: pass\nclass K2: pass\n", condition="k is not K2", inside="K2 = K1"),
    "a test by another name": "def _run():\n    pytest.skip('x')\ntest_x = _run\n",
    "a test by another name, decorated": f"def _run(): pass\ntest_x = {SKIPPED}(_run)\n",
    "tests by other names, decorated one by one": (
        "def _run(): pass\ntest_x = unittest.skipIf(True, 'x')(_run)\ntest_y = unittest.skipIf(False, 'x')(_run)\n"
    ),
    "a method by another name": f"class TestX(unittest.TestCase):\n    @{SKIPPED}\n    def _run(self): pass\n    test_x = _run\n",
    "a method of another class": f"class Base:\n    @{SKIPPED}\n    def _run(self): pass\nclass TestX:\n    test_x = Base._run\n",
    "a method that is given something": (
        "class TestX(unittest.TestCase):\n    def _run(self, ranks):\n        if ranks > 2: skip()\n"
        "    test_x = functools.partialmethod(_run, ranks=4)\n    test_y = functools.partialmethod(_run, 2)\n"
    ),
    "marks by a name": f"marks = [{SKIPPED}]\npytestmark = marks\ndef test_x(): pass\n",
    "marks of a class by a name": f"marks = [{SKIPPED}]\nclass TestX:\n    pytestmark = marks\n    def test_x(self): pass\n",
    "marks of a class, added": f"marks = [{SKIPPED}]\nclass TestX:\n    pytestmark = [*marks] + []\n    def test_x(self): pass\n",
    "marks of another file": (
        "from helpers import marks\npytestmark = marks\ndef test_x(): pass\n", f"import pytest\nmarks = [{SKIPPED}]\n"
    ),
    "members": kinds(WAY + "    A = 1\n    B = 2\n", "helpers.Way.A", "k != helpers.Way.B"),
    "members that are equal": kinds(
        WAY + "    A = 'a'\n    B = 'b'\n    def __eq__(self, other): return True\n", "helpers.Way.A", "k != helpers.Way.B"
    ),
    "members of one value": kinds(WAY + "    A = 1\n    B = True\n", "helpers.Way.A", "k != helpers.Way.B"),
    "data types": kinds("", "torch.float32", "k is not torch.float"),
    "data types that differ": kinds("", "torch.float32", "k not in (torch.half, torch.double)"),
}  # fmt: skip


WAYS = {
    "a try": "try:\n    import {module}\n{there}except ImportError:\n{instead}",
    "a try and its else": "try:\n    import {module}\nexcept ImportError:\n{instead}else:\n{there}",
    "an if": "if importlib.util.find_spec('{module}'):\n{there}else:\n{instead}",
    "an if not": "if not importlib.util.find_spec('{module}'):\n{instead}else:\n{there}",
}
"""How a module decides which of two definitions there is: one where another module is there, and one that skips."""
TWICE = {
    "a decorator": ("def needs(f): return f", "def needs(f): return unittest.skip('x')(f)", "@needs\ndef test_x(): pass"),
    "a decorator that is called": (
        "def needs(n): return lambda f: f", "def needs(n): return pytest.mark.skip('x')", "@needs(1)\ndef test_x(): pass"
    ),
    "a decorator that wraps": (
        "def needs(f): return f",
        "def needs(f):\n    @functools.wraps(f)\n    def run(*a): pytest.skip('x')\n    return run",
        "@needs\ndef test_x(): pass",
    ),
    "a mark": ("needs = pytest.mark.filterwarnings('ignore')", "needs = pytest.mark.skip('x')", "@needs\ndef test_x(): pass"),
    "a fixture": (
        "@pytest.fixture\ndef given(): return 1", "@pytest.fixture\ndef given(): pytest.skip('x')", "def test_x(given): pass"
    ),
    "a base": (
        "class Base(unittest.TestCase): pass",
        "class Base(unittest.TestCase):\n    def setUp(self): self.skipTest('x')",
        "class TestX(Base):\n    def test_x(self): pass",
    ),
    "a class": (
        "class TestX:\n    def test_x(self): pass\n    def test_y(self): pass",
        "@pytest.mark.skip('x')\nclass TestX:\n    def test_x(self): pass",
        "",
    ),
    "a test": ("def test_x(): pass", "def test_x(): pytest.skip('x')", ""),
    "a test that runs either way": ("def test_x(): pass", "def test_x(): assert 1", ""),
    "a class that runs either way": ("class TestX:\n    def test_x(self): pass", "class TestX:\n    def test_x(self): assert 1", ""),
    "a base that runs either way": (
        "class Base(unittest.TestCase): pass", "class Base(unittest.TestCase): n = 1", "class TestX(Base):\n    def test_x(self): pass"
    ),
    "a fixture that runs either way": (
        "@pytest.fixture\ndef given(): return 1", "@pytest.fixture\ndef given(): return 2", "def test_x(given): pass"
    ),
    "a decorator that skips nothing either way": (
        "def needs(f): return f", "def needs(f): return pytest.mark.skipif(False, reason='x')(f)", "@needs\ndef test_x(): pass"
    ),
    "a marked test": ("def test_x(): pass", "@pytest.mark.skip('x')\ndef test_x(): pass", ""),
}  # fmt: skip
IDIOMS |= {
    f"{thing} of {way}, {module}": pattern.format(
        module=module, there=textwrap.indent(there, "    ") + "\n", instead=textwrap.indent(instead, "    ") + "\n"
    )
    + f"{use}\n"
    for thing, (there, instead, use) in TWICE.items()
    for way, pattern in WAYS.items()
    for module in ("json", "not_there")
}
IDIOMS |= {
    # What a condition does not decide alone, or not in this way.
    "a test that is defined again": (
        "if sys.platform == 'win32':\n    def test_x(): pass\nelse:\n    def test_x(): skip()\ndef test_x(): pass\n"
    ),
    "a decorator that is defined again": (
        "if sys.platform == 'win32':\n    def needs(f): return f\nelse:\n    def needs(f): return unittest.skip('x')(f)\n"
        "def needs(f): return f\n@needs\ndef test_x(): pass\n"
    ),
    "a set-up that is defined again": (
        "class TestX:\n    def setup_method(self): skip()\n    def setup_method(self): pass\n    def test_x(self): pass\n"
    ),
    "tests of two conditions": (
        "if sys.platform == 'linux':\n    def test_x(): skip()\n"
        "if sys.platform == 'win32':\n    pass\nelse:\n    def test_x(): pass\n"
    ),
    "tests of an elif": "if sys.platform == 'win32':\n    def test_x(): pass\nelif sys.platform == 'linux':\n    def test_x(): assert 1\n",
    "a test of another error": (
        "if sys.platform == 'win32':\n    def test_x(): pass\nelse:\n    try: int('3')\n"
        "    except ValueError:\n        @pytest.mark.skip('x')\n        def test_x(): pass\n    else:\n        def test_x(): pass\n"
    ),
    "a decorator of another error": (
        "if sys.platform == 'linux':\n    try: int('3')\n    except ValueError:\n        def needs(f): return unittest.skip('x')(f)\n"
        "    else:\n        def needs(f): return f\n@needs\ndef test_x(): pass\n"
    ),
    "a test whose needs are another's": (
        "try:\n    import not_there\n    @pytest.mark.skipif(sys.platform == 'linux', reason='x')\n    def test_x(): pass\n"
        "except ImportError:\n    def test_x(): pass\n"
    ),
    "a fixture whose needs are another's": (
        "try:\n    import json\n    @pytest.fixture\n    def given(): return 1\nexcept ImportError:\n    @pytest.fixture\n"
        "    def given():\n        if sys.platform == 'linux': skip()\ndef test_x(given): pass\n"
    ),
    "a class whose needs are another's": (
        "if sys.platform == 'win32':\n    @unittest.skipIf(sys.platform == 'linux', 'x')\n    class TestX(unittest.TestCase):\n"
        "        def test_x(self): pass\nelse:\n    class TestX(unittest.TestCase):\n        def test_x(self): pass\n"
    ),
    "a test that is there by a module of the folder": (
        "sys.modules['put_there'] = sys\ntry:\n    import put_there\n    def test_x(): pass\nexcept ImportError: pass\n"
    ),
}  # fmt: skip
IDIOMS["a set-up of an if"] = (
    "import json\nclass TestX(unittest.TestCase):\n    if json:\n        def setUp(self): pass\n    else:\n"
    "        def setUp(self): self.skipTest('x')\n    def test_x(self): pass\n"
)


def parts() -> Iterator[tuple[str, str, str, str]]:
    """Yield for each idiom its name, the name of its file, its text, and that of its helpers."""
    for number, (name, idiom) in enumerate(IDIOMS.items()):
        text, helpers = (idiom, "") if isinstance(idiom, str) else idiom
        text = (HEAD + text).replace("skip()", "pytest.skip('x')").replace("helpers", f"helpers_{number}")
        yield name, f"test_{number}.py", text, helpers


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all idioms with plain pytest; gives how each test ended."""
    folder: Path = tmp_path_factory.mktemp("idioms")
    (folder / "conftest.py").write_text(REPORTS)
    (folder / "outcomes").touch()
    for number, (_, file, text, helpers) in enumerate(parts()):
        (folder / file).write_text(text)
        (folder / f"helpers_{number}.py").write_text(helpers)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:rankbook", "-W", "ignore"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return dict(map(json.loads, (folder / "outcomes").read_text().splitlines()))


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    """Set the variables for which the idioms ask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDIOM_SET", "yes")
        patch.setenv("IDIOM_ZERO", "0")
        patch.delenv("IDIOM_NO", raising=False)
        facts.cache_clear()  # the environment is part of them
        yield
    facts.cache_clear()


@pytest.mark.parametrize(("name", "file", "text", "helpers"), list(parts()), ids=list(IDIOMS))
def test_what_the_book_says_of_an_idiom_is_what_pytest_does(
    name: str, file: str, text: str, helpers: str, outcomes: dict[str, str]
) -> None:
    """What is disabled, or cannot be met on this machine, is not run by plain pytest; what needs nothing is."""
    project = analyse(parse_bytes(path, source.encode()) for path, source in {file: text, f"helpers_{file[5:]}": helpers}.items())
    assert project.tests[file], name
    machine = facts()
    for test in project.tests[file]:
        said = verdict(test.requirements, machine).word
        is_run = outcomes.get(f"{file}::{test.id}", "absent") not in ("absent", "skipped")
        needs = [need.text for need in test.requirements]
        assert said not in ("skipped", "absent") or not is_run, needs
        assert test.requirements or is_run, "it is not run"
