"""Nodes remember their hash, and nobody notices."""

from __future__ import annotations

import pickle
from copy import copy, deepcopy
from dataclasses import fields, replace
from typing import Any

import pytest

from autosched.ir import parse
from autosched.ir.dtypes import dtype
from autosched.ir.value import Arith, Literal, Read
from autosched.logic import Var, all_of

F32 = dtype("f32")
PRODUCT = Arith("*", Read("A", (Var("i") * 4 + 1,), F32), Read("B", (Var("k"),), F32), F32)
NODES = [PRODUCT, Var("i") * 4 + 1, all_of(Var("i") >= 0, Var("i") < 3), F32]


@pytest.mark.parametrize("node", NODES, ids=str)
def test_equal_nodes_hash_alike_before_and_after(node: Any) -> None:
    other = deepcopy(node)
    assert hash(node) == hash(node) == hash(other)
    assert node == other
    assert len({node, other}) == 1
    assert "_hash" not in [f.name for f in fields(node)]


@pytest.mark.parametrize("node", NODES, ids=str)
def test_no_hash_is_carried_to_another_process(node: object) -> None:
    hash(node)
    for made in (pickle.loads(pickle.dumps(node)), copy(node)):
        assert made == node
        assert not hasattr(made, "_hash")


def test_a_changed_node_has_a_hash_of_its_own() -> None:
    hash(PRODUCT)
    changed = replace(PRODUCT, op="+")
    assert not hasattr(changed, "_hash")
    assert hash(changed) != hash(PRODUCT)


def test_an_update_is_pickled_without_it() -> None:
    from autosched.tensorize.reduction.update import update_of

    program = parse("def f(A: f32[8], C: f32[1]):\n    for i in range(8):\n        C[0] += A[i]\n")
    update = update_of(program.stages[0])
    hash(update)
    made = pickle.loads(pickle.dumps(update))
    assert made == update
    assert not hasattr(made, "_hash")


def test_zeros_of_both_signs_are_two_literals() -> None:
    assert Literal(0.0, F32) != Literal(-0.0, F32)
    assert Literal(0.0, F32) == Literal(0.0, F32)
    assert hash(Literal(0.0, F32)) == hash(Literal(0.0, F32))
