"""A module that a rank imports, with an assertion that does not hold."""


def compare(left, right):
    assert left == right
