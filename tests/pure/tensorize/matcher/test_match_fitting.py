"""Programs made to fit a random instruction match it, and every mapping computes the whole program; changed in one
place, they match only where that still computes the same."""

from __future__ import annotations

import json
from math import prod
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pure.tensorize.matcher.test_match_sound import made_up
from support.match.examples import examples
from support.match.match_grammar import fitting, instruction, mutated, text_of
from support.match.match_whole import run_with

from autosched.errors import ProgramError
from autosched.ir import parse
from autosched.ir.oracle import numerics
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.tensorize import Intrinsic, Match, explain, match, to_json

NEEDS_PADDING = "not so: padding"
LARGEST = 600
"""Points of a nest that the slow executor still walks."""


def arrays_for(program: Program, rng: np.random.Generator, corners: bool) -> dict[str, np.ndarray]:
    """An array for each parameter: any integers, or only the extreme ones; floats of which every sum is exact."""
    found = {}
    for name in program.parameters:
        tensor = program.tensors[name]
        shape = tuple(tensor.extents)
        if tensor.dtype.is_float:
            drawn = numerics.round_float(rng.integers(-4, 5, shape).astype(np.float64), tensor.dtype)
        else:
            low, high = tensor.dtype.limits
            if corners:
                drawn = rng.choice([low, high, 0, 1, max(low, -1)], shape)
            else:
                drawn = rng.integers(low, high, shape, dtype=np.int64, endpoint=True)
            drawn = np.asarray(drawn).astype(numerics.container(tensor.dtype))
        found[name] = numerics.store(np.asarray(drawn).reshape(shape), tensor.dtype)
    return found


def check(program: Program, intrinsic: Intrinsic, seed: int, most: int = 3) -> Match:
    """Executes up to `most` mappings on two sets of inputs each."""
    (found,) = match(program, [intrinsic])
    json.dumps(to_json(found), allow_nan=False)
    assert intrinsic.name in explain(found)
    if found.reason is not None and found.reason.counterexample is not None:
        assert found.reason.counterexample["program"] != found.reason.counterexample["intrinsic"]
    points = prod(a.extent for s in program.stages for a in s.axes)
    plain = [m for m in found.mappings if not m.conditions and points <= LARGEST]
    for mapping in plain[:: -(-len(plain) // most) or 1]:
        for corners in (False, True):
            arrays = arrays_for(program, np.random.default_rng(seed), corners)
            want = run(program, {n: a for n, a in arrays.items() if n in program.inputs})
            for name, got in run_with(mapping, arrays, {}).items():
                np.testing.assert_array_equal(
                    got, want[name], err_msg=f"{program}\n{intrinsic.program}\n{mapping.axes}"
                )
    return found


def made(seed: int, change: bool) -> tuple[Program, Intrinsic] | None:
    """An instruction and a program that fits it, or one changed in one place; None where that is no legal program."""
    rng = Random(seed)
    shape = instruction(rng)
    numerics = "{accumulate: unordered}" if shape.accumulator == "f32" else "{accumulate: exact}"
    try:
        intrinsic = made_up(text_of(shape), numerics)
        return parse(fitting(rng, mutated(rng, shape) if change else shape).text), intrinsic
    except ProgramError:
        return None


@pytest.mark.slow
@examples(40)
@given(st.integers(0, 1 << 40))
def test_what_is_made_to_fit_matches(seed: int) -> None:
    pair = made(seed, change=False)
    if pair is None:
        return
    found = check(*pair, seed)
    clamped = "sat_" in str(pair[1].program)
    if found.reason is not None and not clamped:
        assert NEEDS_PADDING in found.reason.message, f"{found.reason}\n{pair[0]}\n{pair[1].program}"


@examples(40)
@given(st.integers(0, 1 << 40))
def test_what_is_changed_still_computes_the_program(seed: int) -> None:
    pair = made(seed, change=True)
    if pair is not None:
        check(*pair, seed)
