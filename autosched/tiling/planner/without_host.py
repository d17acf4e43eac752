"""What of a plan no unit of an accelerator does: statements without an instruction, and elements without a way.

For chips that have no host (`Target.host`). Everything is asked of the plan and of the instructions that the chip
describes; nothing here knows a program or an instruction by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autosched.errors import Location, NoScheduleError
from autosched.ir.dtypes import DType
from autosched.ir.nodes import Stage
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.value import Literal, Read, Scalar, reads, walk
from autosched.machine.target import Target
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.plan import Fused, FusedLoopsPart, LiteralPart, Part, Plan, ScalarPart, TensorPart
from autosched.tiling.plans.units import Place, operation_of
from autosched.tiling.variants.stepped import Pattern, types_of, uncovered

MOST_TOLD = 6
"""Places that an error names."""


@dataclass(frozen=True)
class Missing:
    """A statement, what of it nothing does, and what would mend that."""

    stage: str
    location: Location | None
    what: str
    mend: str
    way: bool = False
    """Whether elements do not get there, or back, or state is not set; else nothing computes the statement."""

    def __str__(self) -> str:
        at = f"{self.location}: " if self.location is not None else ""
        return f"{at}{self.stage}: {self.what}"


def refuse_host_work(plans: Sequence[Plan], target: Target, patterns: Sequence[Pattern] = ()) -> list[Plan]:
    """The plans that an accelerator without a host runs whole. NoScheduleError where there is none: with what the plan
    that leaves least to do lacks, each with its place, and what would mend it. `patterns` say which part of a value it
    is that none computes."""
    if target.host or scheme_of(target) != "spatial":
        return list(plans)
    if plans and not patterns and not any(map(_of_the_chip, plans)):
        said = f"{target.name} has no host, and no instruction of isa {target.isa} that it has is known"
        raise NoScheduleError(said, hint="give their file with --intrinsics, spelt as the target is")
    lacking = [(plan, list(dict.fromkeys(missing(plan, patterns)))) for plan in plans]
    whole = [plan for plan, found in lacking if not found]
    if whole or not lacking:
        return whole
    least = min((found for _, found in lacking), key=lambda found: (sum(not m.way for m in found), len(found)))
    more = f"\n  and {len(least) - MOST_TOLD} more" if len(least) > MOST_TOLD else ""
    said = "".join(f"\n  {m}" for m in least[:MOST_TOLD]) + more
    message = f"{target.name} has no host, and no unit of it does all of the program:{said}"
    raise NoScheduleError(message, hint="\n".join(dict.fromkeys(m.mend for m in least[:MOST_TOLD])))


def _of_the_chip(plan: Plan) -> bool:
    """Whether anything of a plan is described for its target."""
    units = plan.units
    own = any(t.nest.intrinsic.isa == plan.target.isa for t in plan.tensor_parts)
    return own or bool(units.copies or units.functions or units.configs)


def missing(plan: Plan, patterns: Sequence[Pattern] = ()) -> Iterator[Missing]:
    """What of a plan no instruction of its target does, in the order of its parts."""
    for part in plan.parts:
        if isinstance(part, TensorPart):
            yield from _of_nest(part, plan, patterns)
        else:
            for stage, held in _stages(part, plan.program):
                yield from _of_loops(stage, plan, patterns, held)


def _stages(part: Part, program: Program) -> Iterator[tuple[Stage, bool]]:
    """The stages of a part without an instruction, and whether each element waits for another of its own."""
    match part:
        case ScalarPart():
            yield part.stage, part.running is not None or part.carried is not None
        case FusedLoopsPart():
            for member in part.members:
                yield from _stages(member, program)
        case LiteralPart():
            yield from ((s, True) for s in program.stages if s.name in part.stages)


def _of_loops(stage: Stage, plan: Plan, patterns: Sequence[Pattern], held: bool) -> Iterator[Missing]:
    """A stage that no instruction computes as a whole: numbers that stay on the chip go with commands, operations of
    which the target states rates are its unit's; all else has no place."""
    value = stage.assign.value
    stays = plan.program.tensors[stage.assign.tensor].intermediate
    if isinstance(value, Literal | Scalar) and stays and not stage.reduction:
        return
    kinds = {kind for n in walk(value) if (kind := operation_of(n)) is not None}
    kinds |= {("", value.dtype.name)} if stage.assign.op != "=" else set()
    priced = [plan.units.price(plan.target, *kind)[0] == "vector" for kind in kinds]
    if not held and priced and all(priced):
        return
    part = uncovered(stage, patterns)
    value = value if part is None or held else part
    said = f"no instruction computes {print_value(value)}"
    if part is not None and not held:
        types = ", ".join(dict.fromkeys(t.name for t in types_of(part)))
        mend = f"describe an instruction of kind compute that writes it, {value.dtype.name}, from {types or 'numbers'}"
        yield Missing(stage.name, stage.assign.location, said, f"{stage.name}: {mend}")
        return
    if stage.assign.op != "=":
        said = f"no instruction adds up {print_value(value)} by {stage.assign.op}"
    said += ", and its iterations depend on each other" if held else ""
    form = "adds to it over the axes that it leaves out" if stage.reduction else "overwrites it"
    types = ", ".join(dict.fromkeys(r.dtype.name for r in reads(value)))
    mend = f"{stage.name}: describe an instruction of kind compute that {form} from {types or 'numbers'}"
    mend += " (`autosched match --explain` says how near others are)"
    yield Missing(stage.name, stage.assign.location, said, mend)


