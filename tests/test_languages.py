"""The structure of files in other languages: through the reader, and through `rankbook gen`."""

import importlib
import json
import re
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook import languages
from rankbook.analyse import analyse
from rankbook.cli import main
from rankbook.kinds import KINDS
from rankbook.sources import grammars
from rankbook.sources.other_languages import READERS
from rankbook.sources.parse import parse_bytes

SOURCES = {
    "pool.h": """\
// Copyright someone. All rights reserved.

// Buffers that ranks share.

#ifndef POOL_H
#define POOL_H
#include <vector>
#include "core/rank.h"
#define ROUND_UP(n, to) (((n) + (to) - 1) / (to))

namespace net::pool {

/// A buffer on one rank.
template <typename T>
class POOL_API Buffer : public Base<T> {
 public:
  explicit Buffer(int rank);
  ~Buffer();
  // Returns the number of its elements.
  size_t size() const { return n_; }
  bool operator==(const Buffer& other) const;
  enum class State { Idle, Busy };

 private:
  size_t n_;
};

struct Options {
  int timeout;
};
using Clock = long;
constexpr int kDefault = 3;
POOL_API int* allocate(size_t bytes);

}  // namespace net::pool
#endif
""",
    "pool.cpp": """\
#include "pool.h"

namespace net {
namespace {
int helper(int a) { return a; }
}
int* Buffer<int>::data(int at) { int local = at; return nullptr; }
}
REGISTER_BACKEND(gloo, make) { run(); }
TEST_F(BufferTest, Grows) { EXPECT_TRUE(true); }
TEST_CASE("shrinks again", "[pool]") {
  int inner = 1;
}
extern "C" void c_entry(void) {}
""",
    "queue.c": """\
/* A queue of requests. */
#include <stdint.h>

typedef struct request { int tag; } request_t;
typedef int (*callback)(int);
static const int LIMIT = 8;

/** Puts a request at the end. */
int push(request_t *r) {
  return r->tag;
}
""",
    "scale.cu": """\
#include "scale.cuh"

// Multiplies each element by a factor.
template <typename T>
__global__ void scale(T* data, T factor) {}
__device__ float half(float x) { return x / 2; }
__constant__ float table[4];
""",
    "add.metal": """\
#include <metal_stdlib>
kernel void add(device float *out [[buffer(0)]], constant float &x) {}
""",
    "view.mm": """\
#import <Foundation/Foundation.h>

@interface Model : NSObject
- (void)load:(int)rank with:(float)x;
@end

@implementation Model
- (void)load:(int)rank with:(float)x {
  start();
}
@end
int start() { return 1; }
""",
    "Ring.java": """\
package org.example.net;

import java.util.List;
import static org.junit.Assert.*;

/** A ring of ranks. */
public class Ring extends Topology {
  static final int SIZE = 4;
  Ring() {}
  /** {@link Ring#next} of a rank.
   * @param rank where from
   */
  int next(int rank) { return rank + 1; }
  @Test public void wraps() {}
  enum Way { LEFT, RIGHT }
  interface Visitor { void visit(int rank); }
}
""",
    "plot.js": """\
import draw, { line } from "./draw.js";
const path = require("path");
/** Draws a trace. */
export const plot = (trace) => trace, plain = 3;
export default class Chart extends Base {
  constructor() { super(); }
  render() {}
}
function* steps() {}
describe("plot", () => { it("draws", () => {}); });
""",
    "plot.ts": """\
import type { Trace } from "./trace";
export interface Options { width: number; draw(): void }
type Name = string;
enum Color { Red }
namespace inner { export function f(): void {} }
abstract class Shape { abstract area(): number }
""",
    "ring.rs": """\
//! Rings of ranks.

use std::collections::{HashMap, HashSet};
use crate::net;

/// A ring.
#[derive(Debug)]
pub struct Ring { size: usize }
impl Topology for Ring { fn next(&self, rank: usize) -> usize { rank } }
mod inner { pub const SIZE: usize = 4; }
macro_rules! ring { () => {} }
#[test]
fn wraps() {}
""",
    "ring_test.go": """\
// Package ring knows its neighbours.
package ring

import (
	"fmt"
	net "example.org/net"
)

const Size = 4

// Ring is one.
type Ring struct{ size int }

// Next goes on.
func (r *Ring) Next() int { return 1 }
func TestWraps(t *testing.T) {}
func Testament() {}
""",
    "launch.sh": """\
#!/bin/bash
# Starts one process per GPU.
set -e
source ./common.sh
export NCCL_DEBUG=INFO
readonly RANKS=2
PORT=29500
# Runs one rank.
run_rank() {
  local rank=$1
}
if [ -n "$A" ]; then
  PORT=1
  stop() { :; }
fi
""",
    "CMakeLists.txt": """\
# Builds the library.

cmake_minimum_required(VERSION 3.20)
project(pool LANGUAGES CXX)
include(cmake/flags.cmake)
find_package(CUDA REQUIRED)
option(USE_NCCL "Use NCCL" ON)
set(POOL_ARCH "90" CACHE STRING "Architectures (each) to build")
set(SRCS a.cpp "b (1).cpp") # not ) the end
#[[ add_library(nothing a.cpp)
]]
# Adds a kernel.
function(add_kernel name)
  set(inner 1)
endfunction()
add_library(pool SHARED ${SRCS})
add_test(NAME pool_test COMMAND pool)
""",
    "rules.bzl": """\
load("//tools:defs.bzl", "rule", r = "other")
FLAGS = ["-O2"]
def kernel(name):
    pass
cc_library(
    name = "pool",
)
""",
    "ci.yaml": """\
# Runs the tests.

name: ci
jobs:
  build:
    steps:
      - run: make
        shell: bash
      - run: test
  "lint": {on: [push]}
""",
    "project.toml": """\
title = "x"
# How it is built.
[build.system]
requires = ["a"]
[[tool.rule]]
name = 1
[[tool.rule]]
name = 2
""",
    "data.json": '{"a": {"b": [1, {"c": {"too": {"deep": 1}}}]},\n "d": null}\n',
    "guide.rst": """\
Guide
=====

How to start.

.. automodule:: torch.distributed
   :members:

Sub
---

.. note::

   Text.

.. include:: more.rst

::

   .. warning:: not one
""",
}

