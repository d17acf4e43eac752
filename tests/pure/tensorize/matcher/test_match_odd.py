"""Legal but odd programs, on every kind of instruction: a verdict, an explanation and JSON, and never a crash."""

from __future__ import annotations

import json

import pytest
from support.match.computes import CATALOGUE, made_up

from autosched.ir import parse
from autosched.tensorize import explain, match, to_json
from autosched.tensorize.match_types import REASON_CODES, VERDICTS

HEAD = "def f(A: u8[4, 5], B: s8[5, 6], idx: s32[4], v: s32[6], C: s32[4, 6]{more}):\n"
BODIES = {
    "no loop at all": "    C[0, 0] += s32(A[0, 0]) * s32(B[0, 0])\n",
    "no reduction": "    for i, j in grid(4, 6):\n        C[i, j] += s32(A[i, 0]) * s32(B[0, j])\n",
    "empty loop": "    for i, j, k in grid(4, 6, 0):\n        C[i, j] += s32(A[i, k]) * s32(B[k, j])\n",
    "one turn": "    for i, j, k in grid(1, 1, 1):\n        C[i, j] += s32(A[i, k]) * s32(B[k, j])\n",
    "a constant": "    for i, j in grid(4, 6):\n        C[i, j] = 7\n",
    "a sum of ones": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] += 1\n",
    "a copy": "    for i, j in grid(4, 5):\n        C[i, j] = s32(A[i, j])\n",
    "the loop's number": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] += s32(k) * s32(B[k, j])\n",
    "gathered rows": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] += s32(A[idx[i], k]) * s32(B[k, j])\n",
    "gathered twice": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] += s32(A[idx[idx[i]], k]) * s32(B[k, j])\n",
    "gathered by a sum": "    for i, j, k in grid(4, 6, 4):\n        C[i, j] += s32(A[i, idx[k] + 1]) * s32(B[k, j])\n",
    "scattered": "    for i, j, k in grid(4, 6, 5):\n        C[idx[i], j] += s32(A[i, k]) * s32(B[k, j])\n",
    "histogram": "    for i, k in grid(4, 5):\n        C[idx[i], 0] += 1\n",
    "guarded by data": "    for i, j, k in grid(4, 6, 5):\n        if A[i, k] > 3:\n"
    "            C[i, j] += s32(A[i, k]) * s32(B[k, j])\n",
    "guarded by everything": "    for i, j, k in grid(4, 6, 5):\n        if i + j + k < 7:\n"
    "            C[i, j] += s32(A[i, k]) * s32(B[k, j])\n",
    "never true": "    for i, j, k in grid(4, 6, 5):\n        if i > 9:\n"
    "            C[i, j] += s32(A[i, k]) * s32(B[k, j])\n",
    "divided index": "    for i, j, k in grid(4, 6, 10):\n        C[i, j] += s32(A[i, k // 2]) * s32(B[k % 5, j])\n",
    "reads itself": "    for i, j in grid(3, 6):\n        C[i + 1, j] += C[i, j]\n",
    "its own square": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] += C[i, j] * s32(B[k, j])\n",
    "a product": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] *= s32(A[i, k])\n",
    "a maximum": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] = max(C[i, j], s32(A[i, k]) * s32(B[k, j]))\n",
    "starts from a vector": "    for i, j in grid(4, 6):\n        C[i, j] = v[j]\n        for k in range(5):\n"
    "            C[i, j] += s32(A[i, k]) * s32(B[k, j])\n",
    "two targets": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] += s32(A[i, k]) * s32(B[k, j])\n"
    "        v[j] += s32(B[k, j])\n",
    "a triangle both ways": "    for i in range(4):\n        for k in range(i, 5):\n"
    "            for j in range(k + 1):\n                C[i, j] += s32(A[i, k]) * s32(B[k, j])\n",
    "one axis thrice": "    for i in range(4):\n        C[i, i] += s32(A[i, i]) * s32(B[i, i])\n",
    "a power": "    for i, k in grid(4, 5):\n        C[i, 0] += s32(A[i, k]) * s32(A[i, k]) * s32(A[i, k])\n",
    "divided values": "    for i, j, k in grid(4, 6, 5):\n        C[i, j] += s32(A[i, k]) // s32(B[k, j])\n",
    "a choice of targets": "    for i, j, k in grid(4, 6, 5):\n"
    "        C[i, j] += s32(A[i, k]) if v[j] > 0 else s32(B[k, j])\n",
}
WHOLE = {
    "zero dimensions": "def f(a: u8[()], b: s8[()], c: s32[()]):\n    c[()] += s32(a[()]) * s32(b[()])\n",
    "a scalar result": "def f(a: u8[9], b: s8[9], c: s32[()]):\n    for k in range(9):\n"
    "        c[()] += s32(a[k]) * s32(b[k])\n",
    "a run-time scalar": "def f(a: f32[9], s: f32, c: f32[9]):\n    for i in range(9):\n        c[i] += a[i] * s\n",
    "eight axes": "def f(A: u8[2, 2, 2, 2, 2], B: s8[2, 2, 2, 2, 2], C: s32[2, 2, 2, 2]):\n"
    "    for a, b, c, d, e, g, h in grid(2, 2, 2, 2, 2, 2, 2):\n"
    "        C[a, b, c, d] += s32(A[a, b, e, g, h]) * s32(B[e, g, h, c, d])\n",
    "booleans": "def f(A: b1[9], B: b1[9], C: b1[1]):\n    for k in range(9):\n        C[0] = C[0] ^ (A[k] & B[k])\n",
    "64 bits": "def f(A: s64[9], B: s64[9], C: s64[1]):\n    for k in range(9):\n        C[0] += A[k] * B[k]\n",
    "nothing used": "def f(A: u8[4], B: s8[4], C: s32[4]):\n    for i in range(4):\n        C[i] = 0\n",
}
PROGRAMS = {name: HEAD.format(more="") + body for name, body in BODIES.items()} | WHOLE
WINDOW = "def m(a: u8[6], b: s8[3], c: s32[4]):\n for i, k in grid(4, 3):\n  c[i] += s32(a[i + k]) * s32(b[k])"
TINY = "def m(a: u8[1], b: s8[1], c: s32[1]):\n for i in range(1):\n  c[i] += s32(a[i]) * s32(b[i])"
PLAIN = "def m(a: s32[4], c: s32[4]):\n for i in range(4):\n  c[i] = max(c[i], a[i])"
LONE = "def m(a: u8[4, 4], c: s32[4]):\n for i, k in grid(4, 4):\n  c[i] += s32(a[i, k])"
NAMES = [
    "x86/vpdpbusd.zmm", "x86/vpdpbusds.ymm", "x86/vpmaddubsw.vpmaddwd.ymm", "x86/vpsadbw.s32.ymm", "x86/tdpbusd",
    "x86/vpopcntd.xor.b1.ymm", "x86/vfmadd.f32.ymm", "cuda/dp4a.u8.s8", "cuda/wmma.m16n16k16.f16.f32", "arm/usmmla",
    "gemmini/mvin.scratchpad", "portable/mac.u8.s8.s32.v4",
]  # fmt: skip
INSTRUCTIONS = [*(CATALOGUE[n] for n in NAMES), *(made_up(t) for t in (WINDOW, TINY, PLAIN, LONE))]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_verdict_whatever_the_program(name: str) -> None:
    program = parse(PROGRAMS[name])
    for rule in ("superset", "amos"):
        for found in match(program, INSTRUCTIONS, rule=rule):
            assert found.verdict in VERDICTS
            assert (found.reason is not None) == (found.verdict == "no")
            assert found.reason is None or (found.reason.code in REASON_CODES and found.reason.message)
            assert bool(found.mappings) == (found.verdict in ("match", "conditional"))
            assert found.intrinsic.name in explain(found)
            json.dumps(to_json(found), allow_nan=False)


