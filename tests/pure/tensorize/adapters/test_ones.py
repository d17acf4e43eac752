"""Sums of elements on instructions that sum products: with a one, or with a one and a zero by what data say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from fuzz.hot import SCALARS, data_of, random_hot
from support.match.computes import CATALOGUE, made_up

import autosched
from autosched import ir
from autosched.tensorize import match

NAME = "portable/mac.f32.f32.f32.v4"
OWN = "def m(a: {t}[4], b: {t}[4], c: {t}[4]):\n for i in range(4):\n  c[i] += a[i] * b[i]"
LOOKUP = """
def lookup(I: s32[m], W: f32[k, n], O: f32[m, n], *, m=9, k=21, n=17):
    for i, j in grid(m, n):
        O[i, j] = 0
        for p in range(k):
            CONDITION
"""


def adapted(text: str, name: str = NAME, level: str = "reassociated") -> autosched.tensorize.Match:
    program = ir.parse(text)
    (found,) = [m for m in match(program, [CATALOGUE.find(name)], level) if m.stage == "O"]
    return found


@pytest.mark.parametrize(
    "line",
    [
        "O[i, j] += (1.0 if I[i] == s32(p) else 0.0) * W[p, j]",
        "O[i, j] += W[p, j] if I[i] == s32(p) else 0.0",
        "if I[i] == s32(p): O[i, j] += W[p, j]",
    ],
)
def test_what_data_choose_is_a_factor(line: str) -> None:
    found = adapted(LOOKUP.replace("CONDITION", line.replace(": O", ":\n                O")))
    assert found.verdict == "match"
    mapping = found.mappings[0]
    assert mapping.adapters == ("indicator O_indicator",)
    assert mapping.finite == ("W",)
    assert "the sign of a zero may differ" in mapping.certificate.assumptions
    assert "O_indicator[i_i, p_i] = (f32(1.0) if I[i_i] == s32(p_i) else 0.0)" in str(mapping.program)
    assert "O[i, j] += O_indicator[i, p] * W[p, j]" in str(mapping.program)


def test_an_assumed_range_leaves_nothing_to_assume() -> None:
    text = LOOKUP.replace("CONDITION", "O[i, j] += W[p, j] if I[i] == s32(p) else 0.0")
    bounded = text.replace("    for i, j", "    assume(-1 <= W <= 1)\n    for i, j", 1)
    assert adapted(bounded).mappings[0].finite == ()
    assert adapted(text, level="special").verdict == "no"
    assert adapted(bounded, level="bitwise").verdict == "no"


def test_a_condition_that_protects_an_address_stays() -> None:
    line = "O[i, j] += W[p + 1, j] if I[i] == s32(p) and p + 1 < 21 else 0.0"
    assert adapted(LOOKUP.replace("CONDITION", line)).verdict == "no"
    far = "O[i, j] += W[I[j], j] if I[i] == s32(p) else 0.0"
    assert adapted(LOOKUP.replace("CONDITION", far)).verdict == "no"


def test_a_plain_sum_has_a_one() -> None:
    found = adapted("def f(X: f32[9, 21], O: f32[9]):\n    for i, p in grid(9, 21):\n        O[i] += X[i, p]\n")
    assert found.verdict == "match"
    assert found.mappings[0].adapters == ("supply ones",)
    assert str(found.mappings[0].program).count("one[0] = 1.0") == 1


def search(seeds: Iterable[int]) -> Counter[str]:
    """Each mapping's program against the one it came from, on data that are finite."""
    counts: Counter[str] = Counter()
    floats = [made_up(OWN.format(t=t), "{accumulate: unordered}") for t in ("f32", "f64")]
    own = {str(i.accumulator.dtype): i for i in (made_up(OWN.format(t="s32")), *floats)}
    for seed in seeds:
        program = random_hot(seed)
        for found in match(program, [own[str(program.tensors["O"].dtype)]], "reassociated"):
            made = {str(m.program): m for m in found.mappings if m.adapters}
            counts[found.verdict] += 1
            for text, mapping in made.items():
                counts[mapping.adapters[0].split()[0]] += 1
                for k in range(3):
                    data, scalars = data_of(program, 8 * seed + k), {n: SCALARS[n] + k for n in program.scalars}
                    want, got = (ir.run(p, data, scalars=scalars)["O"] for p in (program, ir.parse(text)))
                    same = (want == got) | ~np.isfinite(want)  # an error that has no bound allows any number
                    assert same.all(), f"program {seed}: {want} is {got}\n{program}\n{text}"
    return counts


def test_random_programs_on_products() -> None:
    counts = search(range(40, 110))
    assert counts["indicator"] >= 2
    assert counts["negate"] >= 1