EXPECTED = {
    "pool.h": [
        "macro ROUND_UP 9",
        "namespace net::pool 11-35",
        "class net::pool::Buffer 14-26 A buffer on one rank.",
        "method net::pool::Buffer::Buffer 17",
        "method net::pool::Buffer::~Buffer 18",
        "method net::pool::Buffer::size 20 Returns the number of its elements.",
        "method net::pool::Buffer::operator== 21",
        "enum net::pool::Buffer::State 22",
        "struct net::pool::Options 28-30",
        "type net::pool::Clock 31",
        "constant net::pool::kDefault 32",
        "function net::pool::allocate 33",
    ],
    "pool.cpp": [
        "namespace net 3-8",
        "function net::helper 5",
        "method net::Buffer<int>::data 7",
        "macro call REGISTER_BACKEND(gloo, make) 9",
        "test BufferTest.Grows 10",
        "test shrinks again 11",
        "function c_entry 14",
    ],
    "queue.c": [
        "struct request 4",
        "type request_t 4",
        "type callback 5",
        "constant LIMIT 6",
        "function push 9-11 Puts a request at the end.",
    ],
    "scale.cu": [
        "kernel scale 4-5 Multiplies each element by a factor.",
        "function half 6",
        "constant table 7",
    ],
    "add.metal": ["kernel add 2"],
    "view.mm": [
        "class Model 3-5",
        "method Model.load:with: 4",
        "class Model 7-11",
        "method Model.load:with: 8",
        "function start 12",
    ],
    "Ring.java": [
        "package org.example.net 1",
        "class Ring 7-17 A ring of ranks.",
        "constant Ring.SIZE 8",
        "constructor Ring.Ring 9",
        "method Ring.next 13 `Ring#next` of a rank.",
        "test Ring.wraps 14",
        "enum Ring.Way 15",
        "interface Ring.Visitor 16",
        "method Ring.Visitor.visit 16",
    ],
    "plot.js": [
        "function plot 4 Draws a trace.",
        "constant plain 4 Draws a trace.",
        "class Chart 5-8",
        "constructor Chart.constructor 6",
        "method Chart.render 7",
        "function steps 9",
        "test plot 10",
        "test plot.draws 10",
    ],
    "plot.ts": [
        "interface Options 2",
        "method Options.draw 2",
        "type Name 3",
        "enum Color 4",
        "namespace inner 5",
        "function inner.f 5",
        "class Shape 6",
        "method Shape.area 6",
    ],
    "ring.rs": [
        "struct Ring 8 A ring.",
        "implementation <Ring as Topology> 9",
        "method <Ring as Topology>::next 9",
        "module inner 10",
        "constant inner::SIZE 10",
        "macro ring 11",
        "test wraps 13",
    ],
    "ring_test.go": [
        "package ring 2 Package ring knows its neighbours.",
        "constant Size 9",
        "struct Ring 12 Ring is one.",
        "method Ring.Next 15 Next goes on.",
        "test TestWraps 16",
        "function Testament 17",
    ],
    "launch.sh": [
        "environment variable NCCL_DEBUG 5",
        "variable RANKS 6",
        "variable PORT 7",
        "function run_rank 9-11 Runs one rank.",
        "function stop 14",
    ],
    "CMakeLists.txt": [
        "project pool 4",
        "option USE_NCCL 7 Use NCCL",
        "option POOL_ARCH 8 Architectures (each) to build",
        "variable SRCS 9",
        "function add_kernel 13-15 Adds a kernel.",
        "target pool 16",
        "test pool_test 17",
    ],
    "rules.bzl": ["constant FLAGS 2", "function kernel 3-4", "target pool 5-7"],
    "ci.yaml": [
        "key name 3",
        "key jobs 4-10",
        "key jobs.build 5-9",
        "key jobs.build.steps 6-9",
        "key jobs.lint 10",
        "key jobs.lint.on 10",
    ],
    "project.toml": [
        "key title 1",
        "table build.system 3-4 How it is built.",
        "key build.system.requires 4",
        "table tool.rule 5-6",
        "key tool.rule.name 6",
    ],
    "data.json": ["key a 1", "key a.b 1", "key a.b.c 1", "key d 2"],
    "guide.rst": [
        "directive automodule:: torch.distributed 6-7",
        "directive note 12-14",
        "directive include:: more.rst 16",
    ],
}
IMPORTS = {
    "pool.h": ["vector", "core/rank.h"],
    "view.mm": ["Foundation/Foundation.h"],
    "Ring.java": ["java.util.List", "org.junit.Assert.*"],
    "plot.js": ["./draw.js line", "path"],
    "plot.ts": ["./trace Trace"],
    "ring.rs": ["std::collections HashMap", "std::collections HashSet", "crate::net"],
    "ring_test.go": ["fmt", "example.org/net"],
    "launch.sh": ["./common.sh"],
    "CMakeLists.txt": ["cmake/flags.cmake", "CUDA"],
    "rules.bzl": ["//tools:defs.bzl rule", "//tools:defs.bzl other"],
    "guide.rst": ["more.rst"],
}
ABOUT = {
    "pool.h": "Buffers that ranks share.",
    "queue.c": "A queue of requests.",
    "ring.rs": "Rings of ranks.",
    "launch.sh": "Starts one process per GPU.",
    "CMakeLists.txt": "Builds the library.",
    "ci.yaml": "Runs the tests.",
    "guide.rst": "How to start.",
}


