"""Pairs of which the instruction reads what it overwrites, and whether what is made of it computes the same."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

from autosched.ir import parse
from autosched.ir.program import Program

from .pairs import Pair, overwriting
from .plain import Memory, runner


def in_place(rng: Random) -> Pair:
    """An operand of an instruction that overwrites is its target; the program has the two in either way."""
    while True:
        made = overwriting(rng)
        program = parse(made.semantics)
        stage, target = program.stages[0], program.stages[0].target
        fit = [r.tensor for r in stage.reads if r.index == target.index and r.tensor != target.tensor
               and program.tensors[r.tensor] == replace(program.tensors[target.tensor], name=r.tensor)]  # fmt: skip
        if fit:
            name = rng.choice(fit)
            head, body = made.semantics.split("\n", 1)
            head = re.sub(rf"(?<=[(, ]){name}: \w+\[[^\]]*\](, )?", "", head)
            return replace(made, semantics=f"{head}\n" + re.sub(rf"\b{name}\[", f"{target.tensor}[", body), texts=True)


def before_differs(written: Program, made: Program, number: Any) -> str | None:
    """Runs an instruction as it is written, and with an operand for what its target held; what differs."""
    target = written.stages[0].assign.tensor
    (before,) = set(made.parameters) - set(written.parameters)
    here: Memory = {n: {k: number(t.dtype) for k in _keys(t.extents)} for n, t in written.tensors.items()}
    there = {n: dict(e) for n, e in here.items()}
    there[before], there[target] = dict(here[target]), {k: number(made.tensors[target].dtype) for k in here[target]}
    runner(written)(here)
    runner(made)(there)
    return None if repr(here[target]) == repr(there[target]) else f"{written}\nis no {made}"


def _keys(extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    keys: list[tuple[int, ...]] = [()]
    for n in extents:
        keys = [(*k, i) for k in keys for i in range(n)]
    return keys
