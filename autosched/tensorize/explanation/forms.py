"""Where no instruction takes a stage as it is written, and one takes it with a part of its term computed beforehand,
that program is shown. It was matched again, and run beside the one given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.ir.oracle import numerics as kinds
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.ir.value import is_value, reads
from autosched.numerics_levels import DEFAULT_NUMERICS
from autosched.tensorize.adapters.factored import factored, factorings
from autosched.tensorize.adapters.gathered import gathered
from autosched.tensorize.adapters.proposal import Adapted, NoPlace
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Mapping, Match
from autosched.tensorize.matcher.match import match
from autosched.tensorize.reduction.update import NotAnUpdate

MOST_POINTS = 1 << 18
"""Points of a program that is still run to compare the two forms."""
SMALL = (8, 16, 32, 64, 128)
"""Sizes that are tried, where the program has sizes and is too large as it is."""


@dataclass(frozen=True)
class Form:
    """`program` computes what the one given does; its stage `stage` fits `intrinsic`. `exact`: bit for bit, the others
    round a product in another order. `ran`: both were run and agree."""

    stage: str
    intrinsic: str
    program: Program
    parts: tuple[str, ...]
    exact: bool
    ran: bool


def better_forms(
    program: Program, found: Sequence[Match], intrinsics: Iterable[Intrinsic], numerics: str = DEFAULT_NUMERICS
) -> list[Form]:
    """A form for each matched stage that none of the machine's own instructions takes as it stands, where there is one.

    `found` are the answers for the program as it is; `intrinsics` those to ask.
    """
    asked = list(intrinsics)
    own = [i for i in asked if not i.portable] or asked
    names = {i.name for i in own}
    forms = []
    for stage in dict.fromkeys(m.stage for m in found):
        answers = [m for m in found if m.stage == stage and m.intrinsic.name in names]
        mappings = [mapping for m in answers for mapping in m.mappings]
        in_order = bool(mappings) and gathered(StageFacts(program, program.stage(stage))) is not None  # by itself
        fits = in_order or any(map(_ordinary, mappings))
        form = None if fits else next(_forms(program, stage, own, numerics), None)
        forms += [] if form is None else [form]
    return forms


def all_forms(
    program: Program, intrinsics: Sequence[Intrinsic], numerics: str = DEFAULT_NUMERICS
) -> tuple[Program, list[Form]]:
    """The program with a form for every stage that has one, and these forms, each of the program before it."""
    done: list[Form] = []
    while True:
        found = match(program, intrinsics, numerics)
        stages = {form.stage for form in done}
        left = [f for f in better_forms(program, found, intrinsics, numerics) if f.stage not in stages]
        if not left:
            return program, done
        done.append(left[0])
        program = left[0].program


def form_lines(form: Form) -> list[str]:
    """The form in words and as program text."""
    how = "bit for bit the same" if form.exact else "the same, but for the order in which factors are rounded"
    head = f"stage {form.stage} fits {form.intrinsic} with {' and '.join(form.parts)} computed beforehand"
    checks = "matched again" + (", and run beside this one" if form.ran else "")
    text = str(form.program).rstrip().splitlines()
    return [f"{head} ({how}; {checks}):", *(f"    {line}" for line in text)]


def form_json(form: Form) -> dict[str, Any]:
    """`{stage, intrinsic, parts, program, exact, ran}`."""
    return {
        "stage": form.stage,
        "intrinsic": form.intrinsic,
        "parts": list(form.parts),
        "program": str(form.program),
        "exact": form.exact,
        "ran": form.ran,
    }


def _ordinary(mapping: Mapping) -> bool:
    """Whether plans hold the mapping as it is: without an address that data says."""
    return not any(is_value(i) for read in mapping.operands.values() for i in read.index)


def _forms(program: Program, name: str, intrinsics: list[Intrinsic], numerics: str) -> Iterator[Form]:
    for made, parts, exact in _made(program, name):
        after = made.rewrite.after
        for answer in match(after, intrinsics, numerics, [made.stage.name], adapt=False):
            if answer.verdict == "match" and any(_ordinary(m) for m in answer.mappings):
                ran = _same_when_run(program, name, parts)
                if ran is not False:
                    yield Form(name, answer.intrinsic.name, after, parts, exact, bool(ran))
                break


def _made(program: Program, name: str) -> Iterator[tuple[Adapted, tuple[str, ...], bool]]:
    facts = StageFacts(program, program.stage(name))
    try:
        _ = facts.update
    except NotAnUpdate:
        return
    for written, parts in factorings(facts):
        try:
            made = factored(facts, written, parts)
        except NoPlace:
            continue
        names = tuple(t for t in made.rewrite.after.tensors if t not in program.tensors)
        exact = written == facts.original.assign.value or written.dtype.is_integer
        yield made, names, exact


def _same_when_run(program: Program, name: str, parts: tuple[str, ...]) -> bool | None:
    """Whether both forms of a small program give the same; None where none was run."""
    for small in _smaller(program):
        again = next((m for m, names, _ in _made(small, name) if names == parts), None)
        arrays = _data(small)
        if again is None:
            continue
        try:
            want, got = run(small, arrays), run(again.rewrite.after, arrays)
        except AutoschedError:
            continue
        return all(_near(want[n], got[n]) for n in want)
    return None


def _smaller(program: Program) -> Iterator[Program]:
    points = 0
    if not program.symbolic and not program.scalars:
        points = sum(prod(StageFacts(program, s).extents.values()) for s in program.stages)
        if points <= MOST_POINTS:
            yield program
            return
    if program.source and program.sizes and not program.scalars:
        for most in SMALL:
            sizes: dict[str, Any] = {n: min(v, most) for n, v in program.sizes.items()}
            try:
                yield parse(program.source, function=program.name, sizes={**sizes, **program.dtypes})
            except AutoschedError:
                continue


def _data(program: Program) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    ranges = {a.subject: (a.low, a.high) for a in program.assumptions if a.of_range}
    pointing = {
        r.tensor for s in program.stages for read in s.reads for i in read.index if is_value(i) for r in reads(i)
    }
    arrays = {}
    for name in program.inputs:
        tensor = program.tensors[name]
        shape = tuple(tensor.extents)
        if tensor.dtype.is_float:
            data: Any = kinds.round_float(rng.standard_normal(shape), tensor.dtype)
        else:
            low, high = (0, 0) if name in pointing else tensor.dtype.limits
            stated = ranges.get(name, (None, None))
            low, high = (int(s) if s is not None else n for s, n in zip(stated, (low, high), strict=True))
            data = rng.integers(low, high, shape, dtype=np.int64 if high < 2**63 else np.uint64, endpoint=True)
        arrays[name] = np.asarray(data).astype(tensor.dtype.numpy)
    return arrays


def _near(want: Any, got: Any) -> bool:
    if np.issubdtype(want.dtype, np.integer):
        return bool((want == got).all())
    mine, theirs = want.astype(np.float64), got.astype(np.float64)
    size = np.abs(mine[np.isfinite(mine)]).max(initial=0.0)
    return bool(np.allclose(mine, theirs, rtol=1e-2, atol=1e-3 * size, equal_nan=True))
