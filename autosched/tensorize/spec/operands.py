"""Operands: element order, fragments and registers of each, checked against the shapes of the semantics."""

from __future__ import annotations

import re
from collections.abc import Collection
from math import prod

from autosched.backends import backend_of, backends
from autosched.errors import nearest
from autosched.ir.map import Map
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.logic import Int, Var, free_vars
from autosched.tensorize.intrinsic import Opaque, Operand
from autosched.tensorize.spec.emit import c_bits, fault_of_fields, llvm_bits, natural_llvm
from autosched.tensorize.spec.expression import fault_of_bijection, parse_expression
from autosched.tensorize.spec.keys.models import IntrinsicKeys, OperandKeys
from autosched.tensorize.spec.keys.register_fields import check_fields
from autosched.tensorize.spec.source import DocumentSource

MAX_ELEMENTS = 1 << 20
_TYPE = re.compile(r"[A-Za-z0-9_<>(),.* ]*\w[A-Za-z0-9_<>(),.* ]*")  # no text that ends the declaration
_C_TYPE = re.compile(
    r"(?!.*\b(?:static|extern|register|typedef|return|inline|void|typeof|const|volatile)\b)"
    r"[A-Za-z_]\w*(?: [A-Za-z_]\w*)*(?: __attribute__\(\(vector_size\(\d+(?: ?\* ?\d+)?\)\)\))?"
)
_TOGETHER = ("warp", "warpgroup")


def printer_of(isa: str) -> str:
    """The printer that a bare `emit:` text or `registers:` is for."""
    return backend_of(isa).emits


def _printers(emit: Collection[str]) -> list[str]:
    """The names that a register's type may be given for: of languages, and of the texts that the entry has."""
    return [*dict.fromkeys(["llvm", "c", *(b.emits for b in backends()), *emit])]


def lanes_of(isa: str, keys: IntrinsicKeys) -> int | None:
    """Threads that hold a fragment together, as the entry says or as is usual; None for a thread or a core."""
    if keys.scope not in _TOGETHER:
        return None
    return keys.lanes or backend_of(isa).threads_of(keys.scope)


def make_operands(
    keys: IntrinsicKeys, isa: str, program: Program, source: DocumentSource, held: bool = True
) -> dict[str, Operand]:
    """All operands of the semantics, in its order of parameters; SpecError names the operand at fault. `held`: texts
    name what a register holds, and not its number."""
    for name in keys.operands:
        if name not in program.tensors:
            close = nearest(name, program.tensors)
            hint = (f"did you mean {close!r}? " if close else "") + f"parameters: {', '.join(program.tensors)}"
            raise source.error(
                f"the operand {name!r} is no parameter of the semantics", "operands", name, key=True, hint=hint
            )
    stage = program.stages[0]
    return {name: _operand(name, keys, isa, program, stage, source, held) for name in program.tensors}


def _operand(
    name: str, keys: IntrinsicKeys, isa: str, program: Program, stage: Stage, source: DocumentSource, held: bool
) -> Operand:
    own = keys.operands.get(name, OperandKeys())
    tensor = program.tensors[name]
    shape = tensor.extents
    if prod(shape) > MAX_ELEMENTS:
        raise source.error(f"operand {name}: {prod(shape):,} elements; at most {MAX_ELEMENTS:,}", "semantics")
    given = [k for k in ("packed", "order", "fragment", "opaque") if getattr(own, k) is not None]
    if len(given) > 1:
        raise source.error(
            f"operand {name}: {given[0]} and {given[1]} both say the element order",
            "operands",
            name,
            given[1],
            key=True,
        )
    dimensions = dimension_names(name, len(shape), stage)
    if own.broadcast is not None:
        over = [own.broadcast.over] if isinstance(own.broadcast.over, str) else own.broadcast.over
        axes = [a.name for a in stage.axes]
        for axis in over:
            if axis not in axes:
                hint = f"axes: {', '.join(axes)}"
                raise source.error(
                    f"operand {name}: no axis {axis!r} to broadcast over", "operands", name, "broadcast", hint=hint
                )
    else:
        over = []
    order = _ordered(shape, tuple(range(len(shape))))
    fragment = None
    if own.packed is not None:
        order = _packed(own.packed, shape, dimensions, name, source)
    elif own.order is not None:
        order = _by_expressions(own.order, (("e", prod(shape)),), shape, name, "order", source)
    elif own.fragment is not None:
        fragment = _fragment(own.fragment, keys, isa, shape, name, own.copies or 1, source)
    made = Operand(
        name=name,
        dtype=tensor.dtype,
        shape=shape,
        order=order,
        fragment=fragment,
        registers=dict(own.register_),
        load=tuple(own.load),
        written=name == stage.assign.tensor,
        opaque=_opaque(own, keys, isa, shape, name, source),
        broadcast=tuple(over),
        copies=own.copies or 1,
        bits=own.bits or 0,
        shift=own.shift or 0,
        distinct=own.distinct or 0,
        state=own.state or "",
    )
    check_fields(made, own, stage, source)
    if held:
        _registers(made, own, keys, isa, source)
    return made