def read(name, source=None):
    return parse_bytes(name, (SOURCES[name] if source is None else source).encode())


def shown(definition):
    lines = str(definition.line) if definition.line == definition.end_line else f"{definition.line}-{definition.end_line}"
    said = f" {definition.docstring}" if definition.docstring else ""
    return f"{definition.kind} {definition.qualname} {lines}{said}"


def check(module):
    """Definitions and keywords lie within the file, in the order of its lines, and are of known kinds."""
    lines = [each.line for each in module.definitions]
    assert lines == sorted(lines)
    assert all(1 <= each.line <= each.end_line <= max(module.source.lines, 1) for each in module.definitions)
    assert all(1 <= each.line <= max(module.source.lines, 1) for each in (*module.keywords, *module.imports))
    assert {keyword.kind for keyword in module.keywords} <= KINDS.keys()
    assert all(each.name and each.name in each.qualname for each in module.definitions)
    depths = [0, *(each.depth for each in module.definitions)]
    assert all(after <= before + 1 for before, after in pairwise(depths))


@pytest.mark.parametrize("name", SOURCES)
def test_structure(name):
    """The definitions, imports and description of a file are those that a reader finds."""
    module = read(name)
    assert [shown(each) for each in module.definitions] == EXPECTED[name]
    assert [f"{each.module} {each.name}" if each.name else each.module for each in module.imports] == IMPORTS.get(name, [
        each.module for each in module.imports
    ])  # fmt: skip
    assert name not in ABOUT or module.docstring == ABOUT[name]
    assert module.keywords and module.error is None and module.unread is None
    check(module)


def test_every_language_has_its_reader():
    """The table that pages ask is that of the readers, and each reader has a case here."""
    assert {*READERS, "python"} == set(languages.STRUCTURED)
    covered = {languages.by_path(name).name for name in SOURCES}
    assert set(READERS) - covered == {"markdown", "objective-c"}


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_pages(tmp_path, pack):
    """Each file's page lists what it defines with a line to click, and its keyword page lists the names."""
    for name, source in SOURCES.items():
        (tmp_path / name).write_text(source)
    assert main(["gen", ".", "--root", str(tmp_path), "--out", "out", "--pack", pack]) == 0
    for name in SOURCES:
        page = (tmp_path / "out" / f"{name}_docs.md").read_text().partition("{#source")
        keywords = (tmp_path / "out" / f"{name}_kw.md").read_text()
        text = page[0] + page[2].rpartition("```")[2]
        for each in read(name).definitions:
            span = f"`{each.name}`" if "|" not in each.name else ""
            assert re.search(rf"- {each.kind} {re.escape(span)}, \[line {each.line}\]\(#__codelineno-source-{each.line}\)", text), each
            if each.kind not in ("macro call", "implementation"):
                assert span in keywords, each
    index = (tmp_path / "out" / "keywords.md").read_text() if (tmp_path / "out" / "keywords.md").exists() else ""
    assert not index or "`add_kernel`" in index


def test_definitions_nest_on_the_page(tmp_path):
    """A method is an item of the list below its class."""
    (tmp_path / "Ring.java").write_text(SOURCES["Ring.java"])
    main(["gen", ".", "--root", str(tmp_path), "--out", "out"])
    page = (tmp_path / "out/Ring.java_docs.md").read_text()
    assert "\n- class `Ring`" in page
    assert "\n    - interface `Visitor`" in page
    assert "\n        - method `visit`" in page


