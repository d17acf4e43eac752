"""Instructions that are no multiply-adds, all the way: matched, laid out, compiled, measured, and right."""

from dataclasses import replace

import numpy as np
import pytest

import autosched
from autosched.ir.oracle.interpreter import run
from autosched.machine.host import host_features

HEAD = (
    "*, m=12, n=20, k=40):\n    for i, j in grid(m, n):\n        C[i, j] = 0\n        for p in range(k):\n            "
)
CASES = {
    "vpsadbw.s32": ("A: u8[m, k], B: u8[n, k], C: s32[m, n]", "C[i, j] += abs(s32(A[i, p]) - s32(B[j, p]))"),
    "vpopcntd.xor.b1": ("A: b1[m, k], B: b1[n, k], C: s32[m, n]", "C[i, j] += s32(A[i, p] ^ B[j, p])"),
    "vpopcntd.xor.u32": ("A: u32[m, k], B: u32[n, k], C: s32[m, n]", "C[i, j] += s32(popcount(A[i, p] ^ B[j, p]))"),
    "vpmaddwd": ("A: s16[m, k], B: s16[k, n], C: s32[m, n]", "C[i, j] += s32(A[i, p]) * s32(B[p, j])"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_of_it_computes_what_the_program_says(name):
    features = host_features()
    target = autosched.target("x86-avx512")
    target = replace(target, features=(target.features | {"avx512_vpopcntdq"}) & features)
    if not {"avx512bw", "avx512_vpopcntdq", "avx512vl"} <= target.features:
        pytest.skip("this machine lacks the instruction")
    tensors, line = CASES[name]
    program = autosched.parse(f"def made({tensors}, {HEAD}{line}\n")
    study = autosched.tune(program, target=target, trials=2, seed=1, store=":memory:", intrinsics=[f"x86/{name}.*"])
    assert f"x86/{name}." in study.best.trial.plan
    rng = np.random.default_rng(7)
    arrays = {}
    for tensor in (program.tensors[p] for p in program.inputs):
        low, high = tensor.dtype.limits
        arrays[tensor.name] = rng.integers(low, high, tensor.extents, endpoint=True).astype(tensor.dtype.numpy)
    expected = run(program, arrays)["C"]
    assert np.array_equal(study.best.build()(*arrays.values()), expected)
