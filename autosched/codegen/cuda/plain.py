"""An intrinsic of one thread as plain code: the loops of its semantics over the registers of its operands."""

from __future__ import annotations

from collections.abc import Callable

from autosched.codegen.analysis.access import flat_offset, plain
from autosched.codegen.c_like.blocks import loop_head
from autosched.codegen.c_like.names import Names, Spelling
from autosched.codegen.cuda.fragments.lane_registers import identifier, register_type, registers_of
from autosched.codegen.cuda.indices import CudaIndices
from autosched.codegen.cuda.simplify import Simplifier
from autosched.codegen.cuda.types import element_type
from autosched.codegen.cuda.values import CudaValues
from autosched.codegen.tree.kernel import Buffer
from autosched.codegen.tree.update import updated
from autosched.ir.value import Index, Read
from autosched.tensorize.intrinsic import Intrinsic


def plain_function(intrinsic: Intrinsic, use: Callable[[str], None]) -> str:
    """The device function; `use` is told the helpers that it calls."""
    stage, names = intrinsic.stage, Names(["element"])
    ranges = {a.name: (0, a.extent - 1) for a in stage.axes}
    index = CudaIndices(Spelling(names), ranges, use, lambda: Simplifier(ranges))
    buffers = {o.name: Buffer(o.name, o.dtype, o.shape, "register") for o in intrinsic.operands.values()}

    def place(name: str, subscripts: tuple[Index, ...]) -> str:
        operand = intrinsic.operands[name]
        offset = index.number(flat_offset(buffers[name], plain(name, subscripts)))
        if register_type(operand, registers_of(operand, 1)) == element_type(operand.dtype):
            return f"{names(name)}[{offset}]"
        return f"element<{element_type(operand.dtype)}>({names(name)}, {offset})"

    def read(read: Read) -> str:
        return place(read.tensor, read.index)

    values = CudaValues(index, read, names, use)
    operands = sorted(intrinsic.operands.values(), key=lambda o: not o.written)
    parameters = []
    for o in operands:
        registers = registers_of(o, 1)
        parameters.append(f"{register_type(o, registers)} (&{names(o.name)})[{registers.count}]")
    lines = [f"__device__ __forceinline__ void {identifier(intrinsic)}({', '.join(parameters)}) {{"]
    pad = "    "
    for axis in stage.axes:
        if axis.extent == 1:  # its range says what it is
            continue
        lines.append("#pragma unroll")
        lines.append(f"{pad}{loop_head('int', names.local(axis.name), axis.extent)}")
        pad += "    "
    target = place(stage.assign.tensor, stage.assign.index)
    lines.append(f"{pad}{target} = {values.stored(updated(stage))};")
    return "\n".join([*lines, "}"])
