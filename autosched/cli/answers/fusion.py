"""What `tune` and `show` say of stages that run together: the rewrites that led there, and what stays in a cache."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autosched.codegen.intermediates import Kept, kept_in_tiles, launches, whole_bytes, working_bytes
from autosched.codegen.tree.kernel import Buffer, Kernel
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.work import operations, steps, unmasked_steps
from autosched.logic import free_vars
from autosched.report.plan_text import LoopBounds, loop_words
from autosched.report.text import amount_of, bytes_of
from autosched.tensorize.explanation.certificate import left_out
from autosched.tiling.analysis.dependence import AxisDependence
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Part,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.steps.gpu.block_tile import is_block_loop

NUMBERED = re.compile(r"(.+)_\d+")
SHOWN = 4
"""Intermediates, and stages of a kind, that are named."""
ALIKE = 0.99
"""Share of the operations that loops execute above which nothing is said about the others."""


def fusion_lines(plan: Plan, kernel: Kernel, program: Program) -> list[str]:
    """Lines for what names of loops say, for each rewrite, and for what bodies of loops keep: none of a plan that has
    neither. `program` is the one that was given."""
    words = loop_words(_loops(plan)) if plan.rewrites else []
    lines = [f"loops    {' · '.join(words)}"] if words else []
    lines += [f"names    {said}" for said in copy_words(plan, program)]
    lines += [f"rewrite  {_said(r)}" for r in plan.rewrites]
    kept = _kept_words(plan, kernel)
    return lines + kept + ([f"memory   {said}" for said in memory_words(kernel, program)] if kept else [])


def _kept_words(plan: Plan, kernel: Kernel) -> list[str]:
    """What bodies of loops keep, a line for each place where some of it lies. Of a tensor that a loop holds in
    registers shared memory has what stages outside of that loop use, too."""
    kept = kept_in_tiles(plan)
    if "warp_threads" not in plan.target.limits:
        return _kept_at("in cache", [k for k in kept if _has_buffer(k.tensor, kernel, "workspace")], "thread")
    in_memory = {b.origin for b in kernel.buffers.values() if b.scope == "workspace"}
    placed = {k: _buffer(k.tensor, kernel, "shared") for k in kept if k.tensor not in in_memory}
    lying = ((k, b) for k, b in placed.items() if b is not None)
    shared = {k: replace(k, shape=b.shape, bytes=b.elements * b.dtype.bytes) for k, b in lying}
    named = {k.tensor for k in shared} | in_memory
    held = [k for k in kept if k.tensor not in named or _has_buffer(f"{k.tensor}_held", kernel, "register")]
    both = dict.fromkeys(k.tensor for k in held if k in shared)
    beside = f"; {_listed(list(both))} for stages outside the loop that holds them" if both else ""
    lines = [*_kept_at("held    ", held, "block, in registers"), *_kept_at("shared  ", list(shared.values()), "block")]
    return [*lines[:-1], *(line + beside for line in lines[-1:])]


def _kept_at(place: str, kept: Sequence[Kept], owner: str) -> list[str]:
    if not kept:
        return []
    largest = {k.tensor: k for k in reversed(kept)}  # several loops may keep a tile of one tensor
    each = sorted(largest.values(), key=lambda k: -k.bytes)
    named = ", ".join(map(str, each[:SHOWN])) + (f" and {len(each) - SHOWN} more" if len(each) > SHOWN else "")
    return [f"{place} {named}: {bytes_of(sum(k.bytes for k in kept))} for each {owner}"]


def serial_lines(plan: Plan) -> list[str]:
    """A line for each loop around others that one worker goes through although there are several, with the reason."""
    lines = []
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            worker = "block" if part.grid else "thread"
            free = part.grid and any(is_block_loop(t.parallel, t.axis.lower, t.axis.upper) for t in part.loops)
            who = f"each {worker}" if free or part.shared is not None else f"one {worker}"
            for loop in part.loops:
                if loop.meets is not None and loop.first < loop.last:
                    why = _meeting_words(loop.name, loop.meets, None if plan.rewrites else plan.program)
                    lines.append(f"serial   {loop.name}: {who} goes through all of it: {why}")
    return lines


def _meeting_words(axis: str, found: AxisDependence, program: Program | None) -> str:
    """Why iterations of a loop have one worker; and what may be done where they merely use one intermediate of the
    `program`, if that is the one that was given."""
    if found.conflict is None:
        return str(found)
    if found.kind == "reduction":
        return f"its iterations add to one sum ({found.conflict})"
    name, each = found.conflict.tensor, (found.conflict.first, found.conflict.second)
    moves = any(axis in free_vars(i) for access in each for i in access.index if i is not None)
    if program is None or not program.tensors[name].intermediate or moves:
        return str(found.conflict)
    advice = f"where no iteration needs what another leaves there, {name}[{axis}, …] sets them apart"
    return f"{found.conflict}; {advice}"


def memory_words(kernel: Kernel, program: Program) -> list[str]:
    """What a call works in, beside what the program as it was given would; nothing where that has no intermediates."""
    now, before = working_bytes(kernel), whole_bytes(program)
    said = f"{bytes_of(now)} of intermediates and copies; intermediates as written {bytes_of(before)}"
    return [said] if before else []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _has_buffer(tensor: str, kernel: Kernel, scope: str) -> bool:
    return _buffer(tensor, kernel, scope) is not None


def _buffer(tensor: str, kernel: Kernel, scope: str) -> Buffer | None:
    """An intermediate's buffer there, under its name or that with a number."""
    of_tensor = re.compile(rf"{re.escape(tensor)}(_\d+)?")
    found = (b for b in kernel.buffers.values() if b.scope == scope and of_tensor.fullmatch(b.name))
    return next(found, None)


