"""`Plan`: for each stage of a program how it is computed, and the space of schedules that this leaves open.

A plan's parts run in order. A *tensor part* puts a stage on an intrinsic, with the elementwise stages that follow it
fused behind its register tile; a *scalar part* computes one stage element by element or vector by vector; a *rows part*
(`FusedLoopsPart`) runs several of those one after the other inside loops that they share; a *team part*
(`WarpCooperativePart`) shares stages among the warps of a GPU; a *literal part* keeps loops that dependences hold
together exactly as written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from autosched.ir.formula import Formulas
from autosched.ir.nodes import Assume, Axis, Stage, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Read, reads
from autosched.logic import Const
from autosched.machine.target import Target
from autosched.tensorize.match_types import Mapping
from autosched.tiling.analysis.dependence import AxisDependence
from autosched.tiling.analysis.nontemporal import NontemporalStore
from autosched.tiling.analysis.windows import ChosenSlice, TensorWindow, moved_by
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.plans.units import NO_UNITS, AcceleratorUnits
from autosched.tiling.space.space import Space


@dataclass(frozen=True)
class Fused:
    """An elementwise stage in front of or behind a register tile; `axes` maps its axes to the tile's program axes.
    `proved`: on an accelerator, how an instruction that overwrites its target computes it (None: no one does)."""

    stage: Stage
    axes: dict[str, str]
    proved: Mapping | None = None


@dataclass(frozen=True)
class Fallback:
    """What runs on data that break the mapping's condition: `parts` without conditions, scheduled by `values`
    (decision to value; scalar parts need none)."""

    parts: tuple[Part, ...]
    values: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TensorPart:
    """A stage on an intrinsic.

    `keep`: whether the accumulated tensor itself must reach memory (an output, or read elsewhere). `scheme`: whose
    steps schedule it, `cpu` (threads, cache blocks) or `gpu` (blocks, warps). `fallback`: of a mapping with conditions,
    which the kernel checks in every call, or once where they are about const data. `start`: the stage in front whose
    results the sums begin with."""

    nest: Nest
    names: StepNames
    epilogue: tuple[Fused, ...] = ()
    keep: bool = True
    scheme: str = "cpu"
    fallback: Fallback | None = None
    start: Fused | None = None

    @property
    def computed_stages(self) -> tuple[Stage, ...]:
        """Its stage, with the one in front and those behind that are computed with it."""
        start = () if self.start is None else (self.start.stage,)
        return (*start, self.nest.stage, *(f.stage for f in self.epilogue))

    @property
    def guards(self) -> tuple[Assume, ...]:
        """The conditions that are checked at run time."""
        if self.fallback is None:
            return ()
        return tuple(c.assume for c in self.nest.mapping.conditions if c.assume is not None)

    @property
    def title(self) -> str:
        on = ", ".join(f"{a.intrinsic_axis}←{a.name}" for a in self.nest.axes if a.intrinsic_axis and a.members)
        start = f" from {self.start.stage.name}" if self.start is not None else ""
        fused = "".join(
            f" +{f.stage.name}" if f.proved is None else f" +{f.stage.name}: {f.proved.intrinsic.name}"
            for f in self.epilogue
        )
        asked = " and ".join(c.text for c in self.nest.mapping.conditions)
        granted = " and ".join(c.text for c in self.nest.mapping.assumed)
        under = f" if {asked}" if asked else f" assuming {granted}" if granted else ""
        where = "".join(f" {c.title}" for c in self.nest.computed.values())
        where += "" if self.nest.groups is None else f" {self.nest.groups.title}"
        return f"{self.nest.stage.name}: {self.nest.intrinsic.name}({on}){start}{fused}{under}{where}"


@dataclass(frozen=True)
class ScalarPart:
    """A stage without an intrinsic, computed element by element or in vectors."""

    stage: Stage
    names: StepNames
    order: tuple[str, ...]
    """The stage's axes as they will be nested, outermost first."""
    vector: str | None
    """The axis that may be vectorised: the innermost spatial one, or None."""
    parallel: bool
    """Whether the outermost axis is proved independent."""
    scheme: str = "cpu"
    """As of a tensor part."""
    register: bool = False
    """Whether a register may hold the target while the reductions run."""
    prepared: bool = False
    """Whether it runs once, before the timed call."""
    across: str | None = None
    """The reduction axis (innermost) whose partial results may lie in the lanes of a register."""
    rows: str | None = None
    """With `across` or `carried`: the spatial axis of which several iterations may run together."""
    blocked: str | None = None
    """The reduction axis that may go outside the vectorised one, a few iterations at a time."""
    running: str | None = None
    """The spatial axis (innermost) along which each sum continues the one before (`tiling.analysis.running_sums`)."""
    carried: str | None = None
    """The axis (innermost) along which each element is computed from the one before (`carried_elements`)."""
    policy: FloatPolicy = field(default_factory=FloatPolicy)
    by_rows: FloatPolicy | None = None
    """The policy where warps of a GPU that share rows compute the stage in fragments (None: they do not)."""
    fused: bool = False
    """Whether a product and an addition become one instruction."""
    nontemporal: NontemporalStore | None = None
    """The stores that may go past the caches."""

    @property
    def title(self) -> str:
        return f"{self.stage.name}: scalar"


