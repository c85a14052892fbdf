# coding: punycode
def test_it():
    pass
