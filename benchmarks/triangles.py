"""Triangular sums and rows that data choose, on one core, against PyTorch: interleaved medians.

    python -m benchmarks.triangles [--trials 16] [--rounds 25] [NAME…]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import autosched
from autosched.ir import random_inputs, run

SAMPLE_S = 5e-3

PROGRAMS = """
def sums_along_rows(X: f32[b, n], Y: f32[b, n], *, b=64, n=1024):
    for z, i in grid(b, n):
        Y[z, i] = 0
        for j in range(i + 1):
            Y[z, i] += X[z, j]

def sums_down_columns(X: f32[n, d], Y: f32[n, d], *, n=512, d=512):
    for i, k in grid(n, d):
        Y[i, k] = 0
        for j in range(i + 1):
            Y[i, k] += X[j, k]

def rows_of_a_triangle(A: f32[n, n], Y: f32[n], *, n=1024):
    for i in range(n):
        Y[i] = 0
        for j in range(i + 1):
            Y[i] += A[i, j]

def triangle_by_vector(A: f32[n, n], x: f32[n], Y: f32[n], *, n=1024):
    for i in range(n):
        Y[i] = 0
        for j in range(i + 1):
            Y[i] += A[i, j] * x[j]

def chosen_rows(T: f32[v, d], I: s32[n], Y: f32[n, d], *, v=4096, d=512, n=1024):
    assume(0 <= I < v)
    for i, j in grid(n, d):
        Y[i, j] = T[I[i], j]

def chosen_rows_by_rows(T: f32[v, d], I: s32[n], X: f32[n, d], Y: f32[n], *, v=4096, d=512, n=1024):
    assume(0 <= I < v)
    for i in range(n):
        Y[i] = 0
        for j in range(d):
            Y[i] += T[I[i], j] * X[i, j]

def chosen_rows_by_matrix(X: f32[v, k], I: s32[n], W: const[f32[k, d]], Y: f32[n, d], *, v=1024, k=256, d=256, n=256):
    assume(0 <= I < v)
    for i, j in grid(n, d):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[I[i], p] * W[p, j]
"""


def theirs(torch: Any) -> dict[str, Callable[..., Any]]:
    """What PyTorch is asked for, by the program's name, on its inputs in their order."""
    return {
        "sums_along_rows": lambda x: torch.cumsum(x, 1),
        "sums_down_columns": lambda x: torch.cumsum(x, 0),
        "rows_of_a_triangle": lambda a: torch.tril(a).sum(1),
        "triangle_by_vector": lambda a, x: torch.mv(torch.tril(a), x),
        "chosen_rows": lambda t, i: torch.nn.functional.embedding(i, t),
        "chosen_rows_by_rows": lambda t, i, x: (t[i] * x).sum(1),
        "chosen_rows_by_matrix": lambda x, i, w: x[i] @ w,
    }


def seconds(call: Callable[[], object]) -> float:
    """Of one call, over calls that take `SAMPLE_S` together."""
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < SAMPLE_S:
        call()
        count += 1
    return (time.perf_counter() - began) / count


def compare(name: str, target: Any, trials: int, rounds: int) -> str:
    """A line: both medians and the ratio of neighbours in time, above 1 where ours is faster."""
    import torch

    torch.set_num_threads(1)
    program = autosched.parse(PROGRAMS, function=name)
    study = autosched.tune(program, target=target, trials=trials, store=":memory:")
    assert study.best is not None
    kernel, data = study.best.build(), random_inputs(program, np.random.default_rng(0))
    (result,) = program.outputs
    out = np.zeros(program.tensors[result].extents, np.float32)
    given = [data[n] for n in program.inputs]
    arrays = {n: np.ascontiguousarray(a) for n, a in data.items()} | {result: out}
    arguments = [arrays[n] for n in program.parameters]
    kernel(*arguments)
    tensors = [torch.from_numpy(np.ascontiguousarray(a)) for a in given]
    tensors = [t.long() if t.dtype == torch.int32 else t for t in tensors]
    peer = theirs(torch)[name]
    assert np.allclose(out, run(program, data)[result], rtol=1e-3, atol=1e-3)
    assert np.allclose(out, peer(*tensors).numpy(), rtol=1e-3, atol=1e-3)
    pairs = [(seconds(lambda: kernel(*arguments)), seconds(lambda: peer(*tensors))) for _ in range(rounds)]
    ours, other = (median(p[k] for p in pairs) * 1e6 for k in (0, 1))
    ratio = median(b / a for a, b in pairs)
    return f"{name:<24} ours {ours:9.1f} us  PyTorch {other:9.1f} us  ratio {ratio:.2f}  {study.best.schedule}"


def main() -> None:
    names = list(theirs(None))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=25)
    given = parser.parse_args()
    target = autosched.target("native")
    for name in given.names or names:
        print(compare(name, target, given.trials, given.rounds), flush=True)


if __name__ == "__main__":
    main()
