"""Where random floats are drawn from, for programs that make NaN of most numbers: a logarithm or a root says nothing of
a kernel where it is NaN in program and kernel alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from autosched.errors import DataError
from autosched.ir.oracle.assumed import assumed_range, is_free
from autosched.ir.oracle.inputs import random_inputs
from autosched.ir.oracle.numerics import in_dtype
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, is_value, walk

DOMAINS: Mapping[str, Callable[[Any], Any]] = {
    "between 0 and 1": lambda x: np.abs(x) * (1 - 2.0**-6) + 2.0**-7,
    "between 1 and 4": lambda x: np.abs(x) * 3 + 1,
    "between -4 and -1": lambda x: -np.abs(x) * 3 - 1,
    "between 2 and 32": lambda x: np.abs(x) * 30 + 2,
    "between -1/64 and 1/64": lambda x: x / 64,
}
"""What to make of numbers from -1 to 1, in the order of trying."""
ENOUGH = 0.75
"""The share of an output that data must say something about; with less, other domains are tried."""
PARTIAL = frozenset({"log", "sqrt", "rsqrt", "scalb"})
DECIDED = "decided"
_KEY = "domain of floats"
T = TypeVar("T")


def drawn_inputs(
    program: Program, rng: np.random.Generator, most: int | None = None, domain: str | None = DECIDED
) -> dict[str, Any]:
    """`random_inputs`, floats in a domain: that which was `decided` for the program (none yet: as they are drawn)."""
    drawn = random_inputs(program, rng, most)
    domain = program.cache.get(_KEY) if domain == DECIDED else domain
    if domain is None:
        return drawn
    for name in drawn:
        own = program.tensors.get(name) or program.scalars[name]
        if own.dtype.is_float and not own.dtype.finite and _free(program, name):
            wide = DOMAINS[domain](np.asarray(drawn[name]).astype(np.float64))
            kept = in_dtype(wide, own.dtype)
            drawn[name] = kept[()] if name in program.scalars else kept
    return drawn


def decided(program: Program, make: Callable[[str | None], T], share: Callable[[T], float]) -> T | None:
    """Decide, once a program, where its floats are drawn from: the first domain of which `share` says most, [-1, 1)
    where that says enough. `make` computes the outputs of data in a domain; what it made for the chosen one, if
    anything."""
    if _KEY in program.cache:
        return None
    chosen, made = None, None
    try:
        best = -1.0
        for domain in (None, *DOMAINS) if _partial(program) else ():
            found = make(domain)
            says = share(found)
            if says > best:
                best, chosen, made = says, domain, found
            if best == 1.0 or (domain is None and best >= ENOUGH):
                break
    except DataError:
        chosen, made = None, None
    program.cache[_KEY] = chosen
    return made


def undecided(program: Program) -> bool:
    """Whether nobody has decided, and it makes a difference."""
    return _KEY not in program.cache and _partial(program)


def _partial(program: Program) -> bool:
    """Whether something in a program is NaN for some finite numbers."""
    for stage in program.stages:
        roots = (stage.assign.value, *([] if stage.init is None else [stage.init]))
        for node in (n for root in (*roots, *(g for g in stage.guards if is_value(g))) for n in walk(root)):
            if isinstance(node, Arith) and node.op == "/":
                return True
            if isinstance(node, Call) and (node.function in PARTIAL or node.function.startswith("bits_")):
                return True
    return False


def _free(program: Program, name: str) -> bool:
    return is_free(program, name) if name in program.tensors else assumed_range(program, name) == (None, None)
