"""Well-known loop nests: what may move, what may not, and why."""

from __future__ import annotations

from typing import Any

import pytest

from autosched.ir import parse
from autosched.tiling.analysis.dependence import Dependences, analyse
from autosched.tiling.plans.epilogue import epilogue_chain, epilogues

MATMUL = """
def gemm(A: u8[m, k], B: const[s8[k, n]], C: s32[m, n], *, m=512, n=512, k=512):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
CONV2D = """
def conv2d(X: t[n, h, w, ci], W: const[t[kh, kw, ci, co]], Y: acc[n, ho, wo, co],
           *, n=1, h=56, w=56, ci=64, co=64, kh=3, kw=3, stride=1, pad=1, t="f16", acc="f32"):
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    for b, y, x, o in grid(n, ho, wo, co):
        Y[b, y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            if 0 <= y * stride + r - pad < h and 0 <= x * stride + s - pad < w:
                Y[b, y, x, o] += acc(X[b, y * stride + r - pad, x * stride + s - pad, c]) * acc(W[r, s, c, o])
"""
SOFTMAX = """
def softmax(X: f32[m, n], Y: f32[m, n], *, m=64, n=100):
    top: f32[m]
    total: f32[m]
    for i in range(m):
        top[i] = -inf
        for j in range(n):
            top[i] = max(top[i], X[i, j])
        total[i] = 0
        for k in range(n):
            total[i] += exp(X[i, k] - top[i])
        for l in range(n):
            Y[i, l] = exp(X[i, l] - top[i]) / total[i]
"""


def kinds(found: Dependences, stage: str) -> dict[str, str]:
    return {a.axis: a.kind for a in found.stage(stage).axes}


def deps(text: str, **sizes: Any) -> Dependences:
    return analyse(parse(text, sizes=sizes))


@pytest.mark.parametrize("m", [512, "1..4096"])
def test_matmul(m: int | str) -> None:
    found = deps(MATMUL, m=m)
    assert kinds(found, "C") == {"i": "independent", "j": "independent", "p": "reduction"}
    assert found.groups == (("C",),)
    assert (
        str(found.stage("C").axis("p")) == "p is a reduction: only the accumulation itself meets across its iterations"
    )


@pytest.mark.parametrize("stride", [1, 2])
def test_conv2d_with_padding(stride: int) -> None:
    found = deps(CONV2D, stride=stride)
    assert found.stage("Y").of_kind("independent") == ("b", "y", "x", "o")
    assert found.stage("Y").of_kind("reduction") == ("r", "s", "c")


def test_softmax_rows_are_independent_and_its_stages_may_be_separated() -> None:
    found = deps(SOFTMAX)
    assert kinds(found, "top") == {"i": "independent", "j": "reduction"}
    assert kinds(found, "total") == {"i": "independent", "k": "reduction"}
    assert kinds(found, "Y") == {"i": "independent", "l": "independent"}
    assert found.groups == (("top",), ("total",), ("Y",))
    assert found.distributable("top", "Y")


def test_softmax_over_one_scratch_row_stays_together() -> None:
    text = SOFTMAX.replace("f32[m]\n", "f32[1]\n").replace("top[i]", "top[0]").replace("total[i]", "total[0]")
    found = deps(text)
    assert len(found.groups) == 1
    assert not found.distributable("top", "Y")
    assert found.together[0].axes[0].kind == "serial"  # without a scratch of its own for each row


def test_prefix_sum_is_serial() -> None:
    found = deps("def f(S: f32[n], A: f32[n], *, n=100):\n    for i in range(1, n):\n        S[i] = S[i - 1] + A[i]\n")
    assert str(found) == "S: i is serial: S[i], written at i=1, is read at i=2 as S[i - 1]"


def test_gauss_seidel_in_place_and_jacobi_with_two_arrays() -> None:
    seidel = """
def f(A: f32[n, n], *, n=50, steps=10):
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1]
"""
    assert set(kinds(deps(seidel), "A").values()) == {"serial"}
    jacobi = """
def f(A: f32[n], B: f32[n], *, n=50, steps=10):
    for t in range(steps):
        for i in range(1, n - 1):
            B[i] = A[i - 1] + A[i + 1]
        for j in range(1, n - 1):
            A[j] = B[j]
"""
    found = deps(jacobi)
    assert found.groups == (("B", "A"),)  # in the loop over time
    assert kinds(found, "B") == {"t": "serial", "i": "independent"}
    assert kinds(found, "A") == {"t": "serial", "j": "independent"}
    assert found.together[0].of_kind("serial") == ("t",)


def test_column_recurrence_is_serial_in_one_axis_only() -> None:
    text = """
def f(S: f32[n, n], A: f32[n, n], *, n=64):
    for i in range(1, n):
        for j in range(n):
            S[i, j] = S[i - 1, j] + A[i, j]
"""
    assert kinds(deps(text), "S") == {"i": "serial", "j": "independent"}


def test_wavefront_and_skewed_recurrence() -> None:
    text = """
def f(S: f32[n, n], *, n=64):
    for i in range(1, n):
        for j in range(1, n - 1):
            S[i, j] = S[i - 1, j] + S[i, j - 1]
