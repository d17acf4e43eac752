"""What `tune` and `show` say of stages that run together: the rewrites that led there, and what stays in a cache."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from autosched.codegen.intermediates import kept_in_tiles, launches, whole_bytes, working_bytes
from autosched.codegen.tree.kernel import Kernel
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.report.plan_text import loop_words
from autosched.tiling.plans.plan import Plan, TileLoopsPart

SHOWN = 4
"""Intermediates that are named."""


def fusion_lines(plan: Plan, kernel: Kernel, program: Program) -> list[str]:
    """Lines for what names of loops say, for each rewrite, and for what bodies of loops keep: none of a plan that has
    neither. `program` is the one that was given."""
    words = loop_words(_loops(plan)) if plan.rewrites else []
    lines = [f"loops    {' · '.join(words)}"] if words else []
    lines += [f"rewrite  {_said(r)}" for r in plan.rewrites]
    kept = kept_in_tiles(plan)
    if "warp_threads" in plan.target.limits:
        in_memory = {b.origin for b in kernel.buffers.values() if b.scope == "workspace"}
        kept = [k for k in kept if k.tensor not in in_memory]
        place, owner = "shared  ", "block"
    else:
        kept = [k for k in kept if _has_memory(k.tensor, kernel)]
        place, owner = "in cache", "thread"
    if kept:
        largest = {k.tensor: k for k in reversed(kept)}  # several loops may keep a tile of one tensor
        each = sorted(largest.values(), key=lambda k: -k.bytes)
        named = ", ".join(map(str, each[:SHOWN])) + (f" and {len(each) - SHOWN} more" if len(each) > SHOWN else "")
        tile = _size(sum(k.bytes for k in kept))
        lines.append(f"{place} {named}: {tile} for each {owner}")
        now, before = working_bytes(kernel), whole_bytes(program)
        if before:
            lines.append(f"memory   {_size(now)} of intermediates and copies; intermediates as written {_size(before)}")
    return lines


def _has_memory(tensor: str, kernel: Kernel) -> bool:
    """Whether an intermediate has a buffer, under its name or that with a number: others are in registers alone."""
    of_tensor = re.compile(rf"{re.escape(tensor)}(_\d+)?")
    return any(b.scope == "workspace" and of_tensor.fullmatch(b.name) for b in kernel.buffers.values())


def _loops(plan: Plan) -> Iterator[str]:
    """The names of its tile loops, those inside others behind them."""
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            yield from (loop.axis.name for loop in part.loops)
            yield from _loops(part.member)


def fusion_json(kernel: Kernel) -> dict[str, Any]:
    """Two fields of `tune --json`'s `best`."""
    return {"workspace_bytes": working_bytes(kernel), "launches": launches(kernel)}


def error_words(error: str) -> str:
    """What the letters in an error bound say.

    >>> error_words("(n + 9 b + 3) u Σ|terms|, u = 2^-24")
    'n: terms of a sum; b: blocks of the axis, and parts; u: half a unit in the last place of 1'
    """
    letters = {
        "n": "terms of a sum",
        "b": "blocks of the axis, and parts",
        "x": "greatest sum of the sizes of what an exponent is computed from, as |S| + |M|",
        "u": "half a unit in the last place of 1",
    }
    return "; ".join(f"{letter}: {said}" for letter, said in letters.items() if re.search(rf"\b{letter}\b", error))


def _size(count: int) -> str:
    """Bytes as people read them."""
    units = (("MiB", 1 << 20), ("KiB", 1 << 10))
    shown = ((count / of, name) for name, of in units if count >= of)
    return next((f"{n:,.0f} {name}" if n >= 1000 else f"{n:.3g} {name}" for n, name in shown), f"{count} bytes")


def _said(rewrite: RewriteVerdict) -> str:
    error = f", error at most {rewrite.error}" if rewrite.error else ""
    names = ", ".join(rewrite.finite)
    finite = f"; elements of {names} that masks leave out are taken to be finite" if names else ""
    stages = ", ".join(rewrite.stages)
    if rewrite.name == "defer":
        factors = ", ".join(rewrite.deferred.values())
        done = f"{factors} taken out of the sum {stages} along {rewrite.axis}"
        return f"defer: {done} ({rewrite.numerics}{error}){finite}"
    return f"{rewrite.name}: {stages} in one pass along {rewrite.axis} ({rewrite.numerics}{error}){finite}"
