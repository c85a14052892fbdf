"""Ranks whose assertions fail, in the re-executed main file and in a module that they import."""

import multiprocessing as mp

import asserting_sibling


def compare_here(left, right):
    assert left == right


if __name__ == "__main__":
    context = mp.get_context("spawn")
    for function, arguments in ((compare_here, (41, 42)), (asserting_sibling.compare, ([1, 2], [1, 3]))):
        rank = context.Process(target=function, args=arguments)
        rank.start()
        rank.join()
