"""The elements that a self-test compares of a large program are those that the interpreter gives the whole program."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from autosched.codegen.c.export.compared_elements import RUN, RUNS, ComparedElements
from autosched.ir import workload
from autosched.ir.oracle.inputs import random_inputs, split_inputs
from autosched.ir.oracle.slack import Slack
from autosched.ir.oracle.tolerances import run_with_error

PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    ("matmul", {"m": 33, "n": 29, "k": 17}),
    ("attention", {"h": 2, "n": 24, "l": 24, "d": 8, "mask": "causal"}),
    ("reduce", {"m": 40, "n": 20}),
    ("conv2d", {"n": 1, "h": 9, "w": 7, "ci": 3, "co": 5, "kh": 3, "kw": 3}),
]


@pytest.mark.parametrize(("name", "sizes"), PROGRAMS, ids=[n for n, _ in PROGRAMS])
def test_elements_are_those_of_the_whole_program(name: str, sizes: dict[str, Any]) -> None:
    program = workload(name, **sizes)
    arrays, scalars = split_inputs(program, random_inputs(program, np.random.default_rng(0)))
    fused = {s.name for s in program.stages}
    want, bounds = run_with_error(program, arrays, scalars, fused, Slack(2.0))
    few = ComparedElements(program, 0.0)
    got, near = few.run(arrays, scalars, fused, Slack(2.0))
    for output in program.outputs:
        places = few.places(output)
        shape = program.tensors[output].extents
        assert places is not None
        assert len(places) == RUNS * min(RUN, shape[-1])
        assert (places[0], places[-1]) == (0, prod(shape) - 1)
        np.testing.assert_allclose(got[output], want[output].reshape(-1)[places], rtol=1e-5)
        np.testing.assert_allclose(near[output], np.broadcast_to(bounds[output], shape).reshape(-1)[places], rtol=1e-5)


def test_all_elements_of_a_small_program() -> None:
    assert ComparedElements(workload("matmul", m=8, n=8, k=8)).places("C") is None
    assert ComparedElements(workload("matmul", m=1024, n=1024, k=1024)).places("C") is not None
