"""Random programs around each adapter's identity, with random types: what an adapter makes of one computes the same
bits on random and on corner inputs, and an identity that is changed a little is not proved."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.ir import parse
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle import numerics
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.ir.value import Arith, Cast, Literal, Read, Unary, Value
from autosched.logic import Var
from autosched.tensorize import Catalogue
from autosched.tensorize.adapters.integers.polynomial import signed
from autosched.tensorize.adapters.integers.restate import proof_of, restate
from autosched.tensorize.adapters.integers.ring import ring
from autosched.tensorize.adapters.proof import every_value, prove_conversion
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, NotProved
from autosched.tensorize.adapters.staged import staged
from autosched.tensorize.adapters.widen import widened
from autosched.tensorize.addresses.stage_facts import StageFacts

CATALOGUE = Catalogue.builtin()
INTEGERS = ("x86/vpdpbusd.zmm", "x86/vpdpwssd.zmm", "cuda/dp4a.s8.s8", "cuda/dp4a.u8.u8", "cuda/dp2a.lo.u16.s8")
FLOATS = ("x86/vfmadd.f32.zmm", "x86/vfmadd.f64.zmm", "x86/vdpbf16ps.zmm", "cuda/wmma.m16n16k16.f16.f32")
SMALL = [t for t in DTYPES.values() if t.bits <= 16]
QUICK = examples(40)
TEXT = """
def f(A: {a}[m, k], B: const[{b}[k, n]], D: {a}[m, k], z: {c}[n], C: {c}[m, n], x: {c}, *, m=2, n=3, k=4):
    for i, j in grid(m, n):
{init}        for p in range(k):
{guard}            C[i, j] {op} {term}
"""


def answers(facts: StageFacts, names: tuple[str, ...]) -> list[Adapted]:
    """All that the bitwise adapters make of a stage for these instructions."""
    found: dict[Any, Adapted | None] = {}
    for name, adapter in product(names, (widened, staged, ring)):
        for proposal in adapter(facts, CATALOGUE[name]):
            if proposal.key not in found:
                try:
                    found[proposal.key] = proposal.make()
                except (NoPlace, NotProved):
                    found[proposal.key] = None
    return [a for a in found.values() if a is not None]


def arrays(program: Program, rng: np.random.Generator, corners: bool) -> dict[str, Any]:
    """Any bit patterns, or those at the ends of each type."""
    found = {}
    for name in program.inputs:
        tensor = program.tensors[name]
        dtype = tensor.dtype
        if dtype.is_integer:
            low, high = dtype.limits
            ends = [low, low + 1, -1 if low else 1, 0, high - 1, high]
            drawn = rng.choice(ends, tensor.extents) if corners else None
            kind = np.int64
            values = rng.integers(low, high, tensor.extents, dtype=kind, endpoint=True) if drawn is None else drawn
            found[name] = numerics.store(numerics.wrap(values, dtype), dtype)
        else:
            ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0**-14, -(2.0**-24), 65504.0]
            values = rng.choice(ends, tensor.extents) if corners else rng.normal(0, 3, tensor.extents)
            found[name] = numerics.store(numerics.round_float(values, dtype), dtype)
    return found


def agree(program: Program, other: Program, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for corners in (False, True):
        given_, scalar = arrays(program, rng, corners), next(iter(program.scalars.values())).dtype
        low, high = scalar.limits if scalar.is_integer else (-9, 9)
        scalars = {"x": int(rng.integers(low, high, dtype=np.int64)) if scalar.is_integer else float(rng.normal())}
        want, got = run(program, given_, scalars), run(other, given_, scalars)
        for name, array in want.items():
            np.testing.assert_array_equal(got[name], array, err_msg=f"{program}\n{other}")
            if array.dtype.kind == "f":
                zero = array == 0
                np.testing.assert_array_equal(np.signbit(got[name])[zero], np.signbit(array)[zero])


@st.composite
def integer_sums(draw: st.DrawFn) -> Program:
    a, b = (draw(st.sampled_from(["u4", "s4", "u8", "s8", "u16", "s16"])) for _ in range(2))
    c = draw(st.sampled_from(["s32", "u32", "s16", "u16", "u8"]))
    number = draw(st.integers(-100, 200))
    at_a = draw(
        st.sampled_from([f"{c}(A[i, p])", f"({c}(A[i, p]) - {c}({number}))", f"({c}(A[i, p]) + x)", f"(-{c}(A[i, p]))"])
    )
    at_b = draw(
        st.sampled_from([f"{c}(B[p, j])", f"({c}(B[p, j]) - 8)", f"({c}(B[p, j]) - z[j])", f"({c}(B[p, j]) << 1)"])
    )
    one = f"{at_a} * {at_b}"
    other = draw(st.sampled_from(["", f" + {c}(D[i, p]) * {c}(B[p, j])", f" - {c}(A[i, p])", " + x"]))
    around = draw(st.sampled_from(["{}", "({}) << 3", "({}) << z[j]", "-({})", "({}) * z[j]", "5 * ({})"]))
    init = draw(st.sampled_from(["", "        C[i, j] = 0\n", "        C[i, j] = z[j] * 3 + x\n"]))
    guard = draw(st.sampled_from(["", "            if i + p >= 1:\n    "]))
    op = draw(st.sampled_from(["+=", "-="]))
    return parse(TEXT.format(a=a, b=b, c=c, init=init, guard=guard, op=op, term=around.format(one + other)))


@st.composite
def float_sums(draw: st.DrawFn) -> Program:
    kinds = ["e2m1", "e4m3", "e5m2", "e3m4", "f16", "bf16", "tf32", "f32", "u8", "s8", "u4", "s16"]
    a, b = (draw(st.sampled_from(kinds)) for _ in range(2))
    c = draw(st.sampled_from(["f32", "f64"]))
    at_a = draw(
        st.sampled_from([f"{c}(A[i, p])", f"(-{c}(A[i, p]))", f"({c}(A[i, p]) - 3.0)", f"({c}(A[i, p]) * 0.5)"])
    )
    at_b = draw(st.sampled_from([f"{c}(B[p, j])", f"({c}(B[p, j]) + 0.1)"]))
    init = draw(st.sampled_from(["", "        C[i, j] = 0.0\n", "        C[i, j] = z[j] * x\n"]))
    form = draw(st.sampled_from(["{} * {}", "fma({}, {}, C[i, j])"]))
    op = "=" if form.startswith("fma") else draw(st.sampled_from(["+=", "-="]))
    term = form.format(at_a, at_b)
    return parse(TEXT.format(a=a, b=b, c=c, init=init, guard="", op=op, term=term))


@st.composite
def other_bodies(draw: st.DrawFn) -> Program:
    """Bodies that are no product: widening alone serves them."""
    a, b = (draw(st.sampled_from(["u4", "s4", "u8", "s8"])) for _ in range(2))
    c = draw(st.sampled_from(["s32", "s64"]))
    term = draw(
        st.sampled_from(
            [
                "abs({c}(A[i, p]) - {c}(B[p, j]))",
                "max({c}(A[i, p]), {c}(B[p, j]))",
                "{c}(A[i, p]) ^ {c}(sat_u8(B[p, j]))",
            ]
        )
    )
    return parse(TEXT.format(a=a, b=b, c=c, init="", guard="", op="+=", term=term.format(c=c)))


def check(program: Program, names: tuple[str, ...], seed: int) -> None:
    found = answers(StageFacts(program, next(s for s in program.stages if s.reduction)), names)
    assume(found)
    for adapted in found:
        after = adapted.rewrite.after
        agree(program, after, seed)
        assert parse(str(after)).parameters == program.parameters
        assert adapted.obligations
        assert all(o.method != "running" for o in adapted.obligations)


@pytest.mark.slow
@QUICK
@given(integer_sums(), st.integers(0, 2**32 - 1))
def test_sums_of_integers(program: Program, seed: int) -> None:
    check(program, INTEGERS, seed)


@pytest.mark.slow
@QUICK
@given(float_sums(), st.integers(0, 2**32 - 1))
def test_sums_of_floats(program: Program, seed: int) -> None:
    check(program, FLOATS, seed)


@examples(20)
@given(other_bodies(), st.integers(0, 2**32 - 1))
def test_bodies_that_are_no_product(program: Program, seed: int) -> None:
    check(program, ("x86/vpsadbw.s64.zmm", "x86/vpsadbw.s32.zmm", "x86/vpdpwssd.zmm"), seed)


def numbers(dtype: DType) -> set[float]:
    """The values of a small type as reals, told apart from python's own: NaN left out."""
    values = np.asarray(numerics.cast(every_value(dtype), dtype, DTYPES["f64"])).tolist()
    return {v for v in values if v == v}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("source", SMALL, ids=str)
