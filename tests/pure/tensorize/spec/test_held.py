"""Operands that a state holds: what loads it is in the same file, else that is refused with the place and the mend."""

from __future__ import annotations

import pytest
from support.stationary import ARRAY, LOADS

from autosched.errors import SpecError
from autosched.tensorize.held import loads
from autosched.tensorize.spec.load import load_text


def test_one_instruction_loads_what_another_reads() -> None:
    rows, load = load_text(ARRAY + LOADS, "held.yaml")
    assert [o.name for o in rows.held] == ["b"]
    assert not load.held
    assert loads(load, rows.held[0])


WRONG = [
    (ARRAY, "held.yaml:11:27: held/rows: operand b is read from the state weights before it is set: nothing loads"),
    (ARRAY + LOADS.replace("s8", "s16"), "held/load writes s16 from s16"),
    (ARRAY + LOADS.replace("y[i, j] = x[i, j]", "y[i, j] = x[j, i]"), "does not copy each element"),
    (ARRAY + LOADS.replace("s8[8, 8]", "s8[3, 8]").replace("grid(8, 8)", "grid(3, 8)"), "or a part of it, as it is"),
    (ARRAY + LOADS.replace("from: inputs", "from: memory"), "does not take it from the inputs"),
    (ARRAY + LOADS.replace("to: weights", "to: wieghts"), "no instruction reads a state wieghts, and places are"),
    (ARRAY.replace("{b: {state", "{c: {state") + LOADS, "operand c: state: it is what the instruction writes"),
    (ARRAY.replace("weights", "inputs"), "operand b: state: inputs is where copies of tiles lie"),
    (ARRAY.replace("{b: {", "{a: {state: weights}, b: {") + LOADS, "operand b: state: a is in weights, too"),
    (ARRAY.replace("scope: core", "kind: copy\n    scope: core"), "operand b: state: its kind is copy"),
    (ARRAY.replace("    timing", "    emit: {c: 'f({a}, {b}, {c})'}\n    timing") + LOADS, "have no such operand"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_state_that_nothing_sets_or_reads_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        load_text(text, "held.yaml")
    assert said in str(refused.value)


def test_the_mend_is_what_makes_the_file_right() -> None:
    with pytest.raises(SpecError) as refused:
        load_text(ARRAY, "held.yaml")
    mend = "describe an instruction of kind: copy with `moves: {from: inputs, to: weights}` that "
    assert refused.value.hint == mend + "reads and writes s8[8, 8]"
    assert len(load_text(ARRAY + LOADS, "held.yaml")) == 2
    with pytest.raises(SpecError) as misspelt:
        load_text(ARRAY + LOADS + LOADS.replace("load", "again").replace("to: weights", "to: wieghts"), "held.yaml")
    assert str(misspelt.value.hint).startswith("did you mean 'weights'?")
