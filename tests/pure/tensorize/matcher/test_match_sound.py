"""Every mapping that is reported, executed tile by tile, computes what the program computes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.match.match_executor import execute

from autosched.ir import parse
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.tensorize import Catalogue, Intrinsic, match, to_json
from autosched.tensorize.spec.load import load_text

CATALOGUE = Catalogue.builtin()


def made_up(semantics: str, numerics: str = "{accumulate: exact}") -> Intrinsic:
    body = "".join(f"      {line}\n" for line in semantics.strip().splitlines())
    text = f"isa: test\nintrinsics:\n  - name: made.up\n    semantics: |\n{body}    numerics: {numerics}\n"
    return load_text(text)[0]


def random_arrays(program: Program, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, tensor in program.tensors.items():
        shape = tuple(tensor.extents)
        if tensor.dtype.is_integer:
            low, high = tensor.dtype.limits
            if name == "idx":
                low, high = 0, 2
            for a in program.assumptions:
                if a.subject == name:
                    low = low if a.low is None else max(low, int(a.low))
                    high = high if a.high is None else min(high, int(a.high))
            arrays[name] = rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(tensor.dtype.numpy)
        else:
            arrays[name] = rng.integers(-4, 5, shape).astype(tensor.dtype.numpy)
    return arrays


def check(program: Program, intrinsic: Intrinsic, seed: int, numerics: str = "reassociated", most: int = 12) -> int:
    """Executes up to `most` mappings; answers how many there were."""
    (found,) = match(program, [intrinsic], numerics)
    json.dumps(to_json(found), allow_nan=False)
    if found.verdict == "no" and found.reason is not None and found.reason.counterexample is not None:
        example = found.reason.counterexample
        assert example["program"] != example["intrinsic"]
    arrays = random_arrays(program, seed)
    scalars = dict.fromkeys(program.scalars, 3)
    want = run(program, {n: a for n, a in arrays.items() if n in program.inputs}, scalars)
    for mapping in found.mappings[:: -(-len(found.mappings) // most) or 1]:
        if mapping.conditions:
            continue
        if mapping.adapters:  # what the adapters made of the program; its plain match is the other tests' business
            inputs = {n: a for n, a in arrays.items() if n in program.inputs}
            for name, got in run(mapping.program, inputs, scalars).items():
                np.testing.assert_array_equal(got, want[name], err_msg=f"{program}\n{mapping.program}")
            continue
        copies = {n: a.copy() for n, a in arrays.items()}
        target = mapping.stage.assign.tensor
        got = execute(mapping, copies)
        np.testing.assert_array_equal(got, want[target], err_msg=f"{program}\n{intrinsic.program}\n{mapping.axes}")
    return found.mapping_count


CASES = {
    "matmul": "C[i, j] += s32(A[i, p]) * s32(B[p, j])",
    "commuted": "C[i, j] += s32(B[p, j]) * s32(A[i, p])",
    "transposed": "C[j, i] += s32(A[p, i]) * s32(B[j, p])",
    "reversed": "C[i, j] += s32(A[i, 6 - p]) * s32(B[6 - p, j])",
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "intrinsic", ["x86/vpdpbusd.ymm", "x86/vpdpbusds.ymm", "cuda/dp4a.u8.s8", "portable/mac.u8.s8.s32.v4"]
)
@pytest.mark.parametrize("init", ["C[i, j] = 0", ""])
def test_integer_matmuls(name: str, intrinsic: str, init: str) -> None:
    out = CASES[name].split(" +=")[0]
    head = f"        {out} = 0\n" if init else ""
    program = parse(
        "def f(A: u8[7, 7], B: s8[7, 7], C: s32[7, 7]):\n    for i, j in grid(5, 7):\n"
        + head
        + f"        for p in range(7):\n            {CASES[name]}\n"
    )
    count = check(program, CATALOGUE[intrinsic], 1)
    clamps_live_values = "dpbusds" in intrinsic and not init
    assert count == (1 if "dp4a" in intrinsic else 3), "live values make every mapping conditional, not fewer"
    if clamps_live_values:
        (found,) = match(program, [CATALOGUE[intrinsic]])
        assert found.verdict == "conditional"


SQUARE = """
def m(a: u8[4, 3], b: s8[3, 2], c: s32[4, 2]):
    for i, j, k in grid(4, 2, 3):
        c[i, j] += s32(a[i, k]) * s32(b[k, j])