def test_a_conversion_is_proved_exactly_where_no_value_changes(source: DType) -> None:
    read = Read("a", (), source)
    for wide in SMALL:
        fits = numbers(source) <= numbers(wide)
        try:
            prove_conversion(Cast(read, wide), read)
            proved = True
        except NotProved:
            proved = False
        lost = wide.is_integer or (wide.fnuz and not source.fnuz)  # the sign of a zero, or a NaN
        whole = fits and not (source.is_float and lost)
        assert proved == whole, f"{source} to {wide}"


@given(st.sampled_from(["u8", "s8", "u4"]), st.integers(-300, 300), st.integers(-3, 3))
def test_a_staged_value_off_by_a_little_is_not_proved(name: str, offset: int, wrong: int) -> None:
    s16, s32 = DTYPES["s16"], DTYPES["s32"]
    read = Read("a", (Var("i"),), DTYPES[name])

    def shifted(by: int, dtype: DType) -> Value:
        return Arith("-", Cast(read, dtype), Literal(by, dtype), dtype)

    if wrong == 0:
        assert prove_conversion(shifted(offset, s16), shifted(offset, s32)) == "exhaustion"
    else:
        with pytest.raises(NotProved):
            prove_conversion(shifted(offset + wrong, s16), shifted(offset, s32))
    with pytest.raises(NotProved):  # leaves eight bits somewhere
        prove_conversion(shifted(offset - 1000, DTYPES["s8"]), shifted(offset - 1000, s32))