def test_sizes_kept_symbolic() -> None:
    text = (
        "def f(A: u8[m, k], B: s8[k, n], C: s32[m, n], *, m=4, n=4, k=4):\n    for i, j, p in grid(m, n, k):\n"
        "        C[i, j] += s32(A[i, p]) * s32(B[p, j])\n"
    )
    for sizes in ({"m": "1..1"}, {"m": "1..4096", "n": "1..9", "k": "1..70000"}, {"k": "1..3"}):
        for found in match(parse(text, sizes=dict(sizes)), INSTRUCTIONS):
            assert found.verdict in VERDICTS
            json.dumps(to_json(found), allow_nan=False)
            explain(found)


CHOICES = {
    "always the product": ("i < 4", "7", "match"),
    "never the product": ("i > 9", "7", "no"),
    "under its own guard": ("k < 3", "7", "match"),
    "now and then": ("i < 2", "7", "no"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_that_always_comes_out_the_same_is_none(name: str) -> None:
    condition, other, verdict = CHOICES[name]
    guard = "if k < 3:\n            " if "guard" in name else ""
    program = parse(
        HEAD.format(more="") + f"    for i, j, k in grid(4, 6, 5):\n        {guard}"
        f"C[i, j] += s32(A[i, k]) * s32(B[k, j]) if {condition} else {other}\n"
    )
    (found,) = match(program, [CATALOGUE["x86/vpdpbusd.zmm"]])
    assert found.verdict == verdict, explain(found)


def test_a_loop_that_never_runs_is_refused() -> None:
    for bounds in ("0", "3, 1"):
        program = parse(
            HEAD.format(more="") + f"    for i, j in grid(4, 6):\n        for k in range({bounds}):\n"
            "            C[i, j] += s32(A[i, k]) * s32(B[k, j])\n"
        )
        (found,) = match(program, [CATALOGUE["x86/vpdpbusd.zmm"]])
        assert found.reason is not None
        assert (found.reason.code, "never runs" in found.reason.message) == ("UNSUPPORTED", True)


def test_clamped_terms_of_two_widths_are_compared_as_whole_numbers() -> None:
    """Found by the random tests: the program's term is of s64, the instruction's of s32, and z3 took neither."""
    instruction = made_up(
        "def m(a: s16[4], b: u8[4], c: s32[4]):\n for i in range(4):\n"
        "  c[i] = sat_s32(s64(c[i]) + s64(s32(a[i]) * s32(b[i])))"
    )
    program = parse(
        "def f(A: s16[8], B: u8[8], C: s32[8]):\n    for i in range(8):\n"
        "        C[i] = sat_s32(s64(C[i]) + s64(A[i]) * s64(B[i]))\n"
    )
    assert match(program, [instruction])[0].verdict == "match"