"""
    found = deps(text)
    assert kinds(found, "S") == {"i": "serial", "j": "serial"}
    assert not found.stage("S").axis("j").in_place
    # Along the diagonal j may not move out, yet within one i its iterations do not meet.
    skewed = deps(text.replace("S[i - 1, j] + S[i, j - 1]", "S[i - 1, j + 1] + 1.0")).stage("S").axis("j")
    assert (skewed.kind, skewed.in_place) == ("serial", True)


def test_reversed_in_place_copy() -> None:
    text = "def f(A: f32[n], *, n=9):\n    for i in range(n):\n        A[i] = A[n - 1 - i]\n"
    assert kinds(deps(text), "A") == {"i": "serial"}
    half = text.replace("range(n)", "range(n // 2)")  # the halves do not meet
    assert kinds(deps(half), "A") == {"i": "independent"}
    assert kinds(deps(half, n="1..1000"), "A") == {"i": "independent"}
    assert kinds(deps(text, n="2..1000"), "A") == {"i": "serial"}


def test_triangular_loops() -> None:
    text = """
def f(L: f32[n, n], X: f32[n], B: f32[n], *, n=20):
    for i in range(n):
        X[i] = B[i]
        for j in range(i):
            X[i] -= L[i, j] * X[j]
"""
    found = deps(text)
    axes = {s.stage: kinds(found, s.stage) for s in found.stages}
    assert axes[found.stages[-1].stage] == {"i": "serial", "j": "serial"}
    assert found.groups == (("X",), ("X.2",))  # all right-hand sides first: X[j] is read for finished j < i only
    mirror = """
def f(A: f32[n, n], *, n=20):
    for i in range(n):
        for j in range(i):
            A[i, j] = A[j, i]
"""
    assert kinds(deps(mirror), "A") == {"i": "independent", "j": "independent"}
    assert kinds(deps(mirror.replace("range(i)", "range(n)")), "A") == {"i": "serial", "j": "serial"}


def test_gathers_read_freely_and_scatters_conflict() -> None:
    gather = """
def f(T: f32[v, d], I: s32[n], Y: f32[n, d], *, v=100, d=8, n=50):
    for i, j in grid(n, d):
        Y[i, j] = T[I[i], j]
"""
    assert kinds(deps(gather), "Y") == {"i": "independent", "j": "independent"}
    scatter = gather.replace("Y[i, j] = T[I[i], j]", "T[I[i], j] = Y[i, j]")
    found = deps(scatter)
    assert kinds(found, "T") == {"i": "serial", "j": "independent"}
    assert "depends on data" in str(found)
    added = gather.replace("Y[i, j] = T[I[i], j]", "T[I[i], j] += Y[i, j]")
    assert kinds(deps(added), "T") == {"i": "reduction", "j": "independent"}


def test_a_backward_dependence_keeps_two_statements_in_one_loop() -> None:
    text = """
def f(A: f32[n], B: f32[n], D: f32[n], *, n=30):
    for i in range(1, n):
        A[i] = B[i - 1]
        D[i] = 1.0
        B[i] = A[i]
"""
    found = deps(text)
    assert found.groups == (("A", "D", "B"),)
    assert str(found.carried[0]) == "A and B stay in one loop: B[i], written at i=1, is read at i=2 as B[i - 1]"
    assert found.together[0].axes[0].kind == "serial"
    forward = deps(text.replace("A[i] = B[i - 1]", "A[i] = 2.0"))
    assert forward.groups == (("A",), ("D",), ("B",))


def test_an_initialisation_above_another_stage_moves_with_its_own() -> None:
    """`b` starts at A[i] before `a` replaces it: run after all of `a`, it would read the new value."""
    text = """
def f(A: f32[n], b: f32[n], X: f32[n, n], *, n=8):
    for i in range(n):
        b[i] = A[i]
        A[i] = 1.0
        for j in range(n):
            b[i] += X[i, j]
"""
    found = deps(text)
    by_tensor = {c.conflict.tensor for c in found.carried}
    if [s.stage for s in found.stages] == ["A", "b"]:
        assert by_tensor == {"A"}
    else:  # the parser kept the initialisation as a stage of its own
        assert found.groups[0] == ("b",)


def test_guards_and_choices_are_used() -> None:
    text = """
def f(A: f32[n], *, n=40):
    for i in range(n):
        if i >= 20:
            A[i] = A[i - 20]
"""
    assert kinds(deps(text), "A") == {"i": "independent"}
    chosen = """
def f(A: f32[n], B: f32[n], *, n=40):
    for i in range(n):
        A[i] = A[i + 1] if i < 0 else B[i]
