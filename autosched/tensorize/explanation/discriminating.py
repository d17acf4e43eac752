"""Inputs that tell an intrinsic's sum from another's, or from the program's own: the question and the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosched.errors import UsageError
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.discriminate import Discriminating, discriminate
from autosched.tensorize.numerics.dot import Dot, IntrinsicDot, ProgramDot, is_dot
from autosched.tensorize.reduction.floats import factors_of
from autosched.tensorize.reduction.update import NotAnUpdate, update_of
from autosched.tensorize.spec.catalogue import Catalogue

PROGRAM = "program"


def tell_apart(
    program: Program,
    stage: Stage,
    intrinsic: Intrinsic,
    against: str,
    known: Catalogue,
    features: frozenset[str] = frozenset(),
) -> Discriminating | None:
    """Inputs on which `intrinsic` and `against` give two results; None where none were found.

    `against` is `program` (the stage's sum as it stands), or an intrinsic's name, with `@feature,feature` for the
    contract of such a target, else that of a target with `features`. UsageError where there are no sums of two float
    factors to compare, UnknownNameError for a name that the catalogue lacks.
    """
    if not is_dot(intrinsic):
        raise UsageError(f"{intrinsic.name} sums no products of two floats", hint="nothing rounds in it")
    other: Dot
    if against == PROGRAM:
        other = _program(program, stage)
    else:
        name, _, said = against.partition("@")
        found = known.find(name).on(frozenset(said.split(",")) if said else features)
        if not is_dot(found):
            raise UsageError(f"{found.name} sums no products of two floats", hint="choose another intrinsic to compare")
        other = IntrinsicDot(found, against)
    return discriminate(IntrinsicDot(intrinsic), other, np.random.default_rng(0))


def _program(program: Program, stage: Stage) -> ProgramDot:
    hint = "the program's stage is to be a sum of products of two elements; name another intrinsic instead"
    try:
        update = update_of(stage)
    except NotAnUpdate as error:
        raise UsageError(f"stage {stage.name}: {error.message}", hint=hint) from None
    factors = factors_of(update.term)
    if update.combine != "+" or len(factors) != 2 or not all(d.is_float for _, d in factors):
        raise UsageError(f"stage {stage.name} of {program.name} sums no products of two floats", hint=hint)
    return ProgramDot((factors[0][1], factors[1][1]), update.target.dtype, update.fused)


def discriminating_json(found: Discriminating) -> dict[str, Any]:
    """Plain data; numbers are exact, `hex` holds the results once more."""
    return {
        "between": list(found.names),
        "inputs": {"a": list(found.a), "b": list(found.b), "c": found.c},
        "results": dict(zip(found.names, (_plain(r) for r in found.results), strict=True)),
        "hex": dict(zip(found.names, (r.hex() for r in found.results), strict=True)),
        "exact": found.exact,
    }


def discriminating_lines(found: Discriminating) -> list[str]:
    """The input and both results, to read."""
    terms = ", ".join(f"a[{k}]·b[{k}] = {_exactly(x)}·{_exactly(y)}" for k, x, y in found.terms())
    rest = f" (the others of {len(found.a)} are 0)"
    lines = [f"told apart by c = {found.c!r}" + (f", {terms}" if terms else "") + rest]
    wide = max(len(n) for n in (*found.names, "exact"))
    lines += [f"  {n:{wide}}  {r!r} ({r.hex()})" for n, r in zip(found.names, found.results, strict=True)]
    return [*lines, f"  {'exact':{wide}}  {found.exact!r}"]


def _exactly(value: float) -> str:
    """The number so that reading it back gives the same one."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _plain(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
