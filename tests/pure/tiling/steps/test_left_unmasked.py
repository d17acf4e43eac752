"""Past the end of a reduction one factor holds zeros, and the other is loaded whole: three taps on a dot product of
four. Of floats both are masked, since what stands beside a zero could be a NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.plans import AVX512, machine, plans_of
from support.programs.copies import DEPTHWISE, FLOATS, UNPACKED, rows_with

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, Kernel, statements
from autosched.ir import parse, random_inputs, run
from autosched.ir.program import Program
from autosched.logic import TRUE
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps import DIRECT, PADDED
from autosched.tiling.steps.cpu.fills import freed, holders, runs_on
from autosched.tiling.steps.cpu.pack import LABELS

ONLY = ("x86/v*",)
TARGETS = (machine(), machine(AVX512 - {"avx512f"}, 16, 32), machine(frozenset({"avx2", "fma"}), 16, 32))
TYPES = [("u8", "s8", "s32"), ("s8", "s8", "s32"), ("s16", "s16", "s32"), ("u8", "u8", "s32")]
PAIRS = {"t": "s16", "u": "s16"}
INSIDE = """
def inside(X: t[c, h, w], W: u[c, k], Y: acc[c, h, wo], *, c=3, h=5, w=36, k=3, stride=2, t="u8", u="s8", acc="s32"):
    wo = (w - k - 1) // stride + 1
    for o, y, x in grid(c, h, wo):
        Y[o, y, x] = 0
        for s in range(k):
            Y[o, y, x] += acc(X[o, y, x * stride + s]) * acc(W[o, s])
