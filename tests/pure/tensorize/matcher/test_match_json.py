"""The JSON of design §6 and the explanation, to the letter."""

from __future__ import annotations

import json

import pytest
from support.match.computes import CATALOGUE, made_up

from autosched.errors import UsageError
from autosched.ir import parse
from autosched.tensorize import explain, match, to_json
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.matcher.match import _decide
from autosched.tensorize.matcher.proofs import Prover

GEMM = """
def gemm(A: u8[m, k], B: const[s8[k, n]], C: s32[m, n], *, m=512, n=512, k=512):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
DESIGN = """
{"schema": "autosched/match/1", "program": "gemm", "stage": "C", "intrinsic": "x86/vpdpbusd.zmm",
 "verdict": "match", "mapping_count": 3,
 "mappings": [{"axes": {"i": ["j"], "k": ["p"]}, "outer": ["i"],
               "operands": {"a": "A[i, p]", "b": "B[p, j]", "c": "C[i, j]"},
               "replicated": {"a": ["i"]}, "padding": {"i": [512, 512], "k": [512, 512]},
               "adapters": [], "conditions": [], "numerics": "bitwise", "assumptions": []}],
 "reason": null, "seconds": 0.02}
"""


def test_the_example_of_the_design() -> None:
    (found,) = match(parse(GEMM), [CATALOGUE["x86/vpdpbusd.zmm"]])
    got = json.loads(json.dumps(to_json(found)))
    assert got.pop("seconds") >= 0
    want = json.loads(DESIGN)
    want.pop("seconds")
    assert [m["axes"]["i"] for m in got["mappings"]] == [["j"], ["i"], ["i", "j"]]
    assert [m["outer"] for m in got["mappings"]] == [["i"], ["j"], []]
    assert [m["replicated"] for m in got["mappings"]] == [{"a": ["i"]}, {"b": ["i"]}, {}]
    got["mappings"] = got["mappings"][:1]
    assert set(got["mappings"][0].pop("chains")) == {"a", "b", "c"}
    assert got["mappings"][0].pop("utilisation") == 1
    notes = [note.partition(":")[0] for note in got.pop("notes")]
    assert notes == [
        "the AMOS rule keeps 1 of the 3 mappings",
        "it rejects i ← i; k ← p",
        "it rejects i ← i × j; k ← p",
    ]
    assert got == want
    assert list(got) == [k for k in json.loads(DESIGN) if k != "seconds"]


def test_a_refusal() -> None:
    (found,) = match(parse(GEMM.replace("A: u8", "A: u16")), [CATALOGUE["x86/vpdpbusd.zmm"]])
    got = to_json(found)
    assert got["mappings"] == []
    assert got["mapping_count"] == 0
    assert got["reason"] == {
        "code": "DTYPE",
        "message": "operand a is u8, A is u16",
        "fix": "declare A as u8",
    }


def test_a_condition() -> None:
    (found,) = match(parse(GEMM, sizes={"k": "1..100000"}), [CATALOGUE["x86/vpdpbusds.zmm"]])
    assert found.verdict == "conditional"
    assert to_json(found)["mappings"][0]["conditions"] == [{"kind": "length", "text": "k <= 65793", "tight": True}]
    assert "if k <= 65793 (no weaker bound will do)" in explain(found)


def test_infinite_numbers_are_strings() -> None:
    text = "def f(A: f16[8], B: f16[8], C: f32[8]):\n    for i in range(8):\n        C[i] += f32(A[i] * B[i])\n"
    (found,) = match(parse(text), [CATALOGUE["portable/mac.f16.f16.f32.v8"]])
    assert found.reason is not None
    assert found.reason.code == "BODY_DIFFERS"
    json.dumps(to_json(found), allow_nan=False)


def test_the_explanation() -> None:
    (found,) = match(parse(GEMM, sizes={"m": 60, "n": 60, "k": 6}), [CATALOGUE["x86/vpdpbusd.zmm"]])
    text = explain(found)
    for part in (
        "gemm, stage C, on x86/vpdpbusd.zmm: match, 3 mappings",
        "mapping 1: i ← j; k ← p; outside: i",
        "a holds A[i, p], replicated along i",
        "i: 60 padded to 64 with zeros, 6.7 % more work",
        "ok axes: C[i, j] is another element for every other i, j (z3,",
        "ok body: padding k with zeros adds nothing (structure,",
        "ok reduction: addition of s32 is associative and commutative modulo 2^32 (structure,",
        "numerics: bitwise",
    ):
        assert part in text, text


def test_a_limit_is_unknown_and_never_no() -> None:
    """Sixteen-bit products written in two ways need the solver; with no time left the answer is unknown."""
    text = "def f(A: u16[8], B: u16[8], C: u32[8]):\n    for i in range(8):\n        C[i] += {}\n"
    program = parse(text.format("u32(A[i]) * u32(B[i])"))
    term = "(u32(a[i] >> 8) * u32(b[i]) << 8) + u32(a[i] & 255) * u32(b[i])"
    yaml = f"def m(a: u16[8], b: u16[8], c: u32[8]):\n for i in range(8):\n  c[i] += {term}"
    (found,) = match(program, [made_up(yaml)], timeout_ms=1)
    assert found.verdict in ("unknown", "match")
    if found.verdict == "unknown":
        assert found.reason is None
        assert "not proved within the limit" in found.notes[0]


def test_many_axes_meet_the_limit_honestly() -> None:
    program = parse(GEMM)
    intrinsic = CATALOGUE["x86/vpdpbusd.zmm"]
    facts = StageFacts(program, program.stage("C"))
    verdict, mappings, _, notes = _decide(facts, intrinsic, "reassociated", Prover(2000, limit=4))
    assert verdict == "match"
    assert len(mappings) < 3
    assert any("only those of the innermost axes" in n for n in notes)


def test_a_gather_is_reported() -> None:
    text = (
        "def f(A: u8[9, 4], idx: s32[6], B: s8[4, 5], C: s32[6, 5]):\n    for i, j, p in grid(6, 5, 4):\n"
        "        C[i, j] += s32(A[idx[i], p]) * s32(B[p, j])\n"
    )
    (found,) = match(parse(text), [CATALOGUE["x86/vpdpbusd.zmm"]])
    assert to_json(found)["mappings"][0]["operands"]["a"] == "A[idx[i], p]"
    assert "a holds A[idx[i], p], gathered through idx" in explain(found)


def test_an_unknown_level_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown numerics level 'exact'"):
        match(parse(GEMM), [CATALOGUE["x86/vpdpbusd.zmm"]], "exact")


def test_the_whole_catalogue_says_why() -> None:
    for found in match(parse(GEMM), CATALOGUE.values()):
        assert found.verdict in ("match", "conditional", "no")
        assert (found.reason is None) == (found.verdict != "no")
        assert explain(found).startswith("gemm, stage C, on ")
