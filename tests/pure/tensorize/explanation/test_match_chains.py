"""Chains of coordinate transformations: they compose to the address of what each lane holds."""

from __future__ import annotations

import json
from itertools import product
from math import prod
from random import Random

import pytest
from fuzz.pairs import pair
from pure.tensorize.matcher.test_match_sound import CONV, GATHER
from support.match.computes import CATALOGUE, made_up

from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.logic import Int, evaluate
from autosched.tensorize import Mapping, explain, match, to_json
from autosched.tensorize.addresses.axes import index_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.explanation.chains import Transform, chains
from autosched.tensorize.reduction.update import update_of_intrinsic


def element(chain: tuple[Transform, ...], tensor: str, rank: int, env: dict[str, int]) -> list[int | None]:
    """The chain's inner coordinates, followed from the lanes to the tensor."""
    env = dict(env)
    for step in reversed(chain):
        for name, expression in step.inner:
            if expression is not None:
                env[name] = int(evaluate(expression, env))
    return [env.get(f"{tensor}.{d}") for d in range(rank)]


def composes(mapping: Mapping, most: int = 400) -> None:
    facts = StageFacts(mapping.program, mapping.stage)
    update = update_of_intrinsic(mapping.intrinsic)
    own = {r.tensor: index_axes(r.index) for r in (*update.operands, update.target)}
    sizes = {a.name: a.extent for a in mapping.intrinsic.axes}
    found = chains(mapping)
    ranges = [range(facts.ranges[y][0], facts.ranges[y][1] + 1) for y in facts.extents]
    step = max(1, prod(map(len, ranges)) // most)
    for n, point in enumerate(product(*ranges)):
        if n % step:
            continue
        at = dict(zip(facts.extents, point, strict=True))
        numbers = {}
        for x, fused in mapping.axes.items():
            number = 0
            for y in fused:
                number = number * facts.extents[y] + at[y] - facts.ranges[y][0]
            numbers[x] = number
        for o, read in mapping.operands.items():
            env = {y: at[y] for y in mapping.outer}
            for x in own[o] & set(mapping.axes):
                env |= {f"{x}_tile": numbers[x] // sizes[x], f"{x}_lane": numbers[x] % sizes[x]}
            got = element(found[o], read.tensor, len(read.index), env)
            want = [int(evaluate(i, at)) if isinstance(i, Int) else None for i in read.index]
            assert got == want, (o, read, mapping.axes, at)


@pytest.mark.slow
def test_chains_compose_to_the_address() -> None:
    seen = 0
    for seed in range(100):
        rng = Random(seed)
        made = pair(rng)
        try:
            answers = match(parse(made.program), [made_up(made.semantics, made.numerics)], made.level)
        except AutoschedError:
            continue
        for found in answers:
            if found.mappings:
                composes(rng.choice(found.mappings), 60)
                json.dumps(to_json(found))
                seen += 1
    assert seen >= 40


def test_im2col_is_told() -> None:
    program = parse(CONV, sizes={"h": 5, "w": 5, "ci": 3, "co": 6, "kw": 3})
    (found,) = match(program, [CATALOGUE["x86/vpdpbusd.ymm"]])
    whole = next(m for m in found.mappings if m.axes == {"i": ("b", "y", "x"), "k": ("r", "s", "c")})
    composes(whole)
    told = chains(whole)
    assert [t.kind for t in told["a"]] == ["pass", "embed", "pad", "merge", "pad", "split", "merge", "pad", "split"]
    texts = [t.text for t in told["a"]]
    assert texts[1].endswith("walked by y, x, r, s")
    assert texts[2].startswith("zero in place of X[")
    assert texts[3] == "b, y, x (1 × 5 × 5) become one number i_all of 25"
    assert texts[4:6] == ["i_all from 25 to 32: zeros past the end", "i_all into 4 tiles of 8 lanes"]
    assert [t.kind for t in told["b"]][:2] == ["pass", "replicate"]
    assert told["b"][1].text == "W[r, s, c, o] is the same element for every b, y, x"
    assert any("not stored" in t.text for t in told["c"])
    text = explain(found)
    assert "    embed: dimension X.1 is y + r - 1, dimension X.2 is x + s - 1, walked by y, x, r, s" in text
    got = to_json(found)["mappings"][0]["chains"]
    assert set(got) == {"a", "b", "c"}
    assert all(set(t) == {"kind", "text", "inner", "outer"} for chain in got.values() for t in chain)


def test_windows_gathers_and_missing_axes() -> None:
    window = made_up(
        "def m(a: u8[6], b: s8[3], c: s32[4]):\n for i, k in grid(4, 3):\n  c[i] += s32(a[i + k]) * s32(b[k])"
    )
    head = "def f(A: u8[10], B: s8[3], C: s32[8]):\n"
    text = "    for i, k in grid(8, 3):\n        C[i] += s32(A[i + k]) * s32(B[k])\n"
    (found,) = match(parse(head + text), [window])
    assert [t.kind for t in chains(found.mappings[0])["a"]] == ["embed", "split", "split", "window"]
    (found,) = match(parse(GATHER), [CATALOGUE["x86/vpdpbusd.ymm"]])
    assert [t.kind for t in chains(found.mappings[0])["a"]][:2] == ["pass", "gather"]
    composes(found.mappings[0])
    head = "def f(a: u8[9], b: s8[7], C: s32[9, 7]):\n"
    outer = "    for i, j in grid(9, 7):\n        C[i, j] += s32(a[i]) * s32(b[j])\n"
    (found,) = match(parse(head + outer), [CATALOGUE["x86/vpdpbusd.ymm"]])
    said = [t.text for t in chains(found.mappings[0])["a"]]
    assert "k has extent 1 and is padded to 4: zeros past the end" in said
