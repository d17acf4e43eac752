"""Which parts of a plan may run as a chain, a few rows of a shared axis at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.logic import TRUE, Const, Var
from autosched.machine.target import Target
from autosched.tiling.analysis.shared_axis import may_share, row_dimension
from autosched.tiling.plans.chain import Chain, Handed
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import Part, ScalarPart, TensorPart
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps.cpu.chain import packs, tile_sizes
from autosched.tiling.steps.nest_steps import nest_steps


def chain_of(program: Program, parts: Sequence[Part], target: Target) -> Chain | None:
    """The first longest chain of a plan's parts: neighbours, each of which reads what one before it wrote. Nests alone,
    on vectors, without guards or conditions."""
    best: Chain | None = None
    timed = [p for p in parts if not (isinstance(p, ScalarPart) and p.prepared)]
    for fits, run in groupby(timed, lambda p: isinstance(p, TensorPart) and _plain(p)):
        members = [p for p in run if isinstance(p, TensorPart)] if fits else []
        for start in range(len(members)):
            for count in range(len(members) - start, 1, -1):
                if best is not None and count <= len(best.axes):
                    break
                found = _chain(program, members[start : start + count], target)
                best = found or best
    return best


def _plain(part: TensorPart) -> bool:
    nest = part.nest
    guarded = nest.guard != TRUE or nest.bounds != TRUE or any(g != TRUE for g in nest.guarded.values())
    return part.scheme == "cpu" and part.fallback is None and nest.intrinsic.matrices is None and not guarded


def _chain(program: Program, parts: Sequence[TensorPart], target: Target) -> Chain | None:
    """The chain of just these parts; None where there is none."""
    axes = _shared(program, parts)
    if axes is None:
        return None
    first = parts[0]
    extent = first.nest.by_name[axes[first.nest.stage.name]].extent
    stages = [s for p in parts for s in stages_of(p)]
    written = frozenset(s.assign.tensor for s in stages)
    handed = []
    for tensor in sorted(t for t in written if program.tensors[t].intermediate):
        dimension = row_dimension(axes, program, tensor)
        if dimension is not None:
            handed.append(Handed(tensor, dimension))
    names = StepNames("chain'." if any(s.name == "chain" for s in program.stages) else "chain.")
    chain = Chain(axes, extent, written, tuple(handed), names)
    if not tile_sizes(extent) or not all(_readable(p, chain, target) for p in parts):
        return None
    return chain


def stages_of(part: TensorPart) -> tuple[Stage, ...]:
    """A part's stages, in order."""
    return (part.nest.stage, *(f.stage for f in part.epilogue))


def _readable(part: TensorPart, chain: Chain, target: Target) -> bool:
    """Whether each operand can be read in a way that a chain has."""
    steps = nest_steps(part.nest, target, 1, part.names)
    domains = {d.name: d.domain for s in steps for d in s.decisions}
    return all(
        set(packs(part.nest, o.name, chain)) & set(domains[part.names.pack(o.name)]) for o in part.nest.intrinsic.inputs
    )


def _shared(program: Program, parts: Sequence[TensorPart]) -> dict[str, str] | None:
    """For each stage the axis that all parts share, the longest there is; None where there is none."""
    found: list[tuple[int, dict[str, str]]] = []
    for axis in _rows(parts[0].nest):
        axes = _own(parts[0], axis)
        for number, part in enumerate(parts[1:], 1):
            name = _handed_to(part, parts[:number], axes) if axes else None
            axes = axes | _own(part, name) if name is not None and name in _rows(part.nest) else {}
        if axes and may_share(program, axes):
            found.append((parts[0].nest.by_name[axis].extent, axes))
    return max(found, key=lambda f: f[0])[1] if found else None


def _rows(nest: Nest) -> Iterator[str]:
    """Axes outside the intrinsic from zero on."""
    plain = {a.name for a in nest.stage.axes if a.lower == Const(0) and isinstance(a.upper, Const)}
    return (a.name for a in nest.rows if a.name in plain)


def _own(part: TensorPart, axis: str) -> dict[str, str]:
    """The axis by the name that each stage of the part has for it."""
    axes = {part.nest.stage.name: axis}
    for fused in part.epilogue:
        axes[fused.stage.name] = next(name for name, own in fused.axes.items() if own == axis)
    return axes


def _handed_to(part: TensorPart, before: Sequence[TensorPart], axes: Mapping[str, str]) -> str | None:
    """The axis of a part that stands where parts before it have the shared one, in what they hand on to it."""
    taken = part.nest.stage.reads
    for stage in (s for p in before for s in stages_of(p)):
        own = axes.get(stage.name)
        for d, index in enumerate(stage.assign.index):
            for read in taken:
                at = read.index[d] if read.tensor == stage.assign.tensor else None
                if index == Var(own or "") and isinstance(at, Var):
                    return at.name
    return None

