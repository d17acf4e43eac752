"""Which loops may run as one, a few iterations at a time: known programs, and every verdict against its definition."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.loop_trace import run
from support.match.examples import examples

from autosched.ir import Program, parse
from autosched.tiling.analysis.shared_axis import may_share

PRODUCT = """
def f(X: f32[4, 5], W: f32[5, 6], V: f32[6, 3], Y: f32[4, 3]):
    H: f32[{rows}, 6]
    for i, j in grid({rows}, 6):
        H[i, j] = 0.0
        for p in range(5):
            H[i, j] += X[i % 4, p] * W[p, j]
    for r, c in grid(4, 3):
        Y[{row}, c] = 0.0
        for q in range(6):
            Y[{row}, c] += H[{read}, q] * V[q, c]
"""


def axes_of(program: Program) -> dict[str, str]:
    """The outermost loop of each stage."""
    return {s.name: s.axes[0].name for s in program.stages}


@pytest.mark.parametrize(
    ("rows", "row", "read", "shared"),
    [
        (4, "r", "r", True),
        (4, "0", "r", False),  # all iterations add to one row
        (4, "r", "3 - r", False),
        (4, "r", "(r + 1) % 4", False),
        (5, "r", "r + 1", False),  # and the loops differ
        (4, "3 - r", "r", True),  # nobody else touches the rows of Y
        (4, "r", "0", False),
    ],
)
def test_iterations_of_a_shared_loop_touch_nothing_in_common(rows: int, row: str, read: str, shared: bool) -> None:
    program = parse(PRODUCT.format(rows=rows, row=row, read=read), filename="f.py")
    axes = axes_of(program)
    assert may_share(program, axes) is shared


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Two or three loops of four over vectors and matrices of a few elements."""
    lines = []
    for k in range(draw(st.integers(2, 3))):
        i, j = f"i{k}", f"j{k}"
        lines += [f"    for {i} in range(4):", f"        for {j} in range(3):"]
        subscripts = st.sampled_from([i, i, i, i, j, f"{i} + 1", f"3 - {i}", f"{i} // 2", "2"])
        elements = st.one_of(
            st.tuples(st.sampled_from("VU"), subscripts).map(lambda e: f"{e[0]}[{e[1]}]"),
            st.tuples(subscripts, subscripts).map(lambda e: f"W[{e[0]}, {e[1]}]"),
        )
        op = draw(st.sampled_from(["=", "+="]))
        lines.append(f"            {draw(elements)} {op} {draw(elements)} + X[0]")
    return "def f(V: f32[8], U: f32[8], W: f32[8, 8], X: f32[1]):\n" + "\n".join(lines) + "\n"


@examples(60)
@given(texts())
def test_random_loops(text: str) -> None:
    program = parse(text, filename="f.py")
    axes = axes_of(program)
    instances = list(run(program.body, {}))
    shared = True
    for x, y in product(instances, instances):
        at = [next(v for n, v in z.at.items() if n.startswith("i")) for z in (x, y)]
        shared &= at[0] == at[1] or not x.meets(y)
    event(f"shared: {shared}")
    assert may_share(program, axes) is shared
