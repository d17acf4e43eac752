"""The vectorised interpreter against the plain one, bit for bit, and against numpy on the built-in workloads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz.plain import run_plain
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.programs.ir_programs import program_texts, reduction_texts

import autosched.ir as ir

SLOW = examples(150)


def random_data(program: ir.Program, seed: int) -> dict[str, Any]:
    """Inputs with many collisions, zeros and extremes; I holds valid indices."""
    rng = np.random.default_rng(seed)
    data = ir.random_inputs(program, rng)
    for name, array in data.items():
        dtype = program.tensors[name].dtype
        if name != "I" and dtype.is_float:
            coarse = rng.choice([0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 0.375, 100.0], array.shape)
            data[name] = np.where(rng.random(array.shape) < 0.6, coarse.astype(array.dtype), array).astype(array.dtype)
    return data


def assert_same(program: ir.Program, data: dict[str, Any]) -> None:
    fast, slow = ir.run(program, data), run_plain(program, data)
    for name in program.outputs:
        a, b = fast[name], slow[name]
        assert a.dtype == program.tensors[name].dtype.numpy
        assert a.shape == program.tensors[name].extents
        a, b = (x.astype(np.float64) if program.tensors[name].dtype.is_float else x.astype(object) for x in (a, b))
        same = (a == b) | ((a != a) & (b != b))
        assert np.all(same), f"{name}:\n{a}\n{b}\n{program}"


@SLOW
@given(program_texts(), st.integers(0, 3))
def test_random_programs_agree_with_the_plain_interpreter(text: str, seed: int) -> None:
    program = ir.parse(text)
    assert_same(program, random_data(program, seed))


@pytest.mark.slow
@SLOW
@given(reduction_texts(), st.integers(0, 3))
def test_random_reductions_agree_with_the_plain_interpreter(text: str, seed: int) -> None:
    program = ir.parse(text)
    assert_same(program, random_data(program, seed))