"""
"""A line of the image ends at least one pixel behind the last window."""


def plan_of(program: Program) -> Plan:
    return next(p for p in plans_of(program, only=ONLY) if "←s" in p.name)


def kernel_of(plan: Plan, kind: int) -> Kernel:
    """A kernel that reads the image in this way, and the weights where they are."""
    image, weights = (f"pack_{operand(plan, tensor)}" for tensor in "XW")
    schedules = map(plan.space.schedule, rows_with(plan, LABELS[kind], 50))
    return lower(plan, next(s for s in schedules if s.values[image] == kind and s.values[weights] == DIRECT))


def operand(plan: Plan, tensor: str) -> str:
    """What the instruction calls a tensor."""
    return next(o for o, read in plan.mappings[0].operands.items() if read.tensor == tensor)


def masked(plan: Plan, kernel: Kernel, tensor: str) -> bool:
    """Whether some load of a tensor is masked along the reduction: by the lane's number modulo a group's size."""
    register = f"{operand(plan, tensor)}_reg"
    loads = [s for s in statements(kernel.main.body) if isinstance(s, Assign) and s.buffer == register]
    assert loads
    return any("%" in str(s.valid) for s in loads if s.valid != TRUE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sizes", [{}, PAIRS, {"stride": 1}, {"w": 7}, {"k": 5}, {"t": "u8", "u": "s8", "h": 1}])
def test_zeros_that_a_masked_load_leaves_free_the_copy_beside_them(sizes: dict[str, int | str]) -> None:
    plan = plan_of(parse(UNPACKED, sizes=sizes))
    kernel = kernel_of(plan, PADDED)
    assert not masked(plan, kernel, "X")
    assert masked(plan, kernel, "W")


@pytest.mark.slow
def test_the_cheaper_masks_stay_whichever_operand_they_are_on() -> None:
    """Weights are one group for all lanes; the image is every second pixel of a line, in groups that overlap."""
    turned = UNPACKED.replace("+= acc(X", "+= acc(W[o, r, s]) * acc(X").replace(" * acc(W[o, r, s])\n", "\n")
    for text in (UNPACKED, turned):
        for plan in (p for p in plans_of(parse(text), only=ONLY) if "←s" in p.name):
            nest = plan.tensor_parts[0].nest
            assert nest.depth is not None
            assert holders(nest, nest.depth) == {operand(plan, "W")}
            assert freed(nest, operand(plan, "X")) == (nest.depth,)


def test_floats_keep_both_masks() -> None:
    plan = plan_of(parse(UNPACKED, sizes=FLOATS))
    kernel = kernel_of(plan, PADDED)
    assert masked(plan, kernel, "X")
    assert masked(plan, kernel, "W")


@pytest.mark.parametrize("text", [DEPTHWISE, DEPTHWISE.replace("const[u[k, k, c]]", "u[k, k, c]")])
def test_a_mask_that_leaves_out_whole_loads_stays(text: str) -> None:
    """Channels last, a register is 16 channels of each of four pixels: of the last none is loaded, which is less than a
    load of what nobody needs. Depthwise 56x56x128 on Zen 3: 5 % faster (median of twelve rows)."""
    plans = [p for p in plans_of(parse(text), only=("x86/vpdpbusd.zmm",)) if "(i←o, k←" in p.name]
    assert plans
    for plan in plans:
        image = operand(plan, "X")
        assert not freed(plan.tensor_parts[0].nest, image)
        row = next(rows_with(plan, "padded"))
        assert masked(plan, lower(plan, plan.space.schedule(row)), "X")


@pytest.mark.parametrize("kind", ["direct", "padded"])
def test_a_nan_past_the_end_of_a_line_of_the_window_reaches_nobody(kind: str) -> None:
    program = parse(UNPACKED, sizes={**FLOATS, "w": 11})
    arrays = random_inputs(program, np.random.default_rng(3))
    image = arrays["X"].copy()
    image[:, :, 6] = np.asarray(np.nan, image.dtype)
    arrays["X"] = image
    wanted = np.isnan(np.asarray(run(program, arrays)["Y"], np.float64))
    assert wanted.any()
    assert not wanted.all()
    plan = plan_of(program)
    for row in rows_with(plan, kind, 2):
        found = run_kernel(lower(plan, plan.space.schedule(row)), arrays, {})
        assert np.array_equal(np.isnan(np.asarray(found["Y"], np.float64)), wanted)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("sizes", "whole"), [({}, True), ({"w": 35, "stride": 1}, True), (FLOATS, False)])
def test_a_tensor_with_room_behind_the_last_window_is_read_whole(sizes: dict[str, int | str], whole: bool) -> None:
    program = parse(INSIDE, sizes=sizes)
    plan = plan_of(program)
    assert bool(runs_on(plan.tensor_parts[0].nest, operand(plan, "X"))) == whole
    assert masked(plan, kernel_of(plan, DIRECT), "X") != whole
    assert disagreement(plan, rows_with(plan, "direct", 3)) is None


def test_a_tensor_that_ends_with_its_last_window_is_not_read_past_its_end() -> None:
    """The last window of each line ends where the line does: a fourth pixel is the next line's, or nobody's."""
    program = parse(INSIDE.replace("(w - k - 1)", "(w - k)"), sizes={"w": 35})
    plan = plan_of(program)
    assert not runs_on(plan.tensor_parts[0].nest, operand(plan, "X"))
    assert masked(plan, kernel_of(plan, DIRECT), "X")
    assert disagreement(plan, rows_with(plan, "direct", 3)) is None


@st.composite
def windows(draw: st.DrawFn) -> str:
    """A convolution of lines or planes, one channel or many, with odd sizes, borders, strides and dilations; weights
    known or not."""
    t, u, acc = draw(st.sampled_from(TYPES))
    k, stride, dilation = draw(st.integers(2, 7)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2]))
    c, h = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    w = draw(st.integers(dilation * (k - 1) + 1, 40))
    pad = draw(st.integers(0, 2))
    rows = draw(st.sampled_from([1, 3]))
    out = (w + 2 * pad - dilation * (k - 1) - 1) // stride + 1
    kind = draw(st.sampled_from(["{}", "const[{}]"])).format(f"{u}[{c}, {rows}, {k}]")
    x = f"x * {stride} + s * {dilation} - {pad}"
    y = "y + r - 1" if rows > 1 else "y + r"
    guards = [f"0 <= {y} < {h}"] * (rows > 1) + [f"0 <= {x} < {w}"] * (pad > 0)
    lines = [
        f"def f(X: {t}[{c}, {h}, {w}], W: {kind}, Y: {acc}[{c}, {h}, {out}]):",
        f"    for o, y, x in grid({c}, {h}, {out}):",
        "        Y[o, y, x] = 0",
        f"        for r, s in grid({rows}, {k}):",
        *([f"            if {' and '.join(guards)}:"] if guards else []),
        f"{' ' * (16 if guards else 12)}Y[o, y, x] += {acc}(X[o, {y}, {x}]) * {acc}(W[o, r, s])",
    ]
    return "\n".join(lines)


@pytest.mark.slow
@examples(12)
@given(windows(), st.integers(0, len(TARGETS) - 1), st.integers(1, 2), st.integers(0, 2**31))
def test_windows_compute_the_program(text: str, target: int, threads: int, seed: int) -> None:
    program = parse(text)
    expected = expect(program, seed)
    plans = [p for p in plans_of(program, TARGETS[target], threads=threads) if p.tensor_parts]
    for plan in plans[:3]:
        rows = [r for kind in ("padded", "direct", "interleaved") for r in rows_with(plan, kind, 1)]
        assert disagreement(plan, rows, expected) is None