@dataclass(frozen=True)
class FusedLoopsPart:
    """Scalar stages inside the loops `shared` (proved independent for all of them together), outermost first: what a
    row of one leaves behind is still in a cache for the next. The members share one set of decisions, `names`.
    `nontemporal`: what may be written past the caches, or None; `asked`: what the first member reads of a row, where
    asking for the next row's ahead of time may help; `distant`: it comes from beyond a core's own caches."""

    shared: tuple[str, ...]
    members: tuple[ScalarPart, ...]
    names: StepNames
    nontemporal: NontemporalStore | None = None
    asked: tuple[Read, ...] = ()
    distant: bool = False

    @property
    def title(self) -> str:
        return f"{'+'.join(m.stage.name for m in self.members)}: rows of {', '.join(self.shared)}"


@dataclass(frozen=True)
class WarpCooperativePart:
    """Scalar stages that threads of a GPU compute together, lanes along contiguous memory (`tiling.plans.teams`).

    `across`: lanes lie along what the stages reduce (or fill), inside the loops `rows` that they share, and a team of
    warps does a whole row, one stage after the other. Otherwise lanes lie along all spatial axes, flattened; the first
    stage may reduce, serially or shared out among warps and blocks, and the others take its element as it is done.
    `fused`: products and additions become one instruction; `policy` says whether terms come in any order."""

    rows: tuple[str, ...]
    members: tuple[Stage, ...]
    names: StepNames
    across: bool
    policy: FloatPolicy = field(default_factory=FloatPolicy)
    fused: bool = True

    @property
    def title(self) -> str:
        over = "rows" if self.across else "lanes"
        return f"{'+'.join(m.name for m in self.members)}: {over} of warps"


@dataclass(frozen=True)
class LiteralPart:
    """Statements that must stay together, run as written."""

    body: tuple[Statement, ...]
    stages: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{'+'.join(self.stages)}: as written"


@dataclass(frozen=True)
class TileLoop:
    """A loop of the program around a member. `parallel`: proved independent, so threads may share its iterations.
    `first`, `last`: the least and the greatest value of its variable. `meets`: what keeps its iterations in order; None
    where nothing does, and where one worker has them all anyway. `name`: the loop's in the program; the axis has
    another where generated code may use that one."""

    axis: Axis
    parallel: bool
    first: int
    last: int
    meets: AxisDependence | None = field(default=None, compare=False, repr=False)
    name: str = ""


@dataclass(frozen=True)
class TileLoopsPart:
    """Stages inside tile loops that they share: perfectly nested `loops`, outermost first, around a `member`, which is
    a plan of the body as a program of its own over `windows` of the tensors that it touches. What an iteration hands on
    from stage to stage is a tensor of the member, of a tile's size. `trips`: iterations of all loops together, on
    average where bounds depend on loops around this part. `grid`: blocks of a GPU share the parallel loops, and what is
    inside is the work of each block's threads. `chosen`: what data choose in each iteration, of which windows are.

    Raises ValueError where a loop of the member has the name of one around it, by which windows begin."""

    loops: tuple[TileLoop, ...]
    member: Plan
    windows: dict[str, TensorWindow]
    stages: tuple[str, ...]
    names: StepNames
    trips: float
    grid: bool = False
    chosen: tuple[ChosenSlice, ...] = ()

    def __post_init__(self) -> None:
        inside = {a.name for s in self.member.program.stages for a in s.axes}
        for tile in self.loops:
            if tile.axis.name in inside:
                raise ValueError(f"a loop inside is called {tile.axis.name}, too")

    @cached_property
    def cache(self) -> dict[Hashable, Any]:
        """What was found out about the body once, for all rows."""
        return {}

    @property
    def title(self) -> str:
        return f"loops over {', '.join(t.name for t in self.loops)} ({self.member.name})"

    def moving(self, window: TensorWindow) -> tuple[TileLoop, ...]:
        """The loops that move a window."""
        names = moved_by(window.start, self.chosen)
        return tuple(t for t in self.loops if t.axis.name in names)

    @property
    def shared(self) -> TileLoop | None:
        """The loop that threads share: the parallel one with the most iterations of those with none that is not around
        it; None where there is none."""
        constant = [t for t in self.loops if t.parallel and isinstance(t.axis.upper, Const)]
        return max(constant, key=lambda t: t.axis.extent, default=None)


