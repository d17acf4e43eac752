"""Loops that data choose by outermost: which blocks there are, what results, and that it computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs.chosen import CHOSEN, random_choice

from autosched.ir import parse, random_inputs, run
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.program import Program
from autosched.ir.rewrites.chosen_blocks import ChoiceBlock, blocks_of, chosen_blocks, chosen_reads
from autosched.ir.rewrites.quotients import fold_quotients
from autosched.ir.rewrites.rewrite import simplify
from autosched.tiling.variants.chosen_slices import choices

PRODUCT = """
def f(X: f32[m, k], W: f32[w, k, n], E: s32[40], Y: f32[m, n], *, m=24, k=4, n=8, w=3):
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += X[i, p] * W[SUBSCRIPT, p, j]
"""


def product(subscript: str, **sizes: int) -> Program:
    return parse(PRODUCT.replace("SUBSCRIPT", subscript).lstrip(), filename="f.py", sizes=sizes)


def blocks(subscript: str, **sizes: int) -> tuple[ChoiceBlock, ...] | None:
    (stage,) = product(subscript, **sizes).stages
    return blocks_of(stage, next(chosen_reads(stage.assign.value)))


@pytest.mark.parametrize(
    ("subscript", "wanted"),
    [
        ("E[i // 8]", (ChoiceBlock("i", 8),)),
        ("E[i]", (ChoiceBlock("i", 1),)),
        ("E[(i + 16) // 8]", (ChoiceBlock("i", 8),)),
        ("E[(2 * i) // 8]", (ChoiceBlock("i", 4),)),
        ("E[i // 8] + E[i // 12]", (ChoiceBlock("i", 4),)),
        ("E[i // 8 + j]", (ChoiceBlock("i", 8), ChoiceBlock("j", 1))),
        ("E[i // 8 + p // 2]", (ChoiceBlock("i", 8), ChoiceBlock("p", 2))),
        ("E[(i + 4) // 8]", (ChoiceBlock("i", 1),)),
        ("E[i // 7]", (ChoiceBlock("i", 1),)),
        ("E[(3 * i) // 8]", (ChoiceBlock("i", 1),)),
        ("E[3]", ()),
    ],
)
def test_blocks_are_iterations_of_one_choice(subscript: str, wanted: tuple[ChoiceBlock, ...]) -> None:
    assert blocks(subscript) == wanted


def test_what_results() -> None:
    program = product("E[i // 8]")
    (stage,) = program.stages
    made = chosen_blocks(program, stage, (ChoiceBlock("i", 8),))
    assert made is not None
    after, loops = made
    assert loops == ("i_block",)
    assert "W[E[i_block], p, j]" in str(after)
    assert [a.name for a in after.stages[0].axes] == ["i_block", "i", "j", "p"]


def test_a_sum_begins_before_the_loops_that_reduce() -> None:
    program = product("E[p // 2]")
    (stage,) = program.stages
    made = chosen_blocks(program, stage, (ChoiceBlock("p", 2),))
    assert made is not None
    begin, blocks = made[0].body
    assert "= 0" in str(made[0])
    assert made[1] == ("p_block",)
    assert begin != blocks


@pytest.mark.parametrize("subscript", ["E[i]", "E[j]", "E[j // 2]"])
def test_fewer_results_than_a_product_of_matrices_has_are_left(subscript: str) -> None:
    assert not list(choices(product(subscript, n=8), "rescaled"))


def test_a_sum_in_another_order_needs_a_level() -> None:
    text = PRODUCT.replace("for p in range(k)", "for q, p in grid(2, k)").replace("SUBSCRIPT", "E[p // 2]")
    program = parse(text.lstrip(), filename="f.py")
    assert not list(choices(program, "bitwise"))
    assert list(choices(program, "reassociated"))


@pytest.mark.parametrize("program", [*CHOSEN.values(), *(parse(random_choice(k), filename="f.py") for k in range(12))])
def test_the_same_is_computed(program: Program) -> None:
    simple, _ = simplify(program)
    arrays, scalars = split_inputs(simple, random_inputs(simple, np.random.default_rng(0)))
    want = run(simple, arrays, scalars)
    for stage, found in choices(simple, "rescaled"):
        made = chosen_blocks(simple, stage, found)
        assert made is not None
        after = parse(str(made[0]), filename="f.py")
        for name, values in run(after, arrays, scalars).items():
            assert np.allclose(values, want[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("subscript", "folded"),
    [("(4 * b + i) // 4", "X[b]"), ("(4 * b + i) % 4 + b", "X[i + b]"), ("(8 * b + i + 4) // 4", "X[b * 2 + 1]")],
)
def test_multiples_leave_a_quotient(subscript: str, folded: str) -> None:
    program = parse(
        f"def f(X: f32[40], Y: f32[3, 4]):\n    for b, i in grid(3, 4):\n        Y[b, i] = X[{subscript}]\n",
        filename="f.py",
    )
    made = fold_quotients(program)
    assert made is not None
    assert folded in str(made[0])


def test_what_loops_do_not_decide_stays() -> None:
    text = "def f(X: f32[40], Y: f32[3, 6]):\n    for b, i in grid(3, 6):\n        Y[b, i] = X[(4 * b + i) // 4]\n"
    assert fold_quotients(parse(text, filename="f.py")) is None


def test_bounds_from_data_choose_too() -> None:
    program = CHOSEN["masked"]
    (stage,) = program.stages
    assert blocks_of(stage, None) == (ChoiceBlock("x", 1),)
    made = chosen_blocks(program, stage, (ChoiceBlock("x", 1),))
    assert made is not None
    assert made[1] == ("x",)
    assert "if s32(i) < R[x]:" in str(made[0])