def test_includes_lead_to_files_of_the_tree():
    """An include names a file beside it, below the root, or the nearest whose path ends so; one in `<>` none beside it."""
    tree = {
        "core/include/net/rank.h": "int rank();\n",
        "other/include/net/rank.h": "int rank();\n",
        "core/src/a.cpp": '#include <net/rank.h>\n#include "b.h"\n#include <string.h>\n',
        "core/src/b.h": "",
        "core/src/c.cpp": '#include <math.h>\n#include "b.h"\n#include <top.h>\n#include <../src/b.h>\n',
        "core/src/d.cpp": '#include "math.h"\n',
        "core/src/math.h": "",
        "top.h": "",
        "lib/string.h": "",
        "web/a.js": 'import x from "./b";\n',
        "web/b.js": "",
        "run.sh": '. "$(dirname "$0")/lib/common.sh"\n',
        "lib/common.sh": "",
        "org/a/Main.java": "import org.a.Ring;\n",
        "org/a/Ring.java": "",
        "x/BUILD": 'load("//tools:defs.bzl", "f")\nload(":own.bzl", "g")\n',
        "x/own.bzl": "",
        "tools/defs.bzl": "",
        "CMakeLists.txt": "include(cmake/Flags.cmake)\nadd_subdirectory(core)\ninclude(${ROOT}/cmake/More.cmake)\n",
        "cmake/Flags.cmake": "",
        "cmake/More.cmake": "",
        "core/CMakeLists.txt": "",
        "a.py": "import core\n",
    }
    project = analyse(parse_bytes(path, text.encode()) for path, text in tree.items())
    found = {path: sorted(survey.imports.values()) for path, survey in project.surveys.items() if survey.imports}
    assert found == {
        "core/src/a.cpp": ["core/include/net/rank.h", "core/src/b.h"],
        "core/src/c.cpp": ["core/src/b.h", "top.h"],
        "core/src/d.cpp": ["core/src/math.h"],
        "web/a.js": ["web/b.js"],
        "run.sh": ["lib/common.sh"],
        "org/a/Main.java": ["org/a/Ring.java"],
        "x/BUILD": ["tools/defs.bzl", "x/own.bzl"],
        "CMakeLists.txt": ["cmake/Flags.cmake", "cmake/More.cmake", "core/CMakeLists.txt"],
    }


def test_macros_in_heads_of_types_do_not_hide_them():
    """Export macros, whatever their names, leave classes and functions readable; a directive that defines one stays."""
    source = """\
#define MY_API __attribute__((visibility("default")))
class MY_OWN_THING Tensor final : public Base { void f(); };
struct MY_API Pair;
MY_API inline Tensor make(int a) { return Tensor(); }
"""
    module = read("a.h", source)
    assert [shown(each) for each in module.definitions] == ["macro MY_API 1", "class Tensor 2", "method Tensor::f 2", "function make 4"]


KERNELS = """\
__global__ void __launch_bounds__(128, 1)
    __cluster_dims__(1, 4, 1)
        clustered(float* x) {
  x[0] = 1;
}
static int plain(float* x) { return 1; }
template <int N>
C10_LAUNCH_BOUNDS_1(N) __global__ void bounded_before(float* x) { x[0] = 1; }
__global__ void declared(float* x);
__device__ void LAUNCH(1) helper(int x) {}
template <int bit>
__global__ void torn(float* x) {
#if __CUDA_ARCH__ < 800
  if constexpr (bit == 4) {
    return;
  } else {
#endif
    if (x[0] > 1) return;
    x[0] = 1;
#if __CUDA_ARCH__ < 800
  }
#endif
}
template <typename T>
void start(T* x) {
  x[0] = 1;
"""


def test_kernels_of_a_header():
    """A header that holds a kernel is read as CUDA, whatever its suffix."""
    for name in ("a.h", "a.cuh"):
        definitions = parse_bytes(name, b"__global__ void k(int x) {}\n__device__ int f(int x) { return x; }\n").definitions
        assert [shown(each) for each in definitions] == ["kernel k 1", "function f 2"]


def test_kernels_whose_heads_are_torn():
    """A kernel is one whatever stands in its head or in its body that no grammar reads; what stands behind it is none."""
    found = {each.name: each.kind for each in parse_bytes("a.cu", KERNELS.encode()).definitions if each.kind != "macro call"}
    assert found == {
        "clustered": "kernel",
        "plain": "function",
        "bounded_before": "kernel",
        "declared": "kernel",
        "helper": "function",
        "torn": "kernel",
        "start": "function",
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("int f() { return 1; }\nclass A { void m(); \n", ["function f 1"]),
        ("}}} int g() { return 1; }\n", ["function g 1"]),
        ("#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\nint after() { return 1; }\n", ["function f"]),
        ("void f() { if (x) { g(1); } while (y) { h(); } }\n", ["function f 1"]),
    ],
)
def test_broken_files_give_what_is_there(source, expected):
    """A file with errors gives the definitions around them, and no statement for a definition."""
    module = read("a.cpp", source)
    check(module)
    assert module.error is None
    for each in expected:
        assert any(shown(found).startswith(each) for found in module.definitions), (each, module.definitions)
    assert not {each.name for each in module.definitions} & {"if", "while", "h"}