"""
CONV = """
def conv(X: u8[1, h, w, ci], W: s8[kh, kw, ci, co], Y: s32[1, ho, wo, co],
         *, h=3, w=3, ci=2, co=2, kh=3, kw=2, stride=1, pad=1):
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    for b, y, x, o in grid(1, ho, wo, co):
        Y[b, y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            if 0 <= y * stride + r - pad < h and 0 <= x * stride + s - pad < w:
                Y[b, y, x, o] += s32(X[b, y * stride + r - pad, x * stride + s - pad, c]) * s32(W[r, s, c, o])
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_with_guards(stride: int) -> None:
    program = parse(CONV, sizes={"stride": stride})
    square = made_up(SQUARE)
    assert check(program, square, 2, most=12) == 49
    assert check(program, CATALOGUE["x86/vpdpbusd.ymm"], 3, most=6) == 15 * 7


GATHER = """
def f(A: u8[3, 5], idx: s32[4], B: s8[5, 3], C: s32[4, 3]):
    for i, j in grid(4, 3):
        for k in range(5):
            C[i, j] += s32(A[idx[i], k]) * s32(B[k, j])
"""
TRIANGLE = """
def f(A: u8[6, 6], B: s8[6, 3], C: s32[6, 3]):
    for i, j in grid(6, 3):
        for k in range(i + 1):
            C[i, j] += s32(A[i, k]) * s32(B[k, j])
"""
BAND = """
def f(A: u8[6, 6], B: s8[6, 6], C: s32[6, 6]):
    for i, j in grid(6, 6):
        for k in range(6):
            if i + j <= 5:
                C[i, j] += s32(A[i, k]) * s32(B[k, j])
"""


def test_gather_and_triangle() -> None:
    gather = parse(GATHER)
    assert check(gather, CATALOGUE["x86/vpdpbusd.ymm"], 4) == 3
    triangle = parse(TRIANGLE)
    square = made_up(SQUARE)
    assert check(triangle, square, 5) == 1
    band = parse(BAND)
    assert check(band, square, 6) == 1


AXES = "ijklm"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A random contraction over up to five axes, with strided, shifted or summed indices and a guard now and then."""
    n_spatial, n_reduction = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    spatial, reduction = AXES[:n_spatial], AXES[3 : 3 + n_reduction]
    extents = {a: draw(st.integers(1, 4)) for a in spatial + reduction}

    def index(name: str) -> tuple[str, str]:
        chosen = draw(st.lists(st.sampled_from(spatial + reduction), min_size=1, max_size=3, unique=True))
        parts, shape = [], []
        while chosen:
            axis = chosen.pop()
            if chosen and draw(st.booleans()):
                other = chosen.pop()
                step = draw(st.integers(1, 2))
                parts.append(f"{axis} * {step} + {other}")
                shape.append((extents[axis] - 1) * step + extents[other])
            elif draw(st.integers(0, 3)) == 0:
                parts.append(f"{extents[axis] - 1} - {axis}")
                shape.append(extents[axis])
            else:
                parts.append(axis)
                shape.append(extents[axis])
        return f"{name}[{', '.join(parts)}]", ", ".join(map(str, shape))

    a, a_shape = index("A")
    b, b_shape = index("B")
    if draw(st.integers(0, 9)) == 0:
        b, b_shape = a.replace("A", "B"), a_shape
    ta, tb = draw(st.sampled_from(["u8", "s8"])), draw(st.sampled_from(["u8", "s8"]))
    chosen = f"({a} if {spatial[0]} + {(spatial + reduction)[-1]} <= {draw(st.integers(0, 4))} else 0)"
    terms = (
        [f"s32({a}) * s32({b})"] * 5
        + [f"s32({chosen}) * s32({b})"] * 2
        + [
            f"s32({a}) + s32({b})",
            f"s32(s16({a}) * s16({b}))",
            f"abs(s32({a}) - s32({b}))",
        ]
    )
    term = draw(st.sampled_from(terms))
    op = draw(st.sampled_from(["+="] * 8 + ["-="]))
    out = ", ".join(draw(st.permutations(spatial)))
    out_shape = ", ".join(str(extents[x.strip()]) for x in out.split(","))
    order = draw(st.permutations(list(spatial + reduction)))
    text = f"def f(A: {ta}[{a_shape}], B: {tb}[{b_shape}], C: s32[{out_shape}]):\n"
    pad = "    "
    for axis in order:
        text += f"{pad}for {axis} in range({extents[axis]}):\n"
        pad += "    "
    if draw(st.integers(0, 3)) == 0:
        guarded = draw(st.lists(st.sampled_from(list(spatial + reduction)), min_size=1, max_size=2, unique=True))
        text += f"{pad}if {' + '.join(guarded)} <= {draw(st.integers(0, 4))}:\n"
        pad += "    "
    return text + f"{pad}C[{out}] {op} {term}\n"


@st.composite
def instructions(draw: st.DrawFn) -> str:
    """A random small instruction: one or two spatial axes, at most one reduction, compound indices now and then."""
    spatial, reduction = "ij"[: draw(st.integers(1, 2))], "k"[: draw(st.integers(0, 1))]
    extents = {a: draw(st.integers(2, 4)) for a in spatial + reduction}

    def operand(name: str) -> tuple[str, str]:
        chosen = draw(st.lists(st.sampled_from(spatial + reduction), min_size=1, max_size=3, unique=True))
        if len(chosen) > 1 and draw(st.integers(0, 2)) == 0:
            x, y, *rest = chosen
            parts, shape = [f"{x} + {y}", *rest], [extents[x] + extents[y] - 1, *(extents[r] for r in rest)]
        else:
            parts, shape = list(chosen), [extents[c] for c in chosen]
        return f"{name}[{', '.join(parts)}]", ", ".join(map(str, shape))

    a, a_shape = operand("a")
    b, b_shape = operand("b")
    ta, tb = draw(st.sampled_from(["u8", "s8"])), draw(st.sampled_from(["u8", "s8"]))
    if draw(st.integers(0, 7)) == 0:
        clamped = f"c[{', '.join(spatial)}] = sat_s32(s64(c[{', '.join(spatial)}]) + s64({a}) * s64({b}))"
        if not reduction:
            head = (
                f"def f(a: {ta}[{a_shape}], b: {tb}[{b_shape}], c: s32[{', '.join(str(extents[x]) for x in spatial)}]):"
            )
            loops = "".join(f"{'  ' * (n + 1)}for {x} in range({extents[x]}):\n" for n, x in enumerate(spatial))
            return f"{head}\n{loops}{'  ' * (len(spatial) + 1)}{clamped}"
    term = draw(st.sampled_from([f"s32({a}) * s32({b})"] * 5 + [f"s32({a}) + s32({b})", f"abs(s32({a}) - s32({b}))"]))
    shape = ", ".join(str(extents[x]) for x in spatial)
    out = f"c[{', '.join(spatial)}]"
    grid = f"for {', '.join(spatial + reduction)} in grid({', '.join(str(extents[x]) for x in spatial + reduction)}):"
    if len(extents) == 1:
        grid = f"for {spatial} in range({extents[spatial]}):"
    return f"def f(a: {ta}[{a_shape}], b: {tb}[{b_shape}], c: s32[{shape}]):\n  {grid}\n    {out} += {term}"


SEEN: dict[str, int] = {}


@pytest.mark.slow
@examples(120)
@given(programs(), instructions(), st.integers(0, 1000), st.integers(0, 3))
def test_random_mappings_compute_the_program(program: str, instruction: str, seed: int, family: int) -> None:
    numerics = "{accumulate: exact}"
    if family == 0 and "sat_" not in instruction:  # small whole numbers, of which every float sum is exact
        for integer, real in (("u8", "f16"), ("s8", "f16"), ("s16", "f32"), ("s32", "f32")):
            program, instruction = (t.replace(integer, real) for t in (program, instruction))
        numerics = "{accumulate: unordered}"
    parsed, intrinsic = parse(program), made_up(instruction, numerics)
    count = check(parsed, intrinsic, seed, most=6)
    SEEN["mapped" if count else "not"] = SEEN.get("mapped" if count else "not", 0) + 1


def test_the_random_pairs_are_not_all_refused() -> None:
    assert not SEEN or SEEN.get("mapped", 0) >= 20, SEEN
