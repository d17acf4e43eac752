"""Programs without an instruction: sums, extremes and rows of stages, with odd sizes, and how they are planned."""

from __future__ import annotations

from hypothesis import strategies as st
from support.plans import machine

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.programs.function import formulas_of
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.plan import Plan

SSE = machine(frozenset(), registers=16, vector_bytes=16)


def functions() -> FloatPolicy:
    """What `reassociated` leaves open, with the built-in functions."""
    return FloatPolicy(formulas=formulas_of(Catalogue.builtin().of_isa(kind="function")))


def scalar_plans(program: Program, target: Target | None = None, threads: int = 1, exact: bool = False) -> list[Plan]:
    """The plans of a program whose stages no instruction fits."""
    policy = FloatPolicy(reassociate=False) if exact else functions()
    return make_plans(program, target or machine(), {}, threads, policy)


ROWS = """
def rows(X: f32[m, n], G: f32[n], Y: f32[m, n], *, m=5, n=37):
    M: f32[m]
    S: f32[m]
    for i in range(m):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], X[i, j])
        S[i] = 0
        for j in range(n):
            S[i] += exp(X[i, j] - M[i])
        for j in range(n):
            Y[i, j] = exp(X[i, j] - M[i]) / S[i] + tanh(G[j]) * rsqrt(S[i] + 1e-5)
"""

DOWN = """
def down(A: f32[k, n], x: f32[k], y: f32[n], *, k=19, n=75):
    for j in range(n):
        y[j] = 1
        for p in range(k):
            y[j] += x[p] * A[p, j]
"""

TEXTS = {"rows": ROWS, "down": DOWN}


def program(name: str, **sizes: int) -> Program:
    return parse(TEXTS[name], filename=f"{name}.py", sizes={k: str(v) for k, v in sizes.items()})


@st.composite
def reduction_texts(draw: st.DrawFn) -> str:
    """A sum, product or extreme over one or two axes of one or two tensors, some with guards or without a start."""
    t, acc = draw(st.sampled_from([("f32", "f32"), ("bf16", "f32"), ("u8", "s32"), ("s32", "s32"), ("f64", "f64")]))
    m, n = draw(st.integers(1, 9)), draw(st.sampled_from([1, 3, 4, 15, 16, 17, 33, 70, 131]))
    deep = draw(st.sampled_from([1, 1, 3]))
    transposed = draw(st.booleans())
    a = "A[q, j, i]" if transposed else "A[q, i, j]"
    shape = f"{deep}, {n}, {m}" if transposed else f"{deep}, {m}, {n}"
    term = draw(st.sampled_from([f"{acc}({a})", f"{acc}({a}) * {acc}(B[j])", f"{acc}({a}) * C[i]"]))
    op = draw(st.sampled_from(["+=", "+=", "-=", "max", "min"]))
    update = f"Y[i] = {op}(Y[i], {term})" if op in ("max", "min") else f"Y[i] {op} {term}"
    start = draw(st.sampled_from(["Y[i] = 0", "Y[i] = C[i]", ""]))
    guard = draw(st.sampled_from(["", "", "", "if i <= j:", "if M[j] > 0:", "if j < 11 and i < 5:"]))
    lines = [f"def f(A: {t}[{shape}], B: {t}[{n}], C: {acc}[{m}], M: s32[{n}], Y: {acc}[{m}]):"]
    lines.append(f"    for i in range({m}):")
    lines += [f"        {start}"] if start else []
    lines.append(f"        for q, j in grid({deep}, {n}):")
    pad = "            "
    if guard:
        lines.append(pad + guard)
        pad += "    "
    return "\n".join([*lines, pad + update]) + "\n"