TORN = {
    "branches": (
        """\
namespace gloo {
template <typename T>
#ifdef _WIN32
std::vector<T> newBuffer(int size) {
  return std::vector<T>(size);
#else
std::vector<T, aligned<T>> newBuffer(int size) {
  return std::vector<T, aligned<T>>(size);
#endif
}

TEST_F(FooTest, Two) {
  int x = 1;
}
} // namespace gloo
""",
        ["namespace gloo 1-15", "function gloo::newBuffer 4-15", "test gloo::FooTest.Two 12-14"],
        [],
    ),
    "calls": (
        """\
#include <string>
PUSH_WARNINGS("-Wx")
#include <httplib.h>
POP_WARNINGS()

namespace a {
class Server {
 public:
  void run();
};
} // namespace a
""",
        ["namespace a 6-11", "class a::Server 7-10", "method a::Server::run 9"],
        ["string", "httplib.h"],
    ),
    "types among the arguments": (
        """\
TEMPLATE_TEST_CASE("tt", "[t]", int, float) {
  f();
}
TEST_CASE("after tt") {}
""",
        ["test tt 1-3", "test after tt 4"],
        [],
    ),
    "a long head": (
        """\
template <typename T>
#ifdef A
int f(T x) {
#else
int f(int x) {
#endif
}
const auto text = stringify(
  namespace std { template <typename T> class complex; }
);
namespace at:: native {
template <
    typename T,
    bool B = (1 > 0)>
class Long : public Base<T> {
  int size() { return 1; }
};
}
""",
        [
            "function f 3",
            "function f 5-7",
            "namespace at::native 11-18",
            "class at::native::Long 12-17",
            "method at::native::Long::size 16",
        ],
        [],
    ),
    "what is no code": (
        """\
PUSH_WARNINGS("-Wx")
#include <first.h>
POP_WARNINGS()
/*
#include <no.h>
TEST(A, B) {
}
*/
// class No {
#define EACH(x) \\
TEST(Each, x) { \\
}
namespace a {
const char* text = R"(
TEST(Text, Raw) {
class No {
)";
void f() {
  const char c = '{';
  struct Local {
    int x;
  };
}
TEST(A, Late) { struct Local { int x; }; }
}
""",
        ["macro EACH 10-12", "namespace a 13-25", "constant a::text 14-17", "function a::f 18-23", "test a::A.Late 24"],
        ["first.h"],
    ),
}


@pytest.mark.parametrize("case", TORN)
def test_what_the_grammar_loses_is_found_in_the_lines(case):
    """Tests, includes, namespaces and classes that the grammar loses are listed once, where they stand; what is no code is not."""
    source, definitions, includes = TORN[case]
    module = parse_bytes("a.cpp", source.encode())
    check(module)
    assert [shown(each) for each in module.definitions if each.kind != "macro call"] == definitions
    assert [each.module for each in module.imports] == includes
    named = {(each.name, each.line) for each in module.keywords if each.kind in ("namespace", "class", "test")}
    assert named == {(each.name, each.line) for each in module.definitions if each.kind in ("namespace", "class", "test")}


MACROS = """\
TEST_CASE("") { f(); }
TEST_CASE("one "
          "two") { f(); }
TEST_CASE("says \\"hi\\"", "[x]") { f(); }
TEST_CASE_METHOD(Fixture, "three") { f(); }
GTEST_TEST(A, B) { f(); }
BOOST_AUTO_TEST_CASE(plain) { f(); }
BOOST_FIXTURE_TEST_CASE(adds, Fixture) { f(); }
BOOST_AUTO_TEST_CASE_TEMPLATE(each, T, types) { f(); }
BOOST_DATA_TEST_CASE(sums, data::make(1, 2), x) { f(); }
"""


@pytest.mark.parametrize("broken", ["", 'TEMPLATE_TEST_CASE("tt", "[t]", int, float) {\n  f();\n}\n'])
def test_names_of_tests(broken):
    """A test is called what its framework calls it, also behind one that no grammar reads."""
    names = [each.name for each in parse_bytes("a.cpp", (broken + MACROS).encode()).definitions if each.kind == "test"]
    expected = ['""', "one two", 'says "hi"', "three", "A.B", "plain", "adds", "each", "sums"]
    assert names == (["tt", *expected] if broken else expected)


def test_pages_say_what_could_not_be_read(tmp_path):
    """The page of a file of which the grammar loses a part says that more may stand there; that of another does not."""
    (tmp_path / "torn.cpp").write_text(TORN["branches"][0])
    (tmp_path / "whole.cpp").write_text(SOURCES["pool.cpp"])
    assert main(["gen", ".", "--root", str(tmp_path), "--out", "out"]) == 0
    said = "Parts of the file could not be read: it may hold definitions that are not listed."
    assert said in (tmp_path / "out/torn.cpp_docs.md").read_text()
    assert said not in (tmp_path / "out/whole.cpp_docs.md").read_text()


