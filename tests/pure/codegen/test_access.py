"""The lane classification is exact: checked against evaluation at random outer points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autosched.codegen.analysis.access import classify, flat_offset
from autosched.codegen.tree.kernel import Buffer, Lane
from autosched.ir.dtypes import dtype
from autosched.ir.value import Cast, FromIndex, Read
from autosched.logic import Const, Int, Var, evaluate

S64 = dtype("s64")
leaves = st.one_of(st.sampled_from([Var("l"), Var("l"), Var("i"), Var("k")]), st.integers(-3, 9).map(Const))


def grow(inner: st.SearchStrategy[Int]) -> st.SearchStrategy[Int]:
    small = st.integers(1, 8)
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
        st.tuples(inner, small).map(lambda p: p[0] * p[1]),
        st.tuples(inner, small).map(lambda p: p[0] // p[1]),
        st.tuples(inner, small).map(lambda p: p[0] % p[1]),
    )


expressions = st.recursive(leaves, grow, max_leaves=8)


@given(st.tuples(expressions, expressions), st.sampled_from([2, 4, 8, 16]), st.integers(0, 40), st.integers(0, 40))
def test_offsets_hold_at_every_point(index: tuple[Int, Int], width: int, i: int, k: int) -> None:
    buffer = Buffer("A", dtype("f32"), (7, 13), "global")
    access = classify(index, buffer.shape, Lane("l", width))
    flat = flat_offset(buffer, index)
    real = [int(evaluate(flat, {"l": e, "i": i, "k": k})) for e in range(width)]
    moved = tuple(v - real[0] for v in real)
    match access.kind:
        case "uniform":
            assert moved == (0,) * width
        case "contiguous":
            assert moved == tuple(range(width))
        case "group":
            assert moved == tuple(e % access.size for e in range(width))
        case "strided":
            assert moved == tuple(e * access.size for e in range(width))
    if access.offsets is not None:
        assert access.offsets == moved
    else:
        assert access.kind == "elements"


def test_forms_the_printers_rely_on() -> None:
    e, i, p = Var("l"), Var("i"), Var("p")
    lane = Lane("l", 64)
    assert str(classify((i, p), (8, 8), lane)) == "uniform"
    assert str(classify((i, p * 64 + e), (8, 128), lane)) == "contiguous"
    assert str(classify((i, p * 4 + e % 4), (8, 128), lane)) == "group(4)"
    assert str(classify((i, p * 4 + e - e // 4 * 4), (8, 128), lane)) == "group(4)"
    assert str(classify((p * 4 + e % 4, i * 16 + e // 4), (512, 512), lane)) == "elements"
    assert str(classify((p, i * 16 + e // 4, e % 4), (128, 512, 4), lane)) == "contiguous"
    assert str(classify((e, p), (64, 24), lane)) == "strided(24)"
    assert str(classify(((p * 16 + e) // 4, (p * 16 + e) % 4), (64, 4), lane)) == "contiguous"
    assert classify(((p + e) // 4,), (64,), lane).offsets is None


def test_data_dependent_rows_stay_vector_loads() -> None:
    e, i = Var("l"), Var("i")
    row = Read("idx", (i,), S64)
    assert str(classify((row, e), (64, 16), Lane("l", 16))) == "contiguous"
    assert str(classify((Cast(FromIndex(e, dtype("s32")), S64), i), (64, 16), Lane("l", 16))) == "elements"
