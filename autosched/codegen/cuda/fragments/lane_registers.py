"""Registers of an instruction's operands in one lane, and the name of its device function."""

from __future__ import annotations

import re
from dataclasses import dataclass

from autosched.backends import CUDA
from autosched.codegen.cuda.types import element_type
from autosched.errors import SpecError
from autosched.tensorize.intrinsic import Intrinsic, Operand

_KINDS = {"b32": ("uint32_t", "r"), "f32": ("float", "f"), "f64": ("double", "d"), "b64": ("uint64_t", "l")}
_KINDS |= {"b16": ("uint16_t", "h")}
_TEXT = re.compile(r"(?P<count>[1-9]\d{0,3}) x (?P<kind>\w+)", re.ASCII)
ALONG, ACROSS, HELD = "k", "mn", "registers"
"""How an operand that an instruction takes from shared memory lies: its rows along the reduction, or along its own
axis; or it is in registers after all."""


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers of one lane: how many, and the C type and `asm` constraint of one."""

    count: int
    type: str
    constraint: str

    @property
    def bits(self) -> int:
        """Of one register; 0 where it is an element of any type."""
        return {"uint32_t": 32, "float": 32, "double": 64, "uint64_t": 64, "uint16_t": 16}.get(self.type, 0)


def lanes_of(intrinsic: Intrinsic) -> int:
    """Threads that issue it together."""
    return CUDA.threads_of(intrinsic.scope)


def registers_of(operand: Operand, lanes: int) -> Registers:
    """An operand's registers in one lane: as the YAML says, else 32-bit words (or elements, where they are wider).
    SpecError where what it says is none."""
    text = operand.opaque.registers if operand.opaque is not None else operand.registers.get("cuda")
    if text:
        found = _TEXT.fullmatch(text)
        if found is None or found["kind"] not in _KINDS:
            raise SpecError(
                f"operand {operand.name}: {text!r} names no registers of CUDA",
                hint=f"write a number and a kind, as `8 x b32`; kinds: {', '.join(sorted(_KINDS))}",
            )
        return Registers(int(found["count"]), *_KINDS[found["kind"]])
    bits = operand.lane_elements(lanes) * operand.field_bits
    if operand.dtype.name in ("f32", "f64"):
        return Registers(bits // operand.dtype.bits, *_KINDS[operand.dtype.name])
    return Registers(max(1, -(-bits // 32)), *_KINDS["b32"])


def identifier(intrinsic: Intrinsic) -> str:
    """`cuda/mma.m16n8k16.f16.f16.f32` as a C identifier."""
    return re.sub(r"\W", "_", intrinsic.name.partition("/")[2])


def whole_name(intrinsic: Intrinsic, operand: str, verb: str, major: str) -> str:
    """The device function that loads or stores an opaque fragment: `wmma_…_load_a_row`."""
    return f"{identifier(intrinsic)}_{verb}_{operand}_{major}"


def issue_name(intrinsic: Intrinsic, majors: tuple[str, ...]) -> str:
    """The device function that issues an intrinsic on fragments that lie as `majors` says: `wmma_…_row_col`."""
    return "_".join((identifier(intrinsic), *majors))


def register_type(operand: Operand, registers: Registers) -> str:
    """The C type of one register: the element's own where a register holds just one."""
    alone = operand.field_bits == operand.dtype.bits == registers.bits
    if alone and not (operand.opaque is not None and operand.dtype.is_float):
        return element_type(operand.dtype)
    return registers.type
