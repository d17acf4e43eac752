"""Every way to write a wrong intrinsic file ends in one SpecError that names the place and, where it can, the fix."""

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosched.errors import SpecError
from autosched.tensorize.spec.catalogue import load
from autosched.tensorize.spec.load import load_file, load_text

GOOD = """\
isa: npu
requires: [v2]
intrinsics:
  - name: dot8
    summary: a made-up dot product
    semantics: |
      def dot8(a: s8[8, 4], b: s8[8, 4], c: s32[8]):
          for i, k in grid(8, 4):
              c[i] += s32(a[i, k]) * s32(b[i, k])
    numerics: {accumulate: exact}
    operands:
      a: {register: {llvm: <32 x i8>}, packed: [i, k], broadcast: {over: i}}
      b: {register: {llvm: <8 x i32>}, packed: [k, i]}
    emit:
      llvm: "call <8 x i32> @llvm.npu.dot8(<8 x i32> {c}, <32 x i8> {a}, <8 x i32> {b})"
    timing: {latency: 4, interval: 1}
"""
WARP = """\
isa: cuda
intrinsics:
  - name: mma
    scope: warp
    semantics: |
      def mma(a: f16[16, 16], b: f16[16, 8], c: f32[16, 8]):
          for i, j, k in grid(16, 8, 16):
              c[i, j] += f32(a[i, k]) * f32(b[k, j])
    operands:
      a: {registers: 4 x b32, fragment: ["t//4 + 8*((v//2)%2)", "2*(t%4) + v%2 + 8*(v//4)"]}
      c: {registers: 4 x f32, fragment: ["t//4 + 8*(v//2)", "2*(t%4) + v%2"]}
"""

OVER = """\
isa: npu
intrinsics:
  - name: mean8
    semantics: |
      def mean8(a: u8[8], b: u8[8], c: u8[8]):
          for i in range(8):
              c[i] = u8((u16(a[i]) + u16(b[i]) + 1) >> 1)
    numerics: {accumulate: exact}
    emit: {llvm: "call <8 x i8> @llvm.npu.mean8(<8 x i8> {a}, <8 x i8> {b})"}
    timing: {latency: 4}
"""


def test_the_templates_of_this_table_are_good():
    (dot8,) = load_text(GOOD)
    assert dot8.name == "npu/dot8"
    assert dot8.requires == {"v2"}  # a feature that no known machine has is no error
    assert len(load_text(WARP)) == 1
    (mean8,) = load_text(OVER)
    assert dot8.accumulates
    assert not mean8.accumulates
    assert (mean8.operations, mean8.chain_cycles(4.0)) == (8, 0.0)