@pytest.mark.parametrize(
    "piece", ["{", "#if A\n{\n#else\n{\n", "namespace a {\n", "class A :\n", "TEST(a, (", "class A { } }\n", "}\n#if\n"]
)
def test_torn_files_are_bounded(piece):
    """Whatever a file with errors repeats, its lines are read in bounded time."""
    start = process_time()
    check(parse_bytes("a.cpp", (piece * 20_000 + "\n").encode()))
    assert process_time() - start < 20


@pytest.mark.parametrize("name", ["a.json", "a.cpp", "a.yaml", "a.js", "a.rs", "a.java", "a.cu", "CMakeLists.txt", "a.sh", "a.py", "a.rst"])
def test_deep_nesting_is_bounded(name):
    """No depth of brackets makes a reader fail."""
    for opening, closing in ("[]", "{}", "()"):
        module = parse_bytes(name, (opening * 20_000 + closing * 20_000 + "\n").encode())
        assert module.source.lines == 1
        check(module)


def test_large_files_are_not_parsed():
    """A data file of more than 2 MB has its page and says why its structure is missing."""
    module = parse_bytes("a.json", b"[" + b"1,\n" * 700_000 + b"1]")
    assert module.unread == "it is larger than 2 MB"
    assert module.definitions == ()


def test_time_is_bounded(monkeypatch):
    """A text on which a parser would spend too much time and memory is given up, and says so."""
    monkeypatch.setattr(grammars, "_MOST_SECONDS", 0.05)
    module = parse_bytes("a.cpp", b"a<b<" * 100_000)
    assert module.unread == "its text takes too long to parse"
    assert module.definitions == ()


def test_many_definitions_are_bounded(tmp_path):
    """A generated file gives its first definitions, and its page lists some of them and says how many more there are."""
    (tmp_path / "a.c").write_text("".join(f"int f{number}(void);\n" for number in range(6000)))
    module = parse_bytes("a.c", (tmp_path / "a.c").read_bytes())
    assert len(module.definitions) == 5000
    main(["gen", ".", "--root", str(tmp_path), "--out", "out"])
    page = (tmp_path / "out/a.c_docs.md").read_text()
    assert page.count("\n- function ") == 500
    assert "4,500 more definitions: see the [keywords](a.c_kw.md)." in page


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_keys_that_are_not_listed_are_counted(tmp_path, pack):
    """Of a data file with more keys than a page lists, its pages and those of its folder say that there are more, and how many."""
    many = {f"k{number}": {"inner": {"deep": 1}} for number in range(400)}
    (tmp_path / "many.json").write_text(json.dumps(many))
    (tmp_path / "few.json").write_text('{"a": 1}\n')
    assert main(["gen", ".", "--root", str(tmp_path), "--out", "out", "--pack", pack]) == 0
    pages = {path.name: path.read_text() for path in (tmp_path / "out").iterdir() if path.suffix == ".md"}
    assert {name for name, page in pages.items() if "Only the first 400 of 1,200 keys are listed." in page} == {
        "many.json_docs.md",
        "many.json_kw.md",
    }
    assert "Of 1 long file only the first are counted." in pages["sub.md"]
    assert "defines 400" not in pages["many.json_docs.md"] and "All keywords" not in pages["many.json_docs.md"]


def test_keys_that_cannot_be_counted():
    """The number of keys is one that they are at least, where a file is too long, or too broken, to be read to its end."""
    flat = "".join(f"k{number} = 1\n" for number in range(1_000))
    whole, broken = parse_bytes("a.toml", flat.encode()), parse_bytes("a.toml", f"{flat}= = [\n".encode())
    assert (len(whole.definitions), whole.left_out, whole.is_cut) == (400, 600, False)
    assert (len(broken.definitions), broken.left_out, broken.is_cut) == (400, 600, True)
    assert parse_bytes("a.json", f"[{'0,' * 60_000}{{}}]".encode()).is_cut


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.json", r"""{"\"": 1, "'": 2, "it's'": 3, "": {"": 4}, "\u0041\ud83d\ude00": 5}""", ['"', "'", "it's'", '""', '"".""', "A😀"]),
        ("a.json", r"""{"a\n\u001b\\": 1, "a.b": {"c": 1}, "a": {"b": 2}, "\q\x": 3}""",
         ["a\\n\\u001b\\", "a.b", "a.b.c", "a", "a.b", r"\q\x"]),
        ("a.yaml", """"'": 1\n'"': 2\n'it''s': 3\n"a\\"b": 4\n'': 5\n""", ["'", '"', "it's", 'a"b', '""']),
        ("a.yaml", '"\\x41\\N": 1\n&one b: 2\n!!str c: 3\n? [d,  e]\n: 4\n? "f\n  g \\\n h"\n: 5\n: 6\n',
         [r"A\u0085", "b", "c", "[d, e]", "f g h", "null"]),
        ("a.toml", """"'" = 1\n'"' = 2\n"a\\"b" = 3\n"" = 4\n'c\\n' = 5\n""", ["'", '"', 'a"b', '""', r"c\n"]),
        ("a.toml", """a . "b".'c.d' = 1\n["x y"]\n[[t.'u v']]\n""", ['a.b."c.d"', "x y", 't."u v"']),
    ],
)  # fmt: skip
def test_keys_in_quotes(name, source, expected):
    """A key is what its language says that its spelling means; what cannot be shown is written as JSON writes it."""
    assert [each.qualname for each in read(name, source).definitions] == expected


