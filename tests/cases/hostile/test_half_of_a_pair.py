import os

X = os.environ.get("\ud800")
Y = os.environ["\udfff.PY"]


def test_a():
    assert X is None