# (good text, what to replace, by what, line of the error, words of the message, words of the hint)
TABLE = [
    (GOOD, "summary:", "sumary:", 5, "unknown key 'sumary'", "did you mean 'summary'"),
    (GOOD, "isa: npu", "isaa: npu", 1, "unknown key 'isaa'", "did you mean 'isa'"),
    (GOOD, "latency: 4", "latncy: 4", 16, "unknown key 'latncy'", "did you mean 'latency'"),
    (GOOD, "accumulate: exact", "accumulates: exact", 10, "unknown key 'accumulates'", "did you mean 'accumulate'"),
    (GOOD, "b: {register:", "b: {regster:", 13, "unknown key 'regster'", "did you mean 'register'"),
    (GOOD, "{over: i}", "{ovr: i}", 12, "unknown key 'ovr'", "over"),
    (GOOD, "- name: dot8\n    summary", "- summary", 4, "missing key 'name'", None),
    (GOOD, "name: dot8", "name: dot/8", 4, "name", None),
    (GOOD, "latency: 4", "latency: 0", 16, "latency", None),
    (GOOD, "latency: 4", "latency: soon", 16, "latency", None),
    (GOOD, "interval: 1", "interval: -1", 16, "interval", None),
    (GOOD, "isa: npu", "isa: NPU!", 1, "isa", None),
    (GOOD, "requires: [v2]", "requires: v2", 2, "requires", None),
    (GOOD, "accumulate: exact", "accumulate: precise", 10, "accumulate", None),
    (GOOD, "accumulate: exact", "accumulate: unordered", 10, "exact", None),
    (GOOD, "accumulate: exact", "rounding: rz", 10, "for floats", None),
    (GOOD, "s32(a[i, k]) *", "s32(a[i, q]) *", 9, "q", None),
    (GOOD, "s32(a[i, k]) *", "a[i, k] *", 9, "", None),
    (GOOD, "grid(8, 4)", "grid(8, 5)", 9, "", None),
    (GOOD, "isa: npu", 'isa: npu\nheader: "npu.h>\\n#include <stdlib.h"', 2, "header", None),
    (GOOD, "isa: npu", "isa: npu\nheader: ../../secret.h", 2, "header", None),
    (GOOD, "llvm: <32 x i8>", "c: 'int x; system(y)'", 12, "is no type", "__m512i"),
    (GOOD, "llvm: <32 x i8>", "c: '__m256i x, y'", 12, "is no type", "__m512i"),
    (GOOD, "llvm: <32 x i8>", "c: static __m256i", 12, "is no type", "__m512i"),
    (GOOD, "llvm: <32 x i8>", "c: '__attribute__((constructor)) __m256i'", 12, "is no type", "__m512i"),
    (GOOD, "<32 x i8> {a}", "ptr null, <32 x i8> {a}", 15, "'ptr' is not accepted", None),
    (GOOD, "<8 x i32> {b})", "<8 x i32> {b}) call i32 @llvm.npu.other()", 15, "one instruction a line", None),
    (GOOD, "llvm: <32 x i8>", 'c: "v8\\n#include <stdlib.h>"', 12, "is no type", "__m512i"),
    (GOOD, "llvm: <32 x i8>", "c: 'v8){while(f()){}}('", 12, "is no type", "__m512i"),
    (GOOD, "def dot8(", "def dot8(:", 7, "", None),
    (GOOD, "s32(b[i, k])\n", "s32(b[i, k])\n              c[i] += s32(a[i, k])\n", 10, "2 statements", "one statement"),
    (
        GOOD,
        "for i, k",
        "for i in range(8):\n              c[i] = 0\n          for i, k",
        17,
        "{c} is named, and the semantics overwrites it",
        "overwrite",
    ),
    (GOOD, "c[i] +=", "c[i] =", 9, "overwritten 4 times along k", "+="),
    (GOOD, "s32(b[i, k])", "s32(a[i, k])", 9, "'b' is not used", None),
    (GOOD, "c: s32[8])", "c: s32[8], z: f32)", 9, "'z' is a scalar", "f32[1]"),
    (GOOD, "      b: {", "      d: {", 13, "'d' is no parameter", "parameters: a, b, c"),
    (GOOD, "llvm: <32 x i8>", "llvm: <64 x i8>", 12, "has 512 bits, the operand 256", "<32 x i8>"),
    (GOOD, "llvm: <32 x i8>", "llvm: __m256i", 12, "no LLVM vector type", "<32 x i8>"),
    (GOOD, "packed: [k, i]", "packed: [k]", 13, "does not name every dimension", "i, k"),
    (GOOD, "packed: [k, i]", "packed: [k, j]", 13, "unknown dimension 'j'", "i, k"),
    (GOOD, "packed: [k, i]", "packed: [k, k]", 13, "does not name every dimension", "i, k"),
    (GOOD, "packed: [k, i]", 'order: ["e%8", "e//4"]', 13, "no bijection", None),
    (GOOD, "packed: [k, i]", 'order: ["e%8"]', 13, "1 expressions for 2 dimensions", None),
    (GOOD, "packed: [k, i]", 'order: ["e%8", "__import__"]', 13, "unknown name '__import__'", "over e"),
    (GOOD, "packed: [k, i]", 'order: ["e%8", "exit()"]', 13, "not accepted", "over e"),
    (GOOD, "packed: [k, i]", 'order: ["e%8", "e//0"]', 13, "whole number from 1", None),
    (GOOD, "packed: [k, i]", 'packed: [k, i], order: ["e", "e"]', 13, "both say the element order", None),
    (GOOD, "packed: [k, i]", 'fragment: ["t", "v"]', 13, "scope is thread", "scope: warp"),
    (GOOD, "{over: i}", "{over: x}", 12, "no axis 'x'", "axes: i, k"),
    (GOOD, "<32 x i8> {a}", "<32 x i8> {x}", 15, "{x} is no operand", None),
    (GOOD, "<32 x i8> {a}", "<32 x i8> {c}", 15, "the operand {a} is not used", None),
    (GOOD, "{a}, <8", "{a, <8", 15, "lone '{'", None),
    (GOOD, "{a}, <8", "%{t}, <8", 15, "used before it is assigned", None),
    (GOOD, '"call <8', '"%{t} = call <8', 15, "the last line is the result", None),
    (GOOD, '"call <8', '"call fast <8', 15, "fast-math", None),
    (GOOD, "@llvm.npu.dot8", "@system", 15, "only LLVM's own functions", None),
    (GOOD, '"call <8', '"load <8', 15, "'load' is not accepted", None),
    (GOOD, '"call <8', '"call <8 x i32> asm \\"nop\\", <8', 15, "'asm' is not accepted", None),
    (GOOD, "{a}, <8", "%r.1, <8", 15, "names a value of its own", None),
    (GOOD, '"call <8 x i32> @', '"call <8 x i32> (', 15, "cannot read the call", None),
    (GOOD, '{b})"', '{b})"\n      c: "f({a}, {b}, {c})"', 14, "no C register type", "__m512i"),
    (GOOD, "emit:\n      llvm:", "emit:\n      llvm: ''\n      x:", 15, "empty", None),
    (WARP, "2*(t%4) + v%2 + 8*(v//4)", "2*(t%4) + v%2 + 4*(v//4)", 10, "operand a: fragment is no bijection", None),
    (WARP, "2*(t%4) + v%2 + 8*(v//4)", "2*(t%4) + v%2 + 16*(v//4)", 10, "outside 0..15", None),
    (WARP, '"2*(t%4) + v%2"', '"2*(w%4) + v%2"', 11, "unknown name 'w'", "over t v"),
    (WARP, "registers: 4 x b32", "registers: 2 x b32", 10, "does not hold it", "128 bits a lane"),
    (WARP, "registers: 4 x b32", "registers: four", 10, "registers", None),
    (WARP, "scope: warp", "scope: grid", 4, "scope", None),
    (GOOD, "s32(a[i, k])", "s32(bits_e2m1(a[i, k]))", 9, "bits_e2m1 of a value of dtype", "bits_e2m1 takes u4 s4"),
    (GOOD, "s32(a[i, k])", "s32(bits_e2m1(f32(a[i, k])))", 9, "bits_e2m1 of a value of dtype", "bits_e2m1 takes u4 s4"),
    (
        WARP,
        "scope: warp",
        "numerics: {accumulate: exact}\n    scope: warp",
        4,
        "exact with an accumulator of f32",
        "sequential",
    ),
    (OVER, "range(8)", "range(7)", 7, "dimension 0 is not indexed by one axis from end to end", "every element"),
    (OVER, "c[i] =", "c[7 - i] =", 7, "dimension 0 is not indexed by one axis from end to end", "every element"),
    (
        OVER,
        "c: u8[8]):\n          for i in range(8):\n              c[i]",
        "c: u8[8, 8]):\n          for i in range(8):\n              c[i, i]",
        7,
        "two of its dimensions",
        None,
    ),
    (OVER, "i in range(8)", "i, k in grid(8, 3)", 7, "c is overwritten 3 times along k", "index c by k"),
    (OVER, "u16(a[i])", "u16(a[i // 2])", 7, "dimension 0 of a is indexed by i // 2", "one axis of the target"),
    (OVER, "u16(a[i])", "u16(a[0])", 7, "dimension 0 of a is indexed by 0", "one axis of the target"),
    (OVER, "timing: {", "overwrite: x\n    timing: {", 10, "overwrites its target already", "leave it out"),
    (OVER, "latency: 4", "latency: 4, chain: 1", 10, "waits for no accumulator", "latency and interval"),
    (OVER, "timing: {", "scope: core\n    timing: {", 10, "core instructions that overwrite", "one of a thread"),
    (OVER, "<8 x i8> {b}", "<8 x i8> {b}, <8 x i8> {c}", 9, "{c} is named, and the semantics overwrites it", None),
    (OVER, ", <8 x i8> {b}", "", 9, "the operand {b} is not used", None),
]


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "message", "hint"), TABLE, ids=[f"{r[2][:40]!r}" for r in TABLE]
)
def test_a_wrong_file_is_one_clear_error(text, old, new, line, message, hint):
    assert old in text
    with pytest.raises(SpecError) as caught:
        load_text(text.replace(old, new, 1), "npu.yaml")
    error = caught.value
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("npu.yaml", line), str(error)
    assert message in error.message
    assert hint is None or hint in (error.hint or ""), str(error)
    assert str(error).startswith(f"npu.yaml:{line}:")