@pytest.mark.parametrize("name", ["pool.cpp", "guide.rst", "ci.yaml"])
def test_without_a_grammar_the_page_says_so(tmp_path, monkeypatch, name):
    """A grammar whose package is missing costs its files their structure, with the package's name on the page."""
    language = {"pool.cpp": "cpp", "guide.rst": "rst", "ci.yaml": "yaml"}[name]

    def missing(module):
        if module == f"tree_sitter_{language}":
            raise ImportError(module)
        return importlib.import_module(module)

    grammars._parser.cache_clear()
    monkeypatch.setattr(grammars, "import_module", missing)
    try:
        module = read(name)
        (tmp_path / name).write_text(SOURCES[name])
        assert main(["gen", ".", "--root", str(tmp_path), "--out", "out"]) == 0
    finally:
        grammars._parser.cache_clear()
    assert module.definitions == ()
    assert module.unread == f"the package tree-sitter-{language} is not installed"
    assert module.error is None
    page = (tmp_path / "out" / f"{name}_docs.md").read_text()
    assert f"Its definitions are not listed: the package tree-sitter-{language} is not installed." in page
    assert SOURCES[name] in page


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("a.h", "@interface A\n@end\n", "Objective-C header"),
        ("a.h", "namespace a {}\n", "C++ header"),
        ("a.h", "int f(void);\n", "C or C++ header"),
        ("a.h", "namespace a {\n__global__ void k(int x);\n}\n", "CUDA header"),
        ("a.h", "template <int N>\n__device__\nint f(int x);\n", "CUDA header"),
        ("a.h", "#ifndef __device__\n#define __device__\n#endif\nint f(void);\n", "C or C++ header"),
        ("third_party/eigen.BUILD", "x = 1\n", "Bazel build file"),
        ("requirements-dev.txt", "x\n", "Python requirements list"),
        ("tools/requirements.in", "x\n", "Python requirements list"),
        ("LICENSES_BUNDLED.txt", "x\n", "License text"),
        ("Gemfile.lock", "x\n", "Bundler lock file"),
        ("py.typed", "", "Python typing marker"),
        ("skips/TestA.test_b", "", "Empty file"),
        ("noop.txt", "", "Text file"),
        ("Dockerfile.cuda", "FROM x\n", "Dockerfile"),
        ("a.ipynb", "{}", "Jupyter notebook"),
        ("k.ptx", ".version 8.0\n", "PTX assembly"),
    ],
)
def test_types_of_files(path, text, kind):
    """A file is called what it is."""
    assert parse_bytes(path, text.encode()).source.type == kind


def test_notebooks_show_their_headings():
    """A notebook has the headings of its text cells, at the lines of its file that hold them, and no JSON keys."""
    source = (
        '{"cells": [\n {"cell_type": "markdown", "source": [\n  "# All of it\\n",\n  "\\n",\n  "What it shows.\\n",\n'
        '  "## A part"\n ]},\n {"cell_type": "code", "source": ["# not one"]}\n]}\n'
    )
    module = parse_bytes("a.ipynb", source.encode())
    assert [(each.level, each.text, each.line) for each in module.headings] == [(1, "All of it", 3), (2, "A part", 6)]
    assert module.docstring == "What it shows."
    assert module.definitions == ()
    assert parse_bytes("b.ipynb", b'{"cells": 3}').headings == ()


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_headings_of_notebooks_stand_in_their_own_lines(ascii_only, whole):
    """A heading is found at its cell, whatever its letters, and whatever code and other cells say the same."""
    cells = [
        ("markdown", "# Étape 1\n\nTexte."),
        ("code", "# Setup of the ranks"),
        ("markdown", "## Étape 2 → fin"),
        ("code", "# Train"),
        ("markdown", "# Train"),
        ("markdown", "# Train"),
        ("markdown", "# Setup"),
    ]
    written = [{"cell_type": kind, "source": text if whole else text.splitlines(keepends=True)} for kind, text in cells]
    source = json.dumps({"cells": written}, indent=1, ensure_ascii=ascii_only)
    found = parse_bytes("a.ipynb", source.encode()).headings
    assert [each.text for each in found] == ["Étape 1", "Étape 2 → fin", "Train", "Train", "Setup"]
    lines = source.split("\n")
    rows = [row for row, line in enumerate(lines, 1) if line.strip().removeprefix('"source": ').startswith('"#')]
    assert [each.line for each in found] == [rows[index] for index in (0, 2, 4, 5, 6)]


def test_a_cell_without_text_says_nothing():
    """A text cell whose source is null gives the page no description."""
    module = parse_bytes("a.ipynb", b'{"cells": [{"cell_type": "markdown", "source": null}]}')
    assert module.docstring is None and module.headings == ()