def _of_nest(part: TensorPart, plan: Plan, patterns: Sequence[Pattern]) -> Iterator[Missing]:
    nest, target, units = part.nest, plan.target, plan.units
    stage, out = nest.stage, nest.intrinsic.accumulator
    if nest.intrinsic.isa != target.isa:  # portable code
        yield from _of_loops(stage, plan, patterns, held=False)
        return
    for i in (nest.intrinsic, *(f.proved.intrinsic for f in part.epilogue if f.proved is not None)):
        for state in i.configured:
            if units.setting(target, state) is None:
                said = f"{i.name} computes with {state}, which nothing sets before"
                mend = f"{stage.name}: describe an instruction of kind: config with `sets: [{state}]`"
                yield Missing(stage.name, stage.assign.location, said, mend, way=True)
    yield from _unheld(stage, plan, [*(("inputs",) if nest.intrinsic.inputs else ()), "accumulators"])
    for operand in nest.intrinsic.inputs:
        if units.copying(target, "memory", "inputs", operand.dtype, operand.dtype) is None:
            taken = f", where {nest.intrinsic.name} takes {operand.name}"
            yield _no_way(stage, plan, "memory", "inputs", operand.dtype, operand.dtype, taken)
    if stage.init is None and stage.assign.op != "=":  # sums go on from what memory has
        tensor = plan.program.tensors[stage.assign.tensor]
        if units.copying(target, "memory", "accumulators", tensor.dtype, out.dtype) is None:
            taken = f", and the sums of {tensor.name} go on from what is there"
            yield _no_way(stage, plan, "memory", "accumulators", tensor.dtype, out.dtype, taken)
    if stage.init is not None and not isinstance(stage.init, Literal):
        if not isinstance(stage.init, Read):
            said = f"no instruction computes {print_value(stage.init)}, which its sums begin with"
            mend = f"{stage.name}: write the sums to a tensor that begins with 0"
            yield Missing(stage.name, stage.assign.location, said, mend)
        elif units.copying(target, "memory", "accumulators", stage.init.dtype, out.dtype) is None:
            yield _no_way(stage, plan, "memory", "accumulators", stage.init.dtype, out.dtype)
    made, lost = {stage.assign.tensor}, set[str]()
    for fused in part.epilogue:
        for found in _finishing(fused, plan, patterns, out.dtype):
            lost.add(fused.stage.name)
            yield found
        for read in reads(fused.stage.assign.value):
            ways = (units.copying(target, "memory", to, read.dtype, read.dtype) for to in ("inputs", "accumulators"))
            if read.tensor not in made and all(way is None for way in ways):
                taken = f", for {print_value(read)}"
                yield _no_way(fused.stage, plan, "memory", "inputs", read.dtype, read.dtype, taken)
        made.add(fused.stage.assign.tensor)
    for written in [*([stage] if part.keep else []), *(f.stage for f in part.epilogue)]:
        tensor = plan.program.tensors[written.assign.tensor]
        if tensor.name in units.passing:
            continue  # it stays on the chip
        if written.name not in lost and units.leaving(target, tensor.name, out.dtype, tensor.dtype) is None:
            finished = units.finishing.get(tensor.name)
            start = out.dtype if finished is None else finished.accumulator.dtype
            yield _no_way(written, plan, "accumulators", "memory", start, tensor.dtype)


def _unheld(stage: Stage, plan: Plan, places: Sequence[Place]) -> Iterator[Missing]:
    """Places of the chip that no memory of it holds."""
    held = {what for m in plan.target.memories for what in m.holds}
    for place in places:
        if place not in held:
            said = f"no memory of {plan.target.name} holds {place}"
            mend = f"{plan.target.name}: state `holds: [{place}]` of the memory that does"
            yield Missing(stage.name, stage.assign.location, said, mend, way=True)


def _finishing(fused: Fused, plan: Plan, patterns: Sequence[Pattern], sums: DType) -> Iterator[Missing]:
    """A stage on finished sums: an instruction does it, or rates, or the copy that takes it out."""
    value = fused.stage.assign.value
    if fused.proved is not None or (isinstance(value, Read) and value.dtype == sums):
        return
    yield from _of_loops(fused.stage, plan, patterns, held=False)


def _no_way(
    stage: Stage, plan: Plan, start: Place, end: Place, read: DType, written: DType, why: str = ""
) -> Missing:
    changed = "" if read == written else f" as {written.name}"
    said = f"nothing copies {read.name} from {start} to {end}{changed}{why}"
    holds = {"inputs", "accumulators"} - {what for m in plan.target.memories for what in m.holds}
    mend = f"describe one of kind: copy with `moves: {{from: {start}, to: {end}}}` that reads {read.name}"
    mend += "" if read == written else f" and writes {written.name}"
    lacking = {start, end} & holds
    mend += f"; no memory of {plan.target.name} holds {' or '.join(sorted(lacking))}" if lacking else ""
    return Missing(stage.name, stage.assign.location, said, f"{stage.name}: {mend}", way=True)
