"""Does a load fill a fragment as the instruction wants it? `load: [ldmatrix.x4]` names another intrinsic, whose own
fragment says which row of memory each register of each lane comes from.

    ldmatrix.x4: lane t, register v holds word 2 (t % 4) + v % 2 of row t // 4 of matrix v // 2
    so the operand's elements that a row holds must be neighbours: one dimension counts up, the others stand still

A fragment with two lanes or registers exchanged is still a bijection, and only this tells.
"""

from __future__ import annotations

import numpy as np

from autosched.tensorize.intrinsic import Intrinsic, Operand


def fault_of_load(operand: Operand, load: Intrinsic) -> str | None:
    """Why `load` cannot fill the operand's fragment; None where it can, or where there are no fragments to compare."""
    registers = load.accumulator
    if operand.fragment is None or registers.fragment is None:
        return None
    lanes, held = (n for _, n in operand.fragment.domain)
    load_lanes, words = (n for _, n in registers.fragment.domain)
    bits, word = operand.dtype.bits, registers.dtype.bits
    if lanes != load_lanes or held * bits != words * word:
        return f"it fills {words * word} bits of {load_lanes} lanes, the operand has {held * bits} of {lanes}"
    # Along the innermost dimension of memory: element n of a row lies in word n * bits // word.
    rows: dict[tuple[int, ...], list[tuple[int, tuple[int, ...], str]]] = {}
    theirs = np.asarray(registers.fragment.points()[0]).reshape(len(registers.shape), lanes, words)
    ours = np.asarray(operand.fragment.points()[0]).reshape(len(operand.shape), lanes, held)
    for t in range(lanes):
        for v in range(held):
            *matrix, column = (int(n) for n in theirs[:, t, v * bits // word])
            place = column * word + v * bits % word
            element = tuple(int(n) for n in ours[:, t, v])
            rows.setdefault(tuple(matrix), []).append((place // bits, element, f"t={t}, v={v}"))
    along: set[int] = set()
    for row, elements in rows.items():
        (start, first, _), *rest = sorted(elements)
        for n, element, where in rest:
            moved = [d for d in range(len(first)) if element[d] != first[d]]
            if len(moved) != 1 or element[moved[0]] != first[moved[0]] + n - start:
                return (
                    f"{where} is {n - start} elements after {_shown(first)} in row {list(row)} of memory, and holds"
                    f" {_shown(element)}"
                )
            along.add(moved[0])
    if len(along) > 1:
        return f"its rows run along dimensions {' and '.join(str(d) for d in sorted(along))}"
    return None


def _shown(element: tuple[int, ...]) -> str:
    return f"[{', '.join(str(c) for c in element)}]"
