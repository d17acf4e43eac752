"""Random programs on random instructions, every mapping evaluated in plain Python (`tests/fuzz`)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from fuzz.known import KNOWN
from fuzz.mapped import Wrong
from fuzz.matches import Findings, check_pair, compare, search
from fuzz.pairs import fitting
from fuzz.plain import bf16, f16, fused

from autosched.ir import parse
from autosched.tensorize import match
from autosched.tensorize.spec.load import load_text


def test_twenty_pairs() -> None:
    found = search(0, 20)
    assert not found.wrong
    assert found.counts["mappings"] >= 10


@pytest.mark.parametrize("why", KNOWN)
def test_pairs_that_were_wrong(why: str) -> None:
    found = Findings()
    check_pair(KNOWN[why], Random(1), 0, found)
    assert not found.wrong


@pytest.mark.slow
def test_two_hundred_pairs() -> None:
    """`python -m tests.fuzz.matches --pairs 20000` looks at more of them."""
    found = search(0, 200)
    assert not found.wrong
    counts = found.counts
    assert counts["mappings"] >= 130
    assert counts["mappings with staged guards"] >= 30
    assert counts["counterexamples"] >= 50
    assert counts["adapted mappings"] >= 2


@pytest.mark.slow
def test_what_is_made_to_fit_matches() -> None:
    """But for clamps after every addition, where padding needs a value that there is none of, and where what an
    instruction overwrites is written several times."""
    found, matched = Findings(), 0
    for seed in range(100):
        made = fitting(Random(seed))
        for answer in check_pair(made, Random(seed), seed, found):
            matched += bool(answer.mappings)
            if answer.reason is not None and "sat_" not in made.semantics:
                why = "is written anew in every turn" if "] = " in made.semantics else "not so: padding"
                assert why in answer.reason.message, f"{answer.reason}\n{made.semantics}\n{made.program}"
    assert not found.wrong
    assert matched >= 80


def test_it_finds_what_is_wrong() -> None:
    """A guard that two points of a window tell apart, said to be held there; and a fill that is none."""
    body = "def m(d: s8[6], a: s8[3], c: s32[4]):\n for i, k in grid(4, 3):\n  c[i] += s32(d[i + k]) * s32(a[k])\n"
    lines = "".join(f"      {line}\n" for line in body.splitlines())
    text = f"isa: made\nintrinsics:\n  - name: up\n    semantics: |\n{lines}    numerics: {{accumulate: exact}}\n"
    program = parse(
        "def f(X: s8[6], W: s8[3], C: s32[4]):\n for x, r in grid(4, 3):\n"
        "  if r <= 1:\n   C[x] += s32(X[x + r]) * s32(W[r])\n"
    )
    (answer,) = match(program, load_text(text))
    (mapping,) = (m for m in answer.mappings if not m.outer)
    compare(program, mapping, "reassociated", Random(1), Findings())
    (guards,) = mapping.guards.values()
    for wrong in (replace(mapping, guards={"d": guards}), replace(mapping, guards={})):
        with pytest.raises(Wrong):
            compare(program, wrong, "reassociated", Random(1), Findings())


def test_roundings() -> None:
    assert f16(2049.0) == 2048.0
    assert f16(65520.0) == float("inf")
    assert bf16(1.0 + 2**-8) == 1.0
    assert bf16(1.0 + 3 * 2**-8) == 1.0 + 2**-6
    assert fused(2.0**-30, 2.0**-30, 1.0) != 1.0, "rounded to odd"