def dimension_names(name: str, rank: int, stage: Stage) -> tuple[str, ...]:
    """Each dimension's name in `packed`: the one axis that indexes it, else `operand.dimension`."""
    found: list[set[str]] = [set() for _ in range(rank)]
    for read in (stage.target, *stage.reads):
        if read.tensor == name:
            for d, index in enumerate(read.index):
                if isinstance(index, Int):
                    found[d] |= free_vars(index)
    names = [next(iter(f)) if len(f) == 1 else f"{name}.{d}" for d, f in enumerate(found)]
    return tuple(n if names.count(n) == 1 else f"{name}.{d}" for d, n in enumerate(names))


def _ordered(shape: tuple[int, ...], dimensions: tuple[int, ...]) -> Map:
    """Element `e` with `dimensions` from outermost to innermost."""
    coordinates: dict[int, Int] = {}
    stride = prod(shape)
    for position, d in enumerate(dimensions):
        stride //= shape[d]
        part = Var("e") // stride
        coordinates[d] = part if position == 0 else part % shape[d]
    return Map((("e", prod(shape)),), tuple(coordinates[d] for d in range(len(shape))))


def _packed(
    packed: list[str | int], shape: tuple[int, ...], names: tuple[str, ...], operand: str, source: DocumentSource
) -> Map:
    hint = "name each dimension once, outermost first: " + ", ".join(names)
    found: list[int] = []
    for word in packed:
        own = re.fullmatch(rf"{re.escape(operand)}\.(\d+)", str(word))
        if word in names:
            found.append(names.index(str(word)))
        elif (own and int(own[1]) < len(shape)) or (isinstance(word, int) and 0 <= word < len(shape)):
            found.append(int(own[1]) if own else int(word))
        else:
            raise source.error(
                f"operand {operand}: packed: unknown dimension {word!r}", "operands", operand, "packed", hint=hint
            )
    if sorted(found) != list(range(len(shape))):
        raise source.error(
            f"operand {operand}: packed does not name every dimension once", "operands", operand, "packed", hint=hint
        )
    return _ordered(shape, tuple(found))


def _by_expressions(
    texts: list[str], domain: tuple[tuple[str, int], ...], shape: tuple[int, ...], name: str, key: str,
    source: DocumentSource, copies: int = 1,
) -> Map:
    place = ("operands", name, key)
    if len(texts) != len(shape):
        raise source.error(f"operand {name}: {key} has {len(texts)} expressions for {len(shape)} dimensions", *place)
    variables = tuple(v for v, _ in domain)
    parsed = [
        parse_expression(text, variables, source.document.location(*source.path, *place, d))
        for d, text in enumerate(texts)
    ]
    made = Map(domain, tuple(parsed))
    if fault := fault_of_bijection(made, shape, copies):
        onto = "is no bijection onto" if copies == 1 else f"does not hold each element {copies} times of"
        raise source.error(f"operand {name}: {key} {onto} {list(shape)}: {fault}", *place)
    return made