"""
    assert kinds(deps(chosen), "A") == {"i": "independent"}


def test_repeated_overwrites_are_serial() -> None:
    text = "def f(A: f32[n], Y: f32[1], *, n=9):\n    for i in range(n):\n        Y[0] = A[i]\n"
    assert kinds(deps(text), "Y") == {"i": "serial"}
    assert kinds(deps(text, n=1), "Y") == {"i": "independent"}


# Epilogues

RELU = MATMUL.replace("C: s32[m, n]", "C: s32[m, n], D: s32[m, n], S: s32[n]") + "    "


def fused(text: str, **sizes: Any) -> list[str]:
    return [str(e) for e in epilogues(parse(text, sizes=sizes))]


def after(tail: str, head: str = RELU) -> str:
    return head.rstrip() + "\n" + tail


def test_an_epilogue_needs_the_same_element_and_range() -> None:
    loops = "    for x, y in grid(m, n):\n        "
    assert fused(after(loops + "D[x, y] = max(C[x, y], 0) + S[y]\n")) == [
        "D on each finished element of C (i = x, j = y)"
    ]
    assert fused(after("    for x, y in grid(n, m):\n        D[y, x] = C[y, x]\n")) == [
        "D on each finished element of C (i = y, j = x)"
    ]
    assert fused(after(loops + "C[x, y] += S[y]\n")) == ["C.2 on each finished element of C (i = x, j = y)"]
    assert fused(after(loops + "C[x, y] = max(C[x, y], 0)\n")) == ["C.2 on each finished element of C (i = x, j = y)"]
    for refused in (
        loops + "D[x, y] = C[y, x]\n",  # another element (the transposed one is fused as such, see below)
        loops + "D[x, y] = C[x, y] + C[x, 0]\n",
        loops + "C[x, y] = 1\n",  # reads nothing of it
        "    for x, y in grid(m, n - 1):\n        D[x, y] = C[x, y]\n",
        "    for x, y in grid(m, n):\n        S[y] += C[x, y]\n",  # a reduction
        "    for x in range(n):\n        S[x] = C[x, x]\n",
        "    for x, y in grid(m, n):\n        if x < y:\n            D[x, y] = C[x, y]\n",
    ):
        expected = 1 if refused.endswith("D[x, y] = C[y, x]\n") else 0
        assert len(fused(after(refused))) == expected, refused


def test_an_epilogue_must_not_overtake_what_stands_between() -> None:
    loops = "    for x, y in grid(m, n):\n        D[x, y] = C[x, y] + S[y]\n"
    assert len(fused(after(loops))) == 1
    assert fused(after("    for z in range(n):\n        S[z] = 1\n" + loops)) == []
    assert fused(after("    for v, w in grid(m, n):\n        C[v, w] = 1\n" + loops)) == [
        "D on each finished element of C.2 (v = x, w = y)"
    ]


def test_an_epilogue_must_not_overwrite_what_the_producer_still_reads() -> None:
    text = """
def f(A: f32[n, n], B: f32[n, n], C: f32[n, n], *, n=8):
    for i, j in grid(n, n):
        C[i, j] = 0.0
        for p in range(n):
            C[i, j] += A[i, p] * B[p, j]
    for x, y in grid(n, n):
        A[x, y] = C[x, y]
"""
    assert fused(text) == []


def test_in_a_shared_loop_only_this_iterations_elements_are_finished() -> None:
    text = """
def f(C: f32[n, n], D: f32[n, n], *, n=8):
    for i in range(n):
        for j in range(n):
            C[i, j] = 1.0
        for k in range(n):
            D[i, k] = C[{index}]
"""
    assert fused(text.format(index="i, k")) == ["D on each finished element of C (i, j = k)"]
    assert fused(text.format(index="k, i")) == []


def chained(text: str) -> list[str]:
    stages = parse(text).stages
    return [e.consumer for e in epilogue_chain(stages[0], stages[1:])]


def test_a_chain_of_epilogues_runs_on_each_element_in_turn() -> None:
    text = """
def f(A: f32[n, n], S: f32[n], C: f32[n, n], D: f32[n, n], E: f32[n, n], *, n=8):
    for i, j in grid(n, n):
        C[i, j] = 0.0
        for p in range(n):
            C[i, j] += A[i, p] * A[p, j]
    for b, c in grid(n, n):
        C[b, c] += S[c]
    for x, y in grid(n, n):
        D[x, y] = max(C[x, y], 0.0)
    for z, w in grid(n, n):
        E[w, z] = C[w, z] * D[w, z]
"""
    assert chained(text) == ["C.2", "D", "E"]
    assert chained(text.replace("* D[w, z]", "* D[z, w]")) == ["C.2", "D"]  # that element of D may not be there yet
    # D would read elements of E that E, fused behind it, has replaced already.
    assert chained(text.replace("max(C[x, y], 0.0)", "C[x, y] + E[y, x]")) == ["C.2", "D"]
    assert chained(text.replace("max(C[x, y], 0.0)", "C[x, y] + E[x, y]")) == ["C.2", "D", "E"]


def test_an_epilogue_must_not_overwrite_an_initial_value() -> None:
    text = """
def f(A: f32[n, n], B: f32[n], C: f32[n, n], *, n=8):
    for i, j in grid(n, n):
        C[i, j] = B[{index}]
        for p in range(n):
            C[i, j] += A[i, p]
    for x, y in grid(n, n):
        A2[x, y] = C[x, y]
"""
    text = text.replace("B: f32[n]", "B: f32[n, n]").replace("A2[", "B[")
    assert fused(text.format(index="j, i")) == []