@pytest.mark.parametrize("name", ["u8", "s8"])
def test_minus_an_integer_needs_room(name: str) -> None:
    read = Read("a", (), DTYPES[name])
    minus = Unary("-", Cast(read, DTYPES["s32"]), DTYPES["s32"])
    assert prove_conversion(Unary("-", Cast(read, DTYPES["s16"]), DTYPES["s16"]), minus) == "exhaustion"
    with pytest.raises(NotProved):  # 128 is no s8
        prove_conversion(Unary("-", Cast(read, DTYPES["s8"]), DTYPES["s8"]), minus)


@pytest.mark.slow
@QUICK
@given(integer_sums(), st.data())
def test_a_changed_identity_is_not_proved(program: Program, data: st.DataObject) -> None:
    update = StageFacts(program, next(s for s in program.stages if s.reduction)).update
    reduced = frozenset(a.name for a in update.axes_reduced)
    types = data.draw(st.sampled_from([("u8", "s8"), ("s16", "s16"), ("u8", "u8"), ("u16", "s8")]))
    restated = restate(update.term, reduced, DTYPES["s32"], (DTYPES[types[0]], DTYPES[types[1]]))
    assume(restated is not None)
    assert restated is not None
    proof_of(restated, 60_000)  # 2 s were too few on a machine busy with other tests
    more = data.draw(st.integers(1, 1000))
    assume(more % 256)  # the narrowest accumulator has eight bits
    atoms = data.draw(st.sampled_from([(), *restated.rest]))
    rest = {**restated.rest, atoms: signed(restated.rest.get(atoms, 0) + more, restated.dtype)}
    planted = [replace(restated, rest=rest), replace(restated, coefficient=restated.coefficient + more)]
    if restated.left.offset:
        planted.append(replace(restated, left=replace(restated.left, offset=restated.left.offset + more)))
    for wrong in planted:
        with pytest.raises(NotProved):
            proof_of(wrong, 2000)