def _loops(plan: Plan, around: Mapping[str, str] = {}) -> Iterator[LoopBounds]:
    """Its tile loops, those inside others behind them; `around`: the names of those that these are inside of."""
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            called = {**around, **{t.axis.name: t.name for t in part.loops}}
            for loop in part.loops:
                bounds = free_vars(loop.axis.lower), free_vars(loop.axis.upper)
                begins, ends = (tuple(sorted(called.get(n, n) for n in names)) for names in bounds)
                yield LoopBounds(loop.name, begins, ends)
            yield from _loops(part.member, called)


def other_lines(plan: Plan) -> list[str]:
    """A line for the stages that the plan's name leaves out: those that are computed in vectors or as written, at the
    top and in each tile loop; none where it names all."""
    said = list(_others(plan, ""))
    return [f"others   {' · '.join(said)}"] if said else []


def _others(plan: Plan, within: str) -> Iterator[str]:
    kinds: dict[tuple[str, str], list[str]] = {}
    for part in plan.parts:
        match part:
            case ScalarPart():
                kind = "reductions" if part.stage.reduction else "elementwise"
                when = " (before the run)" if part.prepared else ""
                kinds.setdefault((kind, when), []).append(part.stage.name)
            case LiteralPart():
                kinds.setdefault(("as written", ""), []).extend(part.stages)
            case _:
                pass
    if kinds:
        named = (f"{kind} {_some(names)}{when}" for (kind, when), names in sorted(kinds.items(), reverse=True))
        yield (f"in {within}: " if within else "") + ", ".join(named)
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            yield from _others(part.member, part.loops[-1].name)


def _some(names: Sequence[str]) -> str:
    return " ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def left_out_lines(plan: Plan) -> list[str]:
    """A line for the steps that products leave out under guards; none of a plan that leaves none out."""
    said: dict[str, list[str]] = {}
    for mapping in plan.mappings:
        for guard in left_out(mapping):
            said.setdefault(guard, []).append(mapping.stage.name)
    each = (f"{' '.join(dict.fromkeys(stages))} where {guard} fails" for guard, stages in said.items())
    return [f"left out steps of {'; of '.join(each)} (show --as proof has the proof)"] if said else []


def work_lines(program: Program) -> list[str]:
    """How much of the loops' work counts, where that is not all of it."""
    work, written = operations(program), steps(program)
    if not 0 < work < ALIKE * written:
        return []
    counted = f"the loops as written have {amount_of(written)} operations, of which {amount_of(work)} count"
    unmasked = unmasked_steps(program)
    why = ["those under a mask do not"] * (unmasked < written)
    why += ["what is the same along a loop counts once"] * (work < unmasked)
    return [f"{counted}: {', and '.join(why)}"]


def copy_words(plan: Plan, program: Program) -> list[str]:
    """What tensors are of which a rewrite made several, each with some of the rows of one of the program's: one line,
    or none."""
    told: dict[str, list[tuple[str, str]]] = {}
    for tensor, where in _rows_of(plan).items():
        of = NUMBERED.fullmatch(tensor)
        if of is not None and of[1] in program.tensors and tensor not in program.tensors:
            told.setdefault(where, []).append((tensor, of[1]))
    said = (", ".join(t for t, _ in p) + f": rows of {', '.join(of for _, of in p)} {w}" for w, p in told.items())
    return [" · ".join(said)] if told else []


def _rows_of(plan: Plan) -> dict[str, str]:
    """The tensors that stages of a plan with tile loops write, each with the place of its stage beside these loops;
    what a loop takes over from the iteration before is the loop's."""
    loops = [p for p in plan.parts if isinstance(p, TileLoopsPart)]
    names = {s.name: s.assign.tensor for s in plan.program.stages}
    outside, inside, begun = dict[str, str](), dict[str, str](), 0
    for part in plan.parts if loops else ():
        if isinstance(part, TileLoopsPart):
            begun += 1
            inside |= {names[s]: f"in the loop over {part.loops[-1].name}" for s in part.stages}
        else:
            near, place = (loops[begun], "before") if begun < len(loops) else (loops[-1], "behind")
            outside |= {names[s]: f"{place} the loop over {near.loops[-1].name}" for s in _stages(part)}
    return outside | inside


def _stages(part: Part) -> Iterator[str]:
    """The stages that a part computes, by name."""
    match part:
        case TensorPart():
            yield from part.nest.never_stored
            yield from (s.name for s in part.computed_stages)
        case ScalarPart():
            yield part.stage.name
        case FusedLoopsPart():
            yield from (m.stage.name for m in part.members)
        case WarpCooperativePart():
            yield from (s.name for s in part.members)
        case LiteralPart() | TileLoopsPart():
            yield from part.stages


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


def done_by(rewrite: RewriteVerdict) -> str:
    """What a rewrite did to which stages."""
    stages = ", ".join(rewrite.stages)
    if rewrite.name == "defer":
        return f"{', '.join(rewrite.deferred.values())} taken out of the sum {stages} along {rewrite.axis}"
    if rewrite.name == "steps":
        return f"{stages} by one instruction after the other"
    if rewrite.name == "one-hot":
        return f"{stages} takes the one element along {rewrite.axis} that data say"
    if rewrite.name == "grouped rows":
        return f"members of groups along {rewrite.axis} apart in {stages}"
    return f"{stages} in one pass along {rewrite.axis}"


def _said(rewrite: RewriteVerdict) -> str:
    error = f", error at most {rewrite.error}" if rewrite.error else ""
    names = ", ".join(rewrite.finite)
    finite = f"; elements of {names} that masks leave out are taken to be finite" if names else ""
    return f"{rewrite.name}: {done_by(rewrite)} ({rewrite.numerics}{error}){finite}"