@pytest.mark.parametrize("key", ["accumulate: unordered", "fused: true", "rounding: rz"])
def test_roundings_of_what_overwrites_are_its_semantics(key):
    text = OVER.replace("u8((u16(a[i]) + u16(b[i]) + 1) >> 1)", "a[i] + b[i]").replace("u8[", "f32[")
    text = text.replace("8 x i8", "8 x float")
    assert len(load_text(text.replace("    numerics: {accumulate: exact}\n", ""))) == 1
    with pytest.raises(SpecError, match=f"numerics.{key.split(':')[0]} of an instruction that overwrites") as caught:
        load_text(text.replace("accumulate: exact", key))
    assert "into the semantics" in (caught.value.hint or "")
    (flushing,) = load_text(text.replace("accumulate: exact", "subnormals: flushed"))
    assert flushing.numerics.flushed
    with pytest.raises(SpecError, match="subnormals: results are sums, and it adds nothing up"):
        load_text(text.replace("accumulate: exact", "subnormals: results"))


HOSTILE = {
    "code tag": "isa: !!python/object/apply:os.system ['touch /tmp/pwned']\n",
    "tag on a list": "isa: npu\nintrinsics: !!python/tuple []\n",
    "own tag": "isa: !secret npu\n",
    "alias bomb": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)),
    "itself inside itself": "&a [*a]\n",
    "deep list": "[" * 5000,
    "deep mapping": "".join("  " * n + "a:\n" for n in range(300)),
    "huge": "isa: npu\n" + "# filler\n" * 200_000,
    "huge number": "isa: " + "9" * 10_000 + "\n",
    "zero byte": "isa: \0\n",
    "half a character": 'isa: "\\uD800"\n',
    "empty": "",
    "a list": "- isa: npu\n",
    "a word": "npu\n",
    "no entries": "isa: npu\nintrinsics: []\n",
    "entries are no list": "isa: npu\nintrinsics: {}\n",
    "entry is no mapping": "isa: npu\nintrinsics: [dot8]\n",
    "two documents": "isa: npu\n---\nisa: npu\n",
    "duplicate key": "isa: npu\nisa: npu\n",
    "open bracket": "isa: [npu\n",
    "huge operand": GOOD.replace("s8[8, 4]", "s8[80000, 40000]").replace("grid(8, 4)", "grid(80000, 40000)"),
    "deep expression": GOOD.replace("packed: [k, i]", f'order: ["{"(" * 150}e{")" * 150}", "e"]'),
    "long expression": GOOD.replace("packed: [k, i]", f'order: ["{"e+" * 5000}e", "e"]'),
    "huge constant": GOOD.replace("packed: [k, i]", 'order: ["e*9999999999999999999999", "e"]'),
    "huge shift": GOOD.replace("packed: [k, i]", 'order: ["e>>999999999", "e"]'),
    "family bomb": GOOD.replace(
        "    summary", f"    for: {{x: {list(range(100))}, y: {list(range(100))}}}\n    summary"
    ),
    "executable semantics": GOOD.replace("c[i] +=", "__import__('os').system('touch /tmp/pwned'); c[i] +="),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_refused_and_runs_nothing(text, tmp_path):
    with pytest.raises(SpecError):
        load_text(text, "hostile.yaml")


