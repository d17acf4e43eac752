"""Exported C, built with a compiler, computes what the interpreter and the oracle compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import build, call, missing_features, needs_compiler
from support.programs.kernel_cases import CASES, case_inputs

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.ir import run

pytestmark = [needs_compiler, pytest.mark.compiler]


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-fopenmp")], ids=" ".join)
def test_hand_made_kernels(flags: tuple[str, ...], tmp_path: Path) -> None:
    built = {}
    for name, make in CASES.items():
        kernel, scalars = make()
        if not missing_features(kernel):
            folder = tmp_path / name
            folder.mkdir()
            built[name] = (kernel, scalars, build([print_c(kernel)], folder, *flags))
    if not built:
        pytest.skip("this CPU lacks the instructions of every case")
    for name, (kernel, scalars, library) in built.items():
        for seed in range(3):
            arrays = case_inputs(kernel, seed)
            expected = run(kernel.program, arrays, scalars)
            interpreted = run_kernel(kernel, arrays, scalars, seed=seed)
            computed = call(library, kernel, arrays, scalars)
            for output, array in expected.items():
                np.testing.assert_array_equal(interpreted[output], array, err_msg=name)
                np.testing.assert_array_equal(computed[output], array, err_msg=name)
