"""`state: {matrices: …}`: registers of an instruction's own, as `tensorize.matrices` has them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Annotated

from pydantic import Field, PositiveInt

from autosched.ir.program import Program
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.lengths import at_full_length
from autosched.tensorize.matrices import USES, Matrices
from autosched.tensorize.spec.emit import fault_of_c, fault_of_fields
from autosched.tensorize.spec.keys.models import IntrinsicKeys, Keys
from autosched.tensorize.spec.source import DocumentSource
from autosched.yaml_lines import validate

KEY = "matrices"
_LLVM = re.compile(r"call void @llvm\.[\w.]+\([^()]*\)")
_Byte = Annotated[int, Field(ge=0, le=255)]


class _ByteRun(Keys):
    at: Annotated[int, Field(ge=0)]
    to: list[_Byte]


class _Configuration(Keys):
    bytes: Annotated[int, Field(ge=1, le=4096)]
    rows: Annotated[int, Field(ge=0)] | None = None
    set: list[_ByteRun] = Field(default_factory=list)


class _Texts(Keys):
    configure: str
    release: str
    zero: str
    load: str
    store: str


class _MatrixKeys(Keys):
    registers: PositiveInt
    rows: PositiveInt
    bytes_a_row: PositiveInt
    configuration: _Configuration
    llvm: _Texts | None = None
    c: _Texts | None = None
    source: str = ""


def matrices_of(keys: IntrinsicKeys, program: Program, source: DocumentSource) -> Matrices | None:
    """The registers that the entry's `state` describes; None where it describes none. SpecError where an operand is not
    one of them, or a text is none."""
    if KEY not in keys.state:
        return None
    place = ("state", KEY)
    data: object = keys.state[KEY]
    for part in reversed((*source.path, *place)):
        data = [None] * part + [data] if isinstance(part, int) else {part: data}
    found = validate(_MatrixKeys, replace(source.document, data=data), (*source.path, *place))
    size = found.rows * found.bytes_a_row
    for name, tensor in program.tensors.items():
        bits = tensor.dtype.bits
        for n in tensor.extents:
            bits *= n
        if bits != 8 * size:
            hint = f"{found.rows} rows of {found.bytes_a_row} bytes are {8 * size:,} bits"
            raise source.error(f"operand {name} has {bits:,} bits, and fills no register", *place, hint=hint)
    configuration = bytearray(found.configuration.bytes)
    for run in found.configuration.set:
        if run.at + len(run.to) > len(configuration):
            raise source.error(f"configuration: byte {run.at + len(run.to) - 1} is outside", *place, "configuration")
        configuration[run.at : run.at + len(run.to)] = bytes(run.to)
    at = found.configuration.rows
    if at is not None and list(configuration[at : at + found.registers]) != [found.rows] * found.registers:
        where = (*place, "configuration", "rows")
        raise source.error(f"bytes {at} on are not the rows of {found.registers} registers", *where)
    texts = []
    for printer, given in (("llvm", found.llvm), ("c", found.c)):
        for use, fields in USES.items():
            if given is None:
                continue
            text: str = getattr(given, use)
            fault = fault_of_fields(text, set(fields), set(fields))
            if printer == "llvm" and not fault and not _LLVM.fullmatch(text):
                fault = f"{text!r} is not accepted: write call void @llvm.…(…)"
            if printer == "c" and not fault:
                fault = fault_of_c(text)
            if fault:
                raise source.error(f"{printer}.{use}: {fault}", *place, printer, use)
            texts.append((printer, use, text))
    return Matrices(found.registers, found.rows, found.bytes_a_row, bytes(configuration), tuple(texts), at)


def interval_by_lanes(made: Intrinsic, keys: IntrinsicKeys, source: DocumentSource) -> tuple[tuple[int, float], ...]:
    """What `timing.lengths` says. SpecError where no length says how many lanes take part, or more lanes take fewer
    cycles."""
    given = tuple(keys.timing.lengths)
    if not given:
        return ()
    whole = at_full_length(made)
    if whole is None or whole[0].length is None:
        hint = "compare an axis with an operand of one element (`if u32(i) < vl[0]`)"
        raise source.error("timing.lengths: no operand is its length", "timing", "lengths", hint=hint)
    axis = whole[0].length[1]
    lanes = next(a.extent for a in made.stage.axes if a.name == axis)
    known = [*given, (lanes, keys.timing.interval or 1.0)]
    if any(n >= more or cycles > longer for (n, cycles), (more, longer) in pairwise(known)):
        wrong = "timing.lengths: more lanes take fewer cycles, or are no more"
        hint = f"lengths ascend to less than {lanes}, their intervals to that of all of them"
        raise source.error(wrong, "timing", "lengths", hint=hint)
    return given


def interval_by_rows(
    keys: IntrinsicKeys, matrices: Matrices | None, source: DocumentSource
) -> tuple[tuple[int, float], ...]:
    """What `timing.rows` says. SpecError where registers hold no matrices, or more rows than some take fewer cycles."""
    given = tuple(keys.timing.rows)
    if not given:
        return ()
    if matrices is None:
        raise source.error("timing.rows: its registers hold no matrices", "timing", "rows")
    known = [*given, (matrices.rows, keys.timing.interval or 1.0)]
    if any(n >= more or cycles > longer for (n, cycles), (more, longer) in pairwise(known)):
        hint = f"rows ascend to less than {matrices.rows}, their intervals to that of all of them"
        raise source.error("timing.rows: more rows take fewer cycles, or are no more", "timing", "rows", hint=hint)
    return given