def _fragment(
    texts: list[str], keys: IntrinsicKeys, isa: str, shape: tuple[int, ...], name: str, copies: int,
    source: DocumentSource,
) -> Map:
    lanes = lanes_of(isa, keys)
    place = ("operands", name, "fragment")
    if lanes is None:
        hint = "set scope: warp (or warpgroup); within one thread use packed or order"
        raise source.error(
            f"operand {name}: a fragment needs several lanes, and scope is {keys.scope}", *place, hint=hint
        )
    held = prod(shape) * copies
    if held % lanes:
        raise source.error(f"operand {name}: {held} elements do not divide among {lanes} lanes", *place)
    return _by_expressions(texts, (("t", lanes), ("v", held // lanes)), shape, name, "fragment", source, copies)


def _opaque(
    own: OperandKeys, keys: IntrinsicKeys, isa: str, shape: tuple[int, ...], name: str, source: DocumentSource
) -> Opaque | None:
    if own.opaque is None:
        return None
    if lanes_of(isa, keys) is None or len(shape) != 2:
        hint = "it is a matrix that a warp or warpgroup holds together"
        raise source.error(f"operand {name}: no fragment of a {keys.scope}", "operands", name, "opaque", hint=hint)
    for key, text in (("load", own.opaque.load), ("store", own.opaque.store)):
        fields = {name, "address", "stride", "layout", "space"}
        if text and (fault := fault_of_fields(text, fields, needed={name, "address"})):
            raise source.error(f"operand {name}: {fault}", "operands", name, "opaque", key)
    return Opaque(own.opaque.registers, own.opaque.load, own.opaque.store)


def _registers(operand: Operand, own: OperandKeys, keys: IntrinsicKeys, isa: str, source: DocumentSource) -> None:
    """Check register widths, and fill in what follows from the semantics (into `operand.registers`)."""
    bits = operand.elements * operand.dtype.bits
    name = operand.name
    if own.registers is not None:
        count, kind = own.registers.split(" x ")
        width = re.search(r"\d+$", kind)
        lanes = lanes_of(isa, keys) or 1
        held = operand.elements * operand.copies * operand.field_bits
        room = int(count) * int(width[0]) * lanes if width is not None else 0
        # Of what several lanes hold the last register may have more bits than are used.
        spare = 0 if width is None or operand.copies == 1 else (int(width[0]) - 1) * lanes
        if not held <= room <= held + spare or not room:
            hint = f"{held // lanes} bits a lane: {held} bits over {lanes} lanes"
            raise source.error(
                f"operand {name}: {own.registers} does not hold it", "operands", name, "registers", hint=hint
            )
        operand.registers.setdefault(printer_of(isa), own.registers)
    emit = keys.emit if isinstance(keys.emit, dict) else {printer_of(isa): keys.emit}
    if "llvm" in emit:
        operand.registers.setdefault("llvm", natural_llvm(operand))
    if "c" in emit and "c" not in operand.registers:
        hint = f"operands: {{{name}: {{register: {{c: __m512i}}}}}}"
        raise source.error(f"operand {name} has no C register type, which emit.c needs", "emit", key=True, hint=hint)
    for printer, text in own.register_.items():
        if printer not in (known := _printers(emit)):
            close = nearest(printer, known)
            hint = (f"did you mean {close!r}? " if close else "") + f"known: {', '.join(known)}"
            said = f"operand {name}: register: nothing is printed as {printer!r}"
            raise source.error(said, "operands", name, "register", printer, key=True, hint=hint)
        if not (_C_TYPE if printer == "c" else _TYPE).fullmatch(text):
            said = f"operand {name}: the register {text!r} is no type"
            raise source.error(said, "operands", name, "register", printer, hint="for example __m512i")
    for printer, width_of in (("llvm", llvm_bits), ("c", c_bits)):
        if printer not in operand.registers:
            continue
        text = operand.registers[printer]
        found = width_of(text)
        place = ("operands", name, "register", printer)
        if found is None and printer == "llvm":
            raise source.error(
                f"operand {name}: {text!r} is no LLVM vector type", *place, hint=f"for example {natural_llvm(operand)}"
            )
        if found is not None and found != bits:
            shape = "×".join(str(n) for n in operand.shape)
            hint = f"{shape} elements of {operand.dtype}" + (
                f", as {natural_llvm(operand)}" if printer == "llvm" else ""
            )
            raise source.error(
                f"operand {name}: the register {text!r} has {found} bits, the operand {bits}", *place, hint=hint
            )
