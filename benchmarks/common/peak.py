"""The arithmetic peak of a program: the issue loops of the instructions that its types allow, on all threads."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from autosched import api
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.machine.detect import detect
from autosched.machine.peaks import measure_peaks
from autosched.tensorize.intrinsic import Intrinsic


def fastest_types(program: Program, known: Iterable[Intrinsic] | None = None) -> list[Intrinsic]:
    """Instructions among the `known` (None: this machine's) with the accumulator of the program's largest stage, and
    inputs as wide as its own (or of the next width that any has: f32 for bf16 where nothing takes that), as many
    operations at once as any has."""
    stage = max(program.stages, key=_iterations)
    total = stage.assign.value.dtype
    widest = max((r.dtype.bits for r in stage.reads if r.tensor != stage.assign.tensor), default=total.bits)
    fitting = [
        i
        for i in (api.host_intrinsics() if known is None else known)
        if i.kind == "compute"
        and i.scope == "thread"
        and "llvm" in i.emit
        and i.accumulator.dtype == total
        and {o.dtype.is_float for o in i.inputs} == {total.is_float}
        and len({o.dtype.bits for o in i.inputs}) == 1
    ]
    width = min((w for i in fitting if (w := i.inputs[0].dtype.bits) >= widest), default=widest)
    fitting = [i for i in fitting if i.inputs[0].dtype.bits == width]
    most = max((i.operations for i in fitting), default=0)
    return [i for i in fitting if i.operations == most]


def _iterations(stage: Stage) -> int:
    return prod(a.extent for a in stage.axes)


class Peak:
    """Operations a second of `threads` cores: the greatest of all samples, since a neighbour can only lower one."""

    def __init__(self, program: Program, threads: int) -> None:
        self._intrinsics, self._target, self._threads = fastest_types(program), detect(), threads
        self.operations_per_s, self.name = 0.0, ""

    def sample(self) -> float:
        """Time the loops once more: some 20 ms an instruction."""
        effort = "quick" if self._threads == 1 else "full"
        found = measure_peaks(self._target, self._intrinsics, effort=effort, bandwidth=False)
        for i in self._intrinsics:
            if i.name in found.rates:
                together = found.all_cores.get(i.name, found.issues_per_s(i.name)) if self._threads > 1 else 0.0
                speed = i.operations * max(together, found.issues_per_s(i.name))
                if speed > self.operations_per_s:
                    self.operations_per_s, self.name = speed, i.name
        return self.operations_per_s
