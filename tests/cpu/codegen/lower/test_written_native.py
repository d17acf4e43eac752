"""Instructions that overwrite their target, in kernels: the loop-tree interpreter, machine code and exported C of
random elementwise programs (`tests/fuzz/written.py`), and each of the catalogue's on this CPU against numpy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.written import random_program
from hypothesis import given
from hypothesis import strategies as st
from support.cards.emulated import emulator, run_c, run_object
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.compiled.one_row import agrees, extremes, one_row, wrapped
from support.match.agreement import Expected, disagreement, expect
from support.match.computes import CATALOGUE
from support.match.examples import examples
from support.plans import machine, plans_of, this_machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import IntrinsicCall, Kernel
from autosched.ir import parse, run, run_with_error
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.host import host_features
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan

AVX512BW = machine(frozenset(["avx2", "fma", "avx512f", "avx512vl", "avx512bw"]))


NEON = load_target("arm-neoverse-v1")


def written(program: Program, target: Target) -> list[Plan]:
    """The plans with an instruction that overwrites its target."""
    plans = plans_of(program, target)
    return [p for p in plans if any(not t.nest.intrinsic.accumulates for t in p.tensor_parts)]


def kernels(program: Program, count: int, seed: int) -> list[Kernel]:
    made: list[Kernel] = []
    rng = np.random.default_rng(seed)
    plans = written(program, this_machine())
    for n in rng.permutation(len(plans))[:2]:
        made += [lower(plans[n], plans[n].space.schedule(int(row))) for row in plans[n].space.sample(count, rng)]
    return made


@pytest.mark.sampled("x86")
@examples(6)
@given(st.integers(0, 10**6))
@pytest.mark.parametrize("target", [AVX512BW, NEON], ids=lambda t: t.isa)
def test_the_interpreter_computes_the_program(target: Target, seed: int) -> None:
    _interpreted(seed, target)


@pytest.mark.slow
@examples(30)
@given(st.integers(0, 10**6))
@pytest.mark.parametrize("target", [AVX512BW, NEON], ids=lambda t: t.isa)
def test_the_interpreter_computes_many_programs(target: Target, seed: int) -> None:
    _interpreted(seed, target)


def _interpreted(seed: int, target: Target) -> None:
    program = random_program(seed, 700)
    expected, rng = expect(program, seed), np.random.default_rng(seed)
    plans = written(program, target)
    for n in rng.permutation(len(plans))[:2]:
        assert disagreement(plans[n], map(int, plans[n].space.sample(1, rng)), expected) is None


@pytest.mark.x86
@examples(5)
@given(st.integers(0, 10**6))
def test_machine_code(seed: int) -> None:
    _machine_code(seed)


@pytest.mark.slow
@pytest.mark.x86
@examples(24)
@given(st.integers(0, 10**6))
def test_machine_code_of_many(seed: int) -> None:
    _machine_code(seed)


def _machine_code(seed: int) -> None:
    program = random_program(seed)
    if made := kernels(program, 3, seed):
        check_machine_code(made, expect(program, seed))


@pytest.mark.slow
@needs_compiler
@pytest.mark.x86
@pytest.mark.compiler
@pytest.mark.parametrize("first", [0, pytest.param(10, marks=pytest.mark.slow)])
def test_exported_c(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + 3 if first == 0 else first + 12)
    made = [(k, expect(p, s)) for s in seeds for p in [random_program(s)] for k in kernels(p, 1, s)]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path)


@pytest.mark.slow
def test_machine_code_and_c_of_arm(tmp_path: Path) -> None:
    """Under an emulator, as LLVM's object and as exported C."""
    found, rng, run = emulator("arm"), np.random.default_rng(0), 0
    for seed in range(40):
        program = random_program(seed, 700)
        plans = written(program, NEON)
        expected = expect(program, seed)
        if expected.scalars:
            continue
        for n in rng.permutation(len(plans))[:1]:
            kernel = lower(plans[n], plans[n].space.schedule(int(plans[n].space.sample(1, rng)[0])))
            assert expected.difference(run_object(found, kernel, NEON, expected.arrays)) is None, seed
            if seed % 3 == 0:
                assert expected.difference(run_c(found, kernel, expected.arrays, tmp_path)) is None, seed
            run += 1
    assert run >= 15


def test_nothing_is_read_of_what_is_overwritten() -> None:
    """Neither memory nor registers, and the text of the kernel does not name the register as an operand."""
    program = parse("def f(A: u8[70], B: u8[70], C: u8[70]):\n for i in range(70):\n  C[i] = max(A[i], B[i])\n")
    plan = written(program, AVX512BW)[0]
    kernel = lower(plan, plan.space.schedule(int(next(iter(plan.space.sample(1, np.random.default_rng(0)))))))
    assert "C" not in kernel.program.inputs
    assert any(isinstance(s, IntrinsicCall) for s in kernel.statements)
    assert "c=acc" not in str(kernel)


