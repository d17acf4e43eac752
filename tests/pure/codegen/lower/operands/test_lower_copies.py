"""Operands read from a copy of their tensor: with a border of zeros, or with reduced neighbours side by side."""

from __future__ import annotations

import pytest
from support.match.agreement import disagreement, expect
from support.plans import plans_of
from support.programs.copies import BATCH, DEPTHWISE, FLOATS, NCHW, STRIDED, TAPS, TRANSPOSED, UNPACKED, rows_with

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, Function, statements
from autosched.ir import parse
from autosched.logic import TRUE

INTERLEAVED = {
    "channels_first": parse(NCHW),
    "channels_first_of_pairs": parse(NCHW, sizes={**FLOATS, "ci": 3, "w": 8, "h": 3}),
    "both_transposed_of_pairs": parse(TRANSPOSED, sizes=FLOATS),
    "batch_between": parse(BATCH),
}
ONLY = ("x86/v*.zmm", "x86/vpdpbusd.ymm", "x86/vfmadd.f32.ymm")
SHUFFLED = {
    "channels_of_three_taps": parse(DEPTHWISE),
    "channels_of_pairs_of_taps": parse(DEPTHWISE, sizes={**FLOATS, "c": 33}),
    "every_other_pixel": parse(STRIDED),
    "rows_of_both": parse(TRANSPOSED),
    "taps_of_every_other_pixel": parse(TAPS),
    "taps_of_each_pixel": parse(TAPS, sizes={"stride": 1}),
    "taps_that_are_no_constants": parse(UNPACKED),
    "pairs_of_taps_that_are_no_constants": parse(UNPACKED, sizes={"t": "s16", "u": "s16", "w": 20, "k": 5}),
}
"""Registers that hold neighbours from several places: loaded in runs and shuffled."""
BORDERED = {
    "rows_of_19": parse(NCHW, sizes={"t": "f32", "u": "f32", "acc": "f32"}),
    "rows_of_3": parse(NCHW, sizes={"t": "f32", "u": "f32", "acc": "f32", "w": 3, "pad": 2}),
    "border_as_wide_as_the_rows": parse(NCHW, sizes={"w": 2, "h": 2, "kh": 5, "kw": 5, "pad": 4, "co": 3}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INTERLEAVED)
def test_interleaved_rows_compute_the_program(name: str) -> None:
    check(name, "interleaved")


@pytest.mark.slow
@pytest.mark.parametrize("name", BORDERED)
def test_rows_with_a_border_compute_the_program(name: str) -> None:
    check(name, "padded")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["direct", "padded"])
@pytest.mark.parametrize("name", SHUFFLED)
def test_shuffled_rows_compute_the_program(name: str, kind: str) -> None:
    if name != "rows_of_both" or kind == "direct":
        check(name, kind)


def test_constants_are_laid_out_instead() -> None:
    text = TRANSPOSED.replace("B: u[k, n]", "B: const[u[k, n]]")
    (plan,) = plans_of(parse(text), only=("x86/vpdpbusd.zmm",))[:1]
    assert "direct" not in plan.space.decision("pack_b").labels
    (plan,) = plans_of(parse(TRANSPOSED), only=("x86/vpdpbusd.zmm",))[:1]
    assert "direct" in plan.space.decision("pack_b").labels


def test_a_copy_is_read_without_masks_where_constants_end_the_sum() -> None:
    """Three taps on a dot product of four: the weights hold the fourth zero, so any pixel may stand beside it, as long
    as it is one of the copy. Of floats it could be a NaN."""
    for sizes, masked in (({}, False), ({"t": "bf16", "u": "bf16", "acc": "f32"}, True)):
        plan = next(p for p in plans_of(parse(TAPS, sizes=sizes), only=ONLY) if "←s" in p.name)
        kernel = lower(plan, plan.space.schedule(next(rows_with(plan, "padded"))))
        loads = [s for s in statements(kernel.main.body) if isinstance(s, Assign) and s.buffer == "a_reg"]
        assert loads
        assert any(s.valid != TRUE for s in loads) == masked


def check(name: str, kind: str) -> None:
    program = (INTERLEAVED | SHUFFLED | BORDERED)[name]
    expected = expect(program)
    found = 0
    for plan in plans_of(program, threads=2, only=ONLY):
        rows = list(rows_with(plan, kind, 2))
        found += len(rows)
        assert disagreement(plan, rows, expected) is None
        if found >= 2:
            break
    assert found


def test_what_reads_well_already_is_not_interleaved() -> None:
    for text in (NCHW, TRANSPOSED):
        for plan in plans_of(parse(text, sizes={"t": "f32", "u": "f32", "acc": "f32"}), only=ONLY):
            assert not list(rows_with(plan, "interleaved"))


def test_a_copy_of_one_image_is_shared_among_threads() -> None:
    """Dimensions of one position are no loops, so that the outermost loop has iterations to share."""
    text = NCHW.replace("X: t[ci, h, w]", "X: t[1, ci, h, w]").replace("X[c,", "X[0, c,")
    plan = next(p for p in plans_of(parse(text), threads=2, only=ONLY) if list(rows_with(p, "interleaved")))
    rows = rows_with(plan, "interleaved", 50)
    schedule = next(s for s in map(plan.space.schedule, rows) if s.values["threads"] == 2)
    main: Function = lower(plan, schedule).main
    first = main.body[0]
    assert isinstance(first, For)
    assert first.kind == "parallel"
    assert str(first.upper) == "2"  # six channels, in groups of four
