"""One worker's register tile on a GPU: operands that the instruction takes from shared memory itself are not loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.fused_stages import group_added, group_factor
from autosched.codegen.lower.common.operands.sources import OperandSource
from autosched.codegen.lower.common.register_tile import RegisterTile
from autosched.codegen.lower.common.tile_places import Places
from autosched.codegen.lower.common.tile_registers import fields_of
from autosched.codegen.lower.gpu.shared_slices import SharedSource
from autosched.codegen.tree.kernel import Assign, RegisterRef, Stmt
from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Literal, Read, Value, reads
from autosched.logic import FALSE, TRUE, Bool, Const, Int, all_of
from autosched.tiling.plans.group_sums import GroupSums
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart

First = tuple[Bool, Int]
"""Where sums begin: in which slices, with which depth unit."""
NOWHERE: First = (FALSE, Const(0))


@dataclass(frozen=True, eq=False)
class WorkerTile(RegisterTile):
    """`direct` are the operands that stay in shared memory; sums start from zero at `first`."""

    direct: frozenset[str] = frozenset()
    first: First = NOWHERE

    @staticmethod
    def of(
        part: TensorPart,
        sources: Mapping[str, OperandSource],
        ctx: Context,
        tiled: tuple[NestAxis, ...],
        owners: tuple[tuple[Int, int], ...],
        direct: frozenset[str],
    ) -> WorkerTile:
        """Its registers are declared. Accumulators outlive a loop over workers: each of `owners` has its own."""

        def declare(name: str, dtype: DType, shape: tuple[int, ...], scope: str) -> str:
            shape = (*(n for _, n in owners), *shape) if name == "acc" else shape
            return ctx.declare(name, dtype, shape, scope).name

        fields = fields_of(part, sources, ctx, declare, tiled)
        # Which lane holds what is the instruction's affair here.
        fields |= {"owner": tuple(worker for worker, _ in owners), "transposer": None}
        return WorkerTile(**fields, direct=direct)

    def on_slices(self, sources: Mapping[str, OperandSource], first: First, acc: str | None = None) -> WorkerTile:
        """This tile with some operands from `sources`; sums, in `acc` if given, start from zero at `first`."""
        return replace(self, sources={**self.sources, **sources}, first=first, acc=acc or self.acc)

    def in_place(self, operand: str, at: Places) -> RegisterRef | None:
        source = self.sources[operand]
        return source.descriptor(at) if operand in self.direct and isinstance(source, SharedSource) else None

    @property
    def overwrites(self) -> bool:
        """Whether sums that begin with zero need no zeros: the instruction has a form for the first of a sum."""
        return self.intrinsic.overwrite_flag

    def zero_init(self, at: Places) -> Bool:
        slices, unit = self.first
        if slices == FALSE or self.nest.depth is None:
            return FALSE
        return all_of(slices, at[self.nest.depth.name].unit.eq(unit))

    def add(self, value: Value, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """A value for each of the worker's lanes, added to its accumulators."""
        total = Arith("+", self.acc_read(), value, value.dtype)
        index = (*self.acc_index(), self.element(self.accumulator.elements))
        return self.over(self.tiled, counts, (Assign(self.acc, index, total, self.lane(self.accumulator.elements)),))

    def kept_factors(
        self, groups: GroupSums, kept: Mapping[Value, str], at: Places, counts: dict[str, int]
    ) -> tuple[Stmt, ...]:
        """Factors of a group's sum, loaded into the registers that `kept` names, shaped like its accumulators."""
        axes, valid = self.output(at)
        n = self.accumulator.elements
        index = (*self.acc_index(), self.element(n))
        loads = (
            Assign(name, index, group_factor(groups, factor, axes, self.ctx), self.lane(n), valid)
            for factor, name in kept.items()
        )
        return self.over(self.tiled, counts, tuple(loads))

    def add_group(
        self, groups: GroupSums, summed: Read, kept: Mapping[Value, str], at: Places, counts: dict[str, int]
    ) -> tuple[Stmt, ...]:
        """A group's sum for each of the worker's lanes, added to its accumulators with the group's factors."""
        axes, valid = self.output(at)
        index = (*self.acc_index(), self.element(self.accumulator.elements))
        held = {factor: Read(name, index, factor.dtype) for factor, name in kept.items()}
        total = group_added(groups, summed, self.acc_read(), held, axes, self.ctx)
        inside = any(r.tensor in self.ctx.program.tensors for r in reads(total))  # others are in registers
        lane = self.lane(self.accumulator.elements)
        return self.over(self.tiled, counts, (Assign(self.acc, index, total, lane, valid if inside else TRUE),))

    def cleared(self, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """Accumulators at zero, for sums of a share of the reduction."""
        n, dtype = self.accumulator.elements, self.accumulator.dtype
        zero = Literal(0 if dtype.kind != "float" else 0.0, dtype)
        store = Assign(self.acc, (*self.acc_index(), self.element(n)), zero, self.lane(n))
        return self.over(self.tiled, counts, (store,))