BROKEN_PYTHON = {
    "two": """\
import os
class A:
    '''Old.'''
    def m(self):
        print "x"
        return 1
try:
    pass
except ValueError, e:
    pass
def f():
    exec 'x'
""",
    "newer": """\
import os
def f[T](x: T) -> T:
    return x
class A[T](list):
    def m(self): pass
type X = int
1 = 2
""",
    "template": """\
import os
def f(${x}):
    return 1
class A(${B}):
    def m(self):
        pass
""",
    "open": """\
import os
def f(

class A:
    def m(self): pass
""",
    "indented": """\
import os
x = 1
  y = 2
class A:
    def m(self): pass
def f(): pass
""",
    "deep": f"""\
import os
x = {"-" * 100_000}1
class A:
    def m(self): pass
def f(): pass
""",
    "conflict": """\
import os
<<<<<<< ours
def f(): pass
=======
>>>>>>> theirs
class A:
    def m(self): pass
""",
}


@pytest.mark.parametrize("case", BROKEN_PYTHON)
def test_python_that_does_not_parse_gives_the_rest(case):
    """A Python file with errors keeps its error, and gives the classes, functions and imports around it at their lines."""
    source = BROKEN_PYTHON[case]
    module = parse_bytes("a.py", source.encode())
    assert module.error
    assert [each.name for each in module.classes] == ["A"]
    assert [method.name for each in module.classes for method in each.methods] == ["m"]
    assert [each.name for each in module.functions] == ["f"]
    assert [each.module for each in module.imports] == ["os"]
    lines = source.split("\n")
    for each in (*module.classes, *module.functions):
        assert re.search(rf"\b{each.name}\b", lines[each.line - 1])
    assert {keyword.name for keyword in module.keywords} >= {"A", "m", "f", "os"}


def test_python_without_its_grammar_keeps_its_error(monkeypatch):
    """Without the fallback's package a broken Python file is as before: its error, and nothing else."""
    grammars._parser.cache_clear()
    monkeypatch.setitem(grammars.GRAMMARS, "python", ("tree_sitter_of_nothing", "language"))
    try:
        module = parse_bytes("a.py", b"def f(:\n  pass\ndef g(): pass\n")
    finally:
        grammars._parser.cache_clear()
    assert module.error_line == 1
    assert module.functions == ()


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from([*SOURCES, "a.py"]), data=st.data())
def test_mutated_sources_never_fail(name, data):
    """Whatever is cut out of, put into or repeated in a source, its definitions lie within its lines, in order."""
    source = SOURCES.get(name) or BROKEN_PYTHON["two"]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(source)))
        end = data.draw(st.integers(start, min(len(source), start + 60)))
        instead = data.draw(st.sampled_from(["", "{", "}", "(", '"', "\n", "\r", "#", "/*", "é\u2028", "\t", "<", source[start:end] * 2]))
        source = source[:start] + instead + source[end:]
    check(parse_bytes(name, source.encode()))


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from([*SOURCES, "a.py", "a.tsx", "a.ipynb"]), data=st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_no_bytes_make_a_reader_fail(name, data):
    """Any bytes under any name give a module whose definitions lie within its lines."""
    check(parse_bytes(name, data))


def test_tests_of_javascript_however_they_are_to_run():
    """Modifiers of a test, and calls that make many of it, leave it a test; groups hold theirs; quotes within a name stay."""
    text = (
        """it("says 'hi'", () => {});\ntest.skip("skipped", () => {});\nit.each([1, 2])("each %d", () => {});\n"""
        """describe.only("only", () => {\n  it("inner", () => {});\n  test.todo("later");\n});\n"""
        """test.describe.serial("group", () => { test("in it", async () => {}); });\n"""
        """test.use("no test", () => {});\nother.test("none", () => {});\nit.each([3]);\nexpect(it("x")).toBe("y");\n"""
    )
    for path in ("a.test.ts", "a.test.js"):
        module = parse_bytes(path, text.encode())
        found = [(each.kind, each.name, each.line) for each in module.definitions]
        assert found == [
            ("test", "says 'hi'", 1), ("test", "skipped", 2), ("test", "each %d", 3), ("test", "only", 4), ("test", "inner", 5),
            ("test", "later", 6), ("test", "group", 8), ("test", "in it", 8),
        ], path  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n\ntext\n\n##\n\n## B\n", [(1, "A", 1), (2, "B", 7)]),
        ("Title that\nspans lines\n===\nbody\n", [(1, "Title that spans lines", 1)]),
        ("One\n---\nbody\n\n---\n", [(2, "One", 1)]),
        ("text\n- item\n---\n", []),
        ("> quote\nmore\n===\n", []),
    ],
)
def test_headings_of_markdown(text, expected):
    """A heading without a text is none, and one above a rule is all of its paragraph, as CommonMark has it."""
    module = parse_bytes("a.md", text.encode())
    assert [(each.level, each.text, each.line) for each in module.headings] == expected


def test_a_heading_of_two_lines_is_no_paragraph():
    """What describes a file begins below it."""
    assert parse_bytes("a.md", b"Title that\nspans lines\n===\nbody\n").docstring == "body"
