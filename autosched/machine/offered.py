"""Which intrinsics a target has, and why it has none of those that somebody asked for."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.errors import UsageError
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic


def offered(intrinsics: Sequence[Intrinsic], target: Target) -> list[Intrinsic]:
    """Those of the target's isa, or portable, whose features it lists; with the contracts that they have on it. A chip
    without a host runs no portable code."""
    return [i.on(target.features) for i in intrinsics if _of(i, target) and target.has(i.requires)]


def _of(intrinsic: Intrinsic, target: Target) -> bool:
    return intrinsic.isa == target.isa or (intrinsic.portable and target.host)


def refuse_absent(asked: Sequence[Intrinsic], target: Target) -> UsageError:
    """The error for intrinsics that were asked for by name and of which the target offers none: whose they are, or
    which features it lacks."""
    first = asked[0].name
    one = len(asked) == 1
    which = first if one else f"{first} and {len(asked) - 1} more"
    same = [i for i in asked if _of(i, target)]
    if not same and all(i.portable for i in asked):
        said = f"{target.name} has no host, and {which} {'is' if one else 'are'} code of one"
        return UsageError(said, hint="name instructions of its own with -i, or leave `host: none` out")
    if not same:
        isas = ", ".join(sorted({i.isa for i in asked}))
        said = f"{target.name} is {target.isa}, and {which} {'is' if one else 'are'} for {isas}"
        return UsageError(said, hint="give a target of that kind with -t, or other intrinsics with -i")
    missing = [sorted(i.requires - target.features) for i in same]
    if not all(missing):
        plain = same[missing.index([])]
        said = f"{plain.name} computes nothing: it is a {plain.kind}" if plain.kind != "compute" else ""
        said = said or f"{plain.name} has no text (`emit`) that this device could run"
        return UsageError(said, hint="name others with -i, or take -d simulator, which needs no text")
    fewest = min(missing, key=len)
    said = f"{target.name} lacks {' and '.join(fewest)}, which {which} {'requires' if one else 'require'}"
    return UsageError(said, hint=f"it has {', '.join(sorted(target.features)) or 'no features'}")
