# coding: undefined
def test_it():
    pass
