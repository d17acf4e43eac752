"""Where the lanes of an access lie, and for which a condition holds: compiled, they are what evaluation and
`Storage.flat` say, errors and masked lanes included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosched.codegen.interpret.storage import OutOfBoundsError, RaceError, Region, Storage
from autosched.codegen.interpret.subscripts import compile_bool, compile_place
from autosched.codegen.tree.kernel import Buffer, Lane
from autosched.ir.dtypes import DTYPES
from autosched.logic import Int, Var, all_of, any_of, evaluate

i, j, e = Var("i"), Var("j"), Var("e")
F32 = DTYPES["f32"]


def storage_of(shape: tuple[int, ...], regions: list[Region] | None = None) -> Storage:
    data = np.arange(np.prod(shape), dtype=np.float32)
    return Storage(Buffer("t", F32, shape, "shared"), data, initialised=True, shared=regions)


def numbers(storage: Storage, flat: Any, width: int) -> Any:
    return np.broadcast_to(storage.numbers[flat], (width,)).tolist()


@st.composite
def subscripts(draw: st.DrawFn) -> Int:
    """Along the lanes evenly, backwards, in pieces, or not at all."""
    a, b, c, d = (draw(st.sampled_from([0, 1, 2, -1])) for _ in range(4))
    index: Int = i * a + j * b + e * c + d
    match draw(st.sampled_from(["even", "pieces", "turned"])):
        case "pieces":
            return (i + e) // 2 + d
        case "turned":
            return (e + i) % 4 + j
    return index


SMALL = st.integers(0, 3)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(subscripts(), min_size=1, max_size=3), st.integers(1, 4), SMALL, SMALL, st.data())
def test_places_are_those_of_the_storage(
    index: list[Int], width: int, at: int, other: int, data: st.DataObject
) -> None:
    storage, lanes = storage_of((4, 5, 3)[: len(index)]), np.arange(width, dtype=np.int64)
    env = {"i": at, "j": other, "e": lanes}
    mask = data.draw(st.none() | st.lists(st.booleans(), min_size=width, max_size=width).map(np.array))
    place = compile_place(index, storage, Lane("e", width))

    def answer(ask: Callable[[], Any]) -> Any:
        try:
            return numbers(storage, ask(), width)
        except OutOfBoundsError as error:
            return str(error)

    want = answer(lambda: storage.flat([evaluate(part, env) for part in index], mask))
    assert answer(lambda: place({"i": at, "j": other}, mask)) == want


CHECKS = st.tuples(subscripts(), st.sampled_from(["<", ">=", "=="]), st.integers(-3, 6))


@given(st.lists(CHECKS, max_size=3), st.booleans())
def test_conditions_are_what_they_evaluate_to(parts: list[tuple[Int, str, int]], either: bool) -> None:
    made = [{"<": p < n, ">=": p >= n, "==": p.eq(n)}[op] for p, op, n in parts]
    condition = any_of(*made) if either else all_of(*made)
    for lanes in (2, np.arange(3, dtype=np.int64)):
        env = {"i": 1, "j": 2, "e": lanes}
        found, want = compile_bool(condition)(env), evaluate(condition, env)
        assert np.broadcast_to(found, (3,)).tolist() == np.broadcast_to(want, (3,)).tolist()


ACCESSES = st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 3), st.integers(1, 2))


@given(st.lists(ACCESSES, min_size=2, max_size=6))
def test_elements_taken_together_race_as_each_alone_does(accesses: list[tuple[int, bool, int, int]]) -> None:
    """Two iterations touch an element, and one of them writes it: as one element, as numbers, and as a slice."""

    def first_race(flats: Callable[[int, int], list[Any]]) -> int | None:
        region = Region("i")
        storage = storage_of((8,), [region])
        for n, (region.iteration, writes, first, step) in enumerate(accesses):
            try:
                for flat in flats(first, step):
                    _ = storage.store(flat, np.float32(1), None) if writes else storage.load(flat, None)
            except RaceError:
                return n
        return None

    touched: list[tuple[int, bool, set[int]]] = []
    want = None
    for n, (iteration, writes, first, step) in enumerate(accesses):
        own = set(range(first, first + 3 * step, step))
        if any(i != iteration and (w or writes) and own & elements for i, w, elements in touched):
            want = n
            break
        touched.append((iteration, writes, own))
    assert first_race(lambda first, step: [slice(first, first + 2 * step + 1, step)]) == want
    assert first_race(lambda first, step: [first + step * np.arange(3)]) == want
    assert first_race(lambda first, step: [first, first + step, first + 2 * step]) == want
