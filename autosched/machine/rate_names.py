"""What a target may state a rate or an energy of. A misspelt name would be looked up by nobody, so it is refused."""

from __future__ import annotations

from autosched.errors import nearest
from autosched.ir.dtypes import DTYPES

CLASSES = ("load", "store", "scalar", "vector")
"""Kinds of instructions that every core has some of; `vector`: any operations on its widest vectors."""
FUNCTIONS = ("exp", "log", "tanh", "erf", "sigmoid", "sqrt", "rsqrt")
"""What `ops.` may name in place of a type: functions of an activation unit."""
UNITS = ("tensor", "tile")
"""What `ops.` may name before the types: operations of a warp or warpgroup, and those of a matrix unit."""


def misnamed(key: str) -> tuple[str, str] | None:
    """What is wrong with the name of a rate, and what helps; None for an instruction (`isa/name`), a class,
    `ops.[unit.]<input>[.<sum>]`, or `ops.<function>`.

    >>> misnamed("ops.tensr.f16")[1]
    "did you mean 'tensor'? ops.<type>, ops.tensor.<input>[.<sum>], ops.<function>"
    >>> misnamed("ops.tensor.f16.f32"), misnamed("x86/vpdpbusd.zmm"), misnamed("load"), misnamed("ops.tanh")
    (None, None, None, None)
    """
    if not key.startswith("ops."):
        if key in CLASSES or "/" in key:
            return None
        close = nearest(key, CLASSES)
        hint = f"an instruction is called isa/name; others: {', '.join(CLASSES)}, ops.…"
        return f"{key!r} names no instruction and no class", (f"did you mean {close!r}? " if close else "") + hint
    unit, *types = key.split(".")[1:]
    if unit in FUNCTIONS and not types:
        return None
    if unit not in UNITS:
        types.insert(0, unit)
    wrong = next((t for t in types if t not in DTYPES), None)
    if types and wrong is None and len(types) <= 2:
        return None
    close = nearest(wrong, [*UNITS, *DTYPES, *FUNCTIONS]) if wrong else None
    hint = "ops.<type>, ops.tensor.<input>[.<sum>], ops.<function>"
    return f"{key!r} names no class of operations", (f"did you mean {close!r}? " if close else "") + hint