def test_what_a_guard_leaves_out_is_not_written() -> None:
    """Not even with what was there: another part of the tensor may be someone else's."""
    text = "def f(A: s8[9, 9], C: s8[9, 9]):\n for y, x in grid(9, 9):\n  if x > y:\n   C[y, x] = abs(A[y, x])\n"
    for plan in written(parse(text), AVX512BW):
        assert all(str(t.nest.written) != "true" for t in plan.tensor_parts)
        assert disagreement(plan, map(int, plan.space.sample(2, np.random.default_rng(0)))) is None


def test_a_stage_behind_a_guarded_one_is_not_fused() -> None:
    """It also reads the elements that the guard leaves as they were."""
    text = """
def f(A: u8[40], B: u8[40], D: u8[40]):
    C: u8[40]
    for i in range(40):
        C[i] = 9
    for i in range(40):
        if i < 21:
            C[i] = max(A[i], B[i])
    for i in range(40):
        D[i] = C[i] + 1
"""
    plans = written(parse(text), AVX512BW)
    assert plans
    for plan in plans:
        assert all(not t.epilogue and t.start is None for t in plan.tensor_parts)
        assert disagreement(plan, map(int, plan.space.sample(2, np.random.default_rng(1)))) is None


Wide = Any
ORACLES: dict[str, tuple[str, Callable[[Wide, Wide], Wide]]] = {
    "vpavgb": ("u8", lambda a, b: (a + b + 1) // 2),
    "vpavgw": ("u16", lambda a, b: (a + b + 1) // 2),
    "vpmulhrsw": ("s16", lambda a, b: np.floor_divide(np.floor_divide(a * b, 16384) + 1, 2)),
    "vpmulhw": ("s16", lambda a, b: np.floor_divide(a * b, 65536)),
    "vpmulhuw": ("u16", lambda a, b: a * b // 65536),
}
for _letters, _type in (("sb", "s8"), ("sw", "s16"), ("usb", "u8"), ("usw", "u16")):
    _ends = np.iinfo(np.dtype(_type.replace("s", "int").replace("u", "uint")))
    ORACLES[f"vpadd{_letters}"] = _type, lambda a, b, e=_ends: np.clip(a + b, e.min, e.max)
    ORACLES[f"vpsub{_letters}"] = _type, lambda a, b, e=_ends: np.clip(a - b, e.min, e.max)
for _letters, _type in (("sb", "s8"), ("ub", "u8"), ("sw", "s16"), ("uw", "u16"), ("sd", "s32"), ("ud", "u32")):
    ORACLES[f"vpmax{_letters}"] = _type, np.maximum
    ORACLES[f"vpmin{_letters}"] = _type, np.minimum
for _letters, _type in (("b", "s8"), ("w", "s16"), ("d", "s32")):
    ORACLES[f"vpabs{_letters}"] = _type, lambda a, b: np.abs(a)
ORACLES |= {"vpmaxsq": ("s64", np.maximum), "vpminsq": ("s64", np.minimum)}
ORACLES |= {"vpmaxuq": ("u64", np.maximum), "vpminuq": ("u64", np.minimum), "vpabsq": ("s64", lambda a, b: np.abs(a))}
MEMBERS = [f"x86/{name}.{width}" for name in ORACLES for width in ("ymm", "zmm")]


CLAMPS = [f"vpmovs{t}" for t in ("wb", "db", "dw", "qd")] + [f"vpmovus{t}" for t in ("wb", "db", "dw", "qd")]
CONVERSIONS = [f"x86/{name}.zmm" for name in (*CLAMPS, "vpmaxsd.vpmovusdb", "vpmaxsw.vpmovuswb")]
CONVERSIONS += [f"x86/{name}.ymm" for name in ("vpmovswb", "vpmovsdw", "vpmovuswb", "vpmovusdw")]
CONVERSIONS += [f"x86/{n}.{width}" for n in ("vcvtps2ph", "vcvtph2ps", "vcvtneps2bf16") for width in ("ymm", "zmm")]
CONVERSIONS += ["x86/vcvtne2ps2bf16.zmm"]
CONVERSIONS += [f"x86/v{op}.vpermq.ymm" for op in ("packssdw", "packusdw", "packsswb", "packuswb")]
CONVERSIONS += [f"x86/vpackssdw.v{op}.vpermd.ymm" for op in ("packsswb", "packuswb")]


def test_every_one_has_an_oracle() -> None:
    """Of the catalogue's, by the files that they stand in."""
    files = ("elementwise_integer.yaml", "conversions.yaml")
    listed = [n for n in CATALOGUE if n.startswith("x86/") and CATALOGUE[n].path.endswith(files)]
    assert sorted(MEMBERS + CONVERSIONS) == sorted(listed)


@needs_compiler
@pytest.mark.x86
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", MEMBERS)
def test_on_this_cpu_against_numpy(name: str, tmp_path: Path) -> None:
    dtype, oracle = ORACLES[name.partition("/")[2].partition(".")[0]]
    kernel, arrays = one_row(name)
    wide = object if dtype.endswith("64") else np.int64
    a, b = (arrays.get(n, arrays["a"]).astype(wide) for n in "ab")
    agrees(kernel, arrays, wrapped(oracle(a, b), arrays["a"].dtype), tmp_path)


FLUSHING = tuple(f"2bf16.{width}" for width in ("ymm", "zmm"))


BITS: dict[str, Callable[..., Wide]] = {
    "vpternlog.select": lambda a, b, d: (a & b) | (~a & d),
    "vpternlog.majority": lambda a, b, d: (a & b) | (a & d) | (b & d),
    "vpternlog.xor3": lambda a, b, d: a ^ b ^ d,
    "vpternlog.and_or": lambda a, b, d: (a & b) | d,
    "vpternlog.or_and": lambda a, b, d: (a | b) & d,
    "vpternlog.and3": lambda a, b, d: a & b & d,
    "vpternlog.or3": lambda a, b, d: a | b | d,
    "vpblendvb": lambda m, a, b: np.where(m < 0, b, a),
    "vpblendm": lambda p, a, b: np.where(p != 0, a, b),
}
for _name, _op in (("vpadd", np.add), ("vpsub", np.subtract), ("vadd", np.add), ("vsub", np.subtract)):
    BITS[_name] = lambda p, a, b, d, op=_op: np.where(p != 0, op(a, b), d)
BITS["vmul"] = lambda p, a, b, d: np.where(p != 0, a * b, d)
OF_BITS = sorted(n for n in CATALOGUE if CATALOGUE[n].path.endswith("elementwise_bits.yaml"))


@needs_compiler
@pytest.mark.x86
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", OF_BITS)
def test_bits_and_masks_on_this_cpu_against_numpy(name: str, tmp_path: Path) -> None:
    kernel, arrays = one_row(name)
    oracle = next(found for start, found in BITS.items() if name.startswith(f"x86/{start}"))
    with np.errstate(all="ignore"):
        wanted = oracle(**arrays)
    agrees(kernel, arrays, wanted.astype(CATALOGUE[name].accumulator.dtype.numpy), tmp_path)


@needs_compiler
@pytest.mark.x86
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_on_this_cpu_against_numpy(name: str, tmp_path: Path) -> None:
    kernel, arrays = one_row(name)
    into = np.dtype(CATALOGUE[name].accumulator.dtype.numpy)
    with np.errstate(over="ignore", invalid="ignore"):
        a = arrays["a"]
        wanted = np.where(abs(a) < 2.0**-126, 0 * a, a).astype(into) if name.endswith(FLUSHING) else a.astype(into)
        if into.kind in "iu":
            ends = np.iinfo(into)
            wanted = np.array([min(max(int(v), ends.min), ends.max) for v in arrays["a"]], into)
    agrees(kernel, arrays, wanted, tmp_path)


ROUNDED = "def f(A: f32[70], C: bf16[70]):\n for i in range(70):\n  C[i] = bf16(A[i])\n"


def test_subnormals_that_count_as_zero_are_within_tolerance() -> None:
    """A kernel that flushes them is as right as sums that do, and no other number may differ."""
    numbers = np.where(np.arange(70) % 3 == 0, 1e-39, np.linspace(-2, 2, 70)).astype(np.float32)
    program = parse(ROUNDED)
    stages = frozenset(s.name for s in program.stages)
    wanted, tolerance = run_with_error(program, {"A": numbers}, {}, stages)
    expected = Expected({"A": numbers}, {}, wanted, tolerance)
    target = machine(frozenset(["avx512f", "avx512vl", "avx512_bf16"]))
    plans = written(program, target)
    assert {i for p in plans for i in p.intrinsics} >= {"x86/vcvtneps2bf16.zmm"}
    for plan in plans:
        assert disagreement(plan, [int(plan.space.sample(1, np.random.default_rng(0))[0])], expected) is None
    zeroed = {"C": np.where(np.arange(70) % 3 == 0, 0, wanted["C"]).astype(wanted["C"].dtype)}
    assert expected.difference(zeroed) is None
    other = {"C": np.where(np.arange(70) == 1, 0, wanted["C"]).astype(wanted["C"].dtype)}
    assert expected.difference(other) is not None


@pytest.mark.x86
def test_a_program_that_flushes_itself_is_computed_to_the_bit() -> None:
    """Zeros of either sign."""
    if missing := {"avx512_bf16", "avx512vl"} - host_features():
        pytest.skip(f"this machine lacks {', '.join(sorted(missing))}")
    least = "1.1754943508222875e-38"
    program = parse(ROUNDED.replace("bf16(A[i])", f"bf16(A[i] * 0.0 if abs(A[i]) < {least} else A[i])"))
    numbers = extremes(np.float32, 70, np.random.default_rng(5))
    plans = [p for p in plans_of(program, this_machine(), only=("x86/vcvtneps2bf16.zmm",)) if p.tensor_parts]
    kernel = lower(plans[0], plans[0].space.schedule(int(plans[0].space.sample(1, np.random.default_rng(0))[0])))
    found, wanted = compiled(kernel)(A=numbers), run(program, {"A": numbers})["C"]
    numbered = ~np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(found.view(np.uint16)[numbered], wanted.view(np.uint16)[numbered])
    assert np.isnan(found.astype(np.float32)[~numbered]).all()
