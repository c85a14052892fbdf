"""Which files are related to which, and why: what few files share says more than what all do."""

from rankbook.analyse import analyse
from rankbook.sources.parse import parse_bytes

TEST = "def test_it(): ...\n"


def related(files, path):
    """Give path, reason and line of each file that is related to one."""
    found = analyse(parse_bytes(name, text.encode()) for name, text in files.items()).relations.get(path, ())
    return [(relation.path, relation.why, relation.line) for relation in found]


def test_what_everybody_imports_comes_last_or_not_at_all():
    """A file that all others import says little of each: it is named after the others, and not where there are enough of them."""
    crowd = {f"test_{number:02}.py": f"import common\n{TEST}" for number in range(60)}
    files = crowd | {"common.py": "", "rare.py": "", "test_one.py": f"import common\nimport rare\n{TEST}"}
    assert related(files, "test_one.py") == [("rare.py", "is imported here", 2), ("common.py", "is imported here", 1)]
    files |= {f"part_{number}.py": "" for number in range(4)}
    files["test_one.py"] += "".join(f"import part_{number}\n" for number in range(4))
    assert "common.py" not in [path for path, _, _ in related(files, "test_one.py")]
    assert related(files, "test_00.py") == [("common.py", "is imported here", 1)]


def test_files_that_call_the_same_rare_apis():
    """Shared APIs are named, those of fewest files first, with the line of the first; what many call does not relate."""
    many = {f"other_{number:02}.py": "import torch\ntorch.zeros()\ntorch.ones()\n" for number in range(40)}
    some = {f"some_{number}.py": "import torch\ntorch.svd()\n" for number in range(3)}
    calls = "import torch\ntorch.zeros()\ntorch.ones()\ntorch.svd()\ntorch.qr()\ntorch.lu()\ntorch.eig()\n"
    files = many | some | {"a.py": calls, "b.py": calls}
    why = "calls the same APIs: torch.eig, torch.lu, torch.qr and 1 more"
    assert related(files, "a.py") == [("b.py", why, 7)]


def test_near_files_with_tests_come_before_far_ones_without():
    """Of files that share the same APIs, the near ones come first, and for a file of tests those with tests."""
    calls = "import torch\ntorch.qr()\ntorch.lu()\n"
    files = {name: calls + (TEST if "test_" in name else "") for name in ("t/test_a.py", "t/test_b.py", "t/tool.py", "far/away/test_c.py")}
    files |= {f"other_{number}.py": "import torch\ntorch.ones()\n" for number in range(30)}
    assert [path for path, _, _ in related(files, "t/test_a.py")] == ["t/test_b.py", "far/away/test_c.py", "t/tool.py"]


def test_importers_with_tests_come_first():
    """Of the files that import a file, those with tests come first, and then those that import little else."""
    files = {
        "tool.py": "",
        "more.py": "",
        "a_user.py": "import tool\n",
        "test_b.py": f"import more\nimport tool\n{TEST}",
        "test_c.py": f"import tool\n{TEST}",
    }
    assert related(files, "tool.py") == [
        ("test_c.py", "imports it, and has tests", 1),
        ("test_b.py", "imports it, and has tests", 2),
        ("a_user.py", "imports it", 1),
    ]


def test_one_row_for_all_classes_of_a_file():
    """The nearest and least nested class stands for all that derive from those of the same file."""
    bases = "import unittest\nclass Base(unittest.TestCase): ...\nclass Near(Base): ...\n"
    heirs = "import bases\ndef f():\n    class Inner(bases.Near): ...\nclass Outer(bases.Near): ...\nclass Other(bases.Base): ...\n"
    files = {"bases.py": bases, "heirs.py": heirs}
    assert related(files, "heirs.py") == [("bases.py", "holds Near, a base class of Outer and 2 more", 4)]
    assert related(files, "bases.py") == [("heirs.py", "holds Outer, a subclass of Near, and 2 more", 4)]
