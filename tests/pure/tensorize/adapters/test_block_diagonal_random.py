"""Random programs with groups: whatever is put side by side computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.ir import parse, run
from autosched.ir.program import Program
from autosched.tensorize.adapters.block_diagonal import block_diagonal, groups_of
from autosched.tensorize.addresses.stage_facts import StageFacts

TERMS = ("s32({x}) * s32({w})", "s32({w}) * s32({x})", "(s32({x}) - Z[{z}]) * s32({w})", "s32({x}) * s32({w}) * {n}")
BEHIND = ("S[{at}] + Z[{z}]", "max(S[{at}], 0)", "S[{at}] if g > 0 else 0", "s32(o) + S[{at}]", "S[{other}]")
GUARDS = ("i < 2", "g < 3", "o <= c", "i + c < 5", "M[i] > 0", "g + c < 4", "i + r < 4")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A sum of products in groups, its subscripts, guards and what follows as they come."""
    groups, results, terms = draw(st.sampled_from([2, 3, 4, 6])), draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def pick(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(options))

    out, deep = f"g * {results} + o", f"g * {terms} + c"
    at = pick([f"i, {out}", f"{out}, i"])
    x = f"X[{pick([f'i + r, {deep}', f'{deep}, i + r', f'i, {deep}', f'i + r, c * {groups} + g'])}]"
    w = f"W[{', '.join(pick(list(permutations([out, 'c', 'r']))))}]"
    term = pick(TERMS).format(x=x, w=w, z=pick([out, "o", "g", "0"]), n=pick(["2", "s32(i)", "s32(g)", "Z[g]"]))
    outer = [*pick([("i", "g", "o"), ("g", "i", "o"), ("g", "o", "i")])]
    inner = [*pick([("r", "c"), ("c", "r")])]
    size = {"i": 3, "g": groups, "o": results, "c": terms, "r": 2}
    lines = [" S: s32[32, 32]"]
    for depth, axis in enumerate(outer, 1):
        lines.append(" " * depth + f"for {axis} in range({size[axis]}):")
    lines.append(" " * 4 + f"S[{at}] = {pick(['0', '1', f'Z[{out}]', 'Z[o]', 's32(g)'])}")
    for depth, axis in enumerate(inner, 4):
        lines.append(" " * depth + f"for {axis} in range({size[axis]}):")
    depth = 6
    for guard in draw(st.lists(st.sampled_from(GUARDS), max_size=1)):
        lines.append(" " * depth + f"if {guard}:")
        depth += 1
    lines.append(" " * depth + f"S[{at}] += {term}")
    lines.append(f" for i, g, o in grid(3, {groups}, {results}):")
    behind = pick(BEHIND).format(at=at, z=pick([out, "o"]), other=f"i, {results - 1} - o")
    lines.append(f"  Y[i, {out}] = {behind}")
    tensors = "X: s8[32, 32], W: s8[32, 32, 32], Z: s32[32], M: s8[4], Y: s32[3, 32]"
    return "\n".join([f"def f({tensors}):", *lines]) + "\n"


def inputs_of(program: Program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {}
    for name in program.inputs:
        tensor = program.tensors[name]
        found[name] = rng.integers(-9, 9, tensor.extents).astype(tensor.dtype.numpy)
    return found


@examples(60)
@given(programs())
def test_groups_side_by_side_compute_the_same(text: str) -> None:
    program = parse(text)
    for stage in program.stages:
        facts = StageFacts(program, stage)
        groups = groups_of(facts) if stage.reduction else None
        if groups is None:
            continue
        for together in range(2, groups.group.extent + 1):
            made = block_diagonal(facts, groups, together)
            if made is not None:
                given_, after = inputs_of(program), made.rewrite.after
                want, got = run(program, given_), run(after, given_)
                for name in program.outputs:
                    np.testing.assert_array_equal(got[name], want[name], err_msg=f"{text}\n{after}")