def test_hostile_files(tmp_path):
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"isa: npu\n\xff\xfe\x00")
    with pytest.raises(SpecError, match="UTF-8") as caught:
        load_file(binary)
    assert caught.value.location.line == 2
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (2 << 20))
    with pytest.raises(SpecError, match="larger"):
        load_file(large)
    for missing in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(SpecError, match="cannot read"):
            load_file(missing)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match="no YAML file"):
        load(tmp_path / "empty")


def test_an_error_in_semantics_shows_the_line_of_the_yaml_file():
    with pytest.raises(SpecError) as caught:
        load_text(GOOD.replace("s32(a[i, k]) *", "s32(a[i, q]) *"), "npu.yaml")
    place = caught.value.location
    line = GOOD.replace("s32(a[i, k]) *", "s32(a[i, q]) *").splitlines()[place.line - 1]
    assert place.text == line
    assert line[place.column - 1] == "q"


def test_text_and_path_load_alike(tmp_path):
    path = tmp_path / "npu.yaml"
    path.write_text(GOOD)
    assert (
        [i.version for i in load(path)] == [i.version for i in load(GOOD)] == [i.version for i in load(str(tmp_path))]
    )
    assert textwrap.dedent(GOOD) == GOOD


PIECES = [
    "{",
    "}",
    "[",
    "]",
    ": ",
    ",",
    "'",
    '"',
    "|",
    "-",
    "#",
    "%",
    "&",
    "!",
    "(",
    "0",
    "-1",
    "1e9",
    "null",
    "{n}",
    "s9",
    "\n",
    " ",
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([GOOD, WARP]), st.lists(st.tuples(st.integers(0, 600), st.integers(0, 8), st.sampled_from(PIECES)))
)
def test_a_damaged_file_loads_or_is_a_spec_error_with_a_place(text, damage):
    for at, removed, added in damage[:4]:
        text = text[:at] + added + text[at + removed :]
    place = None
    try:
        load_text(text, "damaged.yaml")
    except SpecError as error:
        place = error.location or "none"
    assert place != "none"
    assert place is None or 1 <= place.line <= len(text.splitlines()) + 1