Part: TypeAlias = TensorPart | ScalarPart | FusedLoopsPart | WarpCooperativePart | LiteralPart | TileLoopsPart


@dataclass(frozen=True)
class Otherwise:
    """An unconditional plan of a program that computes the same, laid out by `values` (decision to value)."""

    plan: Plan
    values: dict[str, int]

    @cached_property
    def cache(self) -> dict[Hashable, Any]:
        """What was found out about it once, for all rows of the plan that it stands by for."""
        return {}


@dataclass(frozen=True)
class Plan:
    """See the module's docstring. `name` is stable: it names the plan in a store. `otherwise` runs in its place where a
    check of any part refuses the data; without it each such part has a fallback of its own. `formulas` are the
    functions that stages behind a register tile call by name, and scalar parts where a row says so. `units` are an
    accelerator's beside its array: they decide times, and no kernel. `rewrites`: the steps from the program as given to
    `program`, with their proofs."""

    name: str
    program: Program
    target: Target
    parts: tuple[Part, ...]
    space: Space
    otherwise: Otherwise | None = None
    formulas: Formulas = field(default_factory=dict)
    units: AcceleratorUnits = NO_UNITS
    rewrites: tuple[RewriteVerdict, ...] = ()

    @property
    def own_tensor_parts(self) -> tuple[TensorPart, ...]:
        """Those of the plan's stages alone, without those of members of tile loops."""
        return tuple(p for p in self.parts if isinstance(p, TensorPart))

    @property
    def tensor_parts(self) -> tuple[TensorPart, ...]:
        """All parts on an intrinsic, those of members among them."""
        return tuple(t for p in self.parts for t in _on_intrinsics(p))

    @property
    def in_tile_loops(self) -> bool:
        """Whether any of its stages are in tile loops."""
        return any(isinstance(p, TileLoopsPart) for p in self.parts)

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        """Those of its parts, and of what finishes their sums."""
        finished = (f.proved for p in self.tensor_parts for f in p.epilogue)
        return (*(p.nest.mapping for p in self.tensor_parts), *(m for m in finished if m is not None))

    @property
    def stages_on_intrinsics(self) -> frozenset[str]:
        """The names of the stages that its mappings compute, and of those whose sums of groups they add up."""
        groups = (p.nest.groups for p in self.tensor_parts)
        return frozenset({m.stage.name for m in self.mappings} | {g.stage for g in groups if g is not None})

    @property
    def guards(self) -> tuple[Assume, ...]:
        """What the plan's kernels check at run time, each once."""
        return tuple(dict.fromkeys(g for p in self.tensor_parts for g in p.guards))

    @property
    def granted(self) -> tuple[Assume, ...]:
        """What the plan takes for granted, each once."""
        return tuple(dict.fromkeys(c.assume for m in self.mappings for c in m.assumed if c.assume is not None))

    @property
    def relies(self) -> tuple[str, ...]:
        """What callers of the plan's kernels must see to: conditions that were assumed, data that were given, and what
        rewrites take for granted."""
        assumed = [c.text for m in self.mappings for c in m.assumed]
        data = [f"{name} holds the data of SHA-256 {d.sha256}" for name, d in self.program.data.items()]
        rewritten = [text for r in self.rewrites for text in r.relies]
        return tuple(dict.fromkeys([*assumed, *data, *rewritten]))

    @property
    def intrinsics(self) -> tuple[str, ...]:
        return tuple(p.nest.intrinsic.name for p in self.tensor_parts)

    def on_units(self, units: AcceleratorUnits) -> Plan:
        """The plan on an accelerator with these units, and what of them finishes its sums."""
        finished = [f for p in self.tensor_parts for f in p.epilogue if f.proved is not None]
        finishing = {f.stage.assign.tensor: f.proved.intrinsic for f in finished if f.proved is not None}
        passing = frozenset(name for p in self.tensor_parts for name in _passing(p, self.program))
        return replace(self, units=replace(units, finishing=finishing, passing=passing))

    def __repr__(self) -> str:
        return f"Plan({self.name})"


def _passing(part: TensorPart, program: Program) -> Iterator[str]:
    """The intermediates that an instruction makes of a part's finished sums and nothing but its other stages reads."""
    own = {f.stage.name for f in part.epilogue}
    for fused in part.epilogue:
        tensor = fused.stage.assign.tensor
        others = [s for s in program.stages if s.name not in own]
        read = any(tensor == r.tensor for s in others for r in s.reads)
        read |= any(tensor == r.tensor for s in others if s.init is not None for r in reads(s.init))
        written = sum(s.assign.tensor == tensor for s in program.stages)
        if fused.proved is not None and program.tensors[tensor].intermediate and not read and written == 1:
            yield tensor


def _on_intrinsics(part: Part) -> Iterator[TensorPart]:
    match part:
        case TensorPart():
            yield part
        case TileLoopsPart():
            yield from part.member.tensor_parts
