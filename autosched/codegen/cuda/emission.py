"""Intrinsics as device functions: `asm` around the PTX that the YAML gives, or its semantics as plain code.

`emit: cuda` is PTX in which `{a}` stands for the operand's registers: `{%0, %1}`, bare where an instruction of one
thread has one; `{a.0}` is a single one, bare. An operand of memory (a copy's source without registers) is its shared
address. An intrinsic of one thread that has no text is printed from its semantics, which says exactly what it does.

An operand that is taken from shared memory is a descriptor; `{a.across}` is then 1 where its rows do not run along the
reduction, else 0. `emit: cuda_registers` is the form for operands that may be in registers instead. `{keep}` is a
parameter of its own: 0 where the accumulator starts from zero, else 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from autosched.codegen.cuda.fragments.lane_registers import (
    ACROSS,
    HELD,
    issue_name,
    lanes_of,
    register_type,
    registers_of,
    whole_name,
)
from autosched.codegen.cuda.plain import plain_function
from autosched.errors import SpecError
from autosched.escape import in_comment
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.emit import KEEP

LINE = 118  # characters of a printed line
_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<operand>[A-Za-z_]\w*(?:\.across|\.\d+)?)\}")


def device_function(intrinsic: Intrinsic, use: Callable[[str], None], majors: tuple[str, ...] = ()) -> str:
    """The intrinsic as a device function on registers; `use` is told the helpers that it calls, `majors` say how
    opaque operands lie, in order. SpecError where it has neither text nor plain semantics."""
    if "cuda" in intrinsic.emit:
        return _assembly(intrinsic, majors)
    if intrinsic.scope == "thread":
        return plain_function(intrinsic, use)
    raise SpecError(
        f"{intrinsic.name} has no emit.cuda", hint="such an intrinsic can be matched, simulated and interpreted only"
    )


def _assembly(intrinsic: Intrinsic, majors: tuple[str, ...]) -> str:
    lanes, name = lanes_of(intrinsic), issue_name(intrinsic, majors)
    parameters: list[str] = []
    outputs: list[str] = []
    inputs: list[str] = []
    numbers: dict[str, str] = {}
    opaque = [o.name for o in intrinsic.operands.values() if o.opaque is not None and not o.written]
    described = dict(zip(intrinsic.shared_memory, majors, strict=True)) if not opaque and majors else {}
    numbers |= {f"{o}_layout": major for o, major in zip(opaque, majors, strict=bool(majors))} if opaque else {}
    numbers |= {f"{o}.across": str(int(major == ACROSS)) for o, major in described.items()}
    template = intrinsic.emit["cuda_registers" if HELD in described.values() else "cuda"]
    operands = [*(o for o in intrinsic.operands.values() if o.written)]
    operands += [o for o in intrinsic.operands.values() if not o.written]
    number = 0
    for o in operands:
        if intrinsic.kind == "copy" and not o.written and "cuda" not in o.registers:
            parameters.append(f"const void* {o.name}")
            inputs.append(f'"r"(shared_address({o.name}))')
            numbers[o.name], number = f"%{number}", number + 1
            continue
        if described.get(o.name, HELD) != HELD:
            parameters.append(f"uint64_t {o.name}")
            inputs.append(f'"l"({o.name})')
            numbers[o.name], number = f"%{number}", number + 1
            continue
        r = registers_of(o, lanes)
        const, sign = ("", _written(intrinsic, template)) if o.written else ("const ", "")
        type_ = register_type(o, r)
        parameters.append(f"{const}{type_} (&{o.name})[{r.count}]")
        bits = "__float_as_uint" if type_ == "float" and r.constraint == "r" else ""  # tf32: words of whole elements
        places = [f"{bits}({o.name}[{k}])" if bits else f"{o.name}[{k}]" for k in range(r.count)]
        (outputs if o.written else inputs).extend(f'"{sign}{r.constraint}"({place})' for place in places)
        listed = ", ".join(f"%{number + k}" for k in range(r.count))
        numbers[o.name] = listed if lanes == 1 and r.count == 1 else f"{{{listed}}}"
        numbers |= {f"{o.name}.{k}": f"%{number + k}" for k in range(r.count)}
        number += r.count

    def one(token: re.Match[str]) -> str:
        return numbers[token["operand"]] if token["operand"] else token.group(0)[0]

    if f"{{{KEEP}}}" in template:
        parameters.append(f"int {KEEP}")
        inputs.append(f'"r"({KEEP})')
        numbers[KEEP] = f"%{number}"
    text = " ".join(_TOKEN.sub(one, template).split())
    clobber = ' : "memory"' if intrinsic.kind == "copy" else ""
    volatile = " volatile" if lanes > 1 else ""
    return "\n".join(
        [
            f"// {_comment(intrinsic)}",
            _head(name, parameters),
            f"    asm{volatile}({_literal(text)}",
            f"        : {_wrapped(outputs)}",
            f"        : {_wrapped(inputs)}{clobber});",
            "}",
        ]
    )


def _written(intrinsic: Intrinsic, template: str) -> str:
    """How `asm` is told of registers that are written: those that the text reads first, too; those that several
    instructions write, of which an input may be read later."""
    if intrinsic.kind != "copy" and intrinsic.accumulates:
        return "+"
    return "=" if intrinsic.kind == "copy" or template.count(";") <= 1 else "=&"


def whole_function(intrinsic: Intrinsic, operand: str, verb: str, major: str, shared: bool) -> str:
    """The device function that loads or stores an opaque fragment; `shared`: always in shared memory."""
    o = intrinsic.operands[operand]
    assert o.opaque is not None
    r = registers_of(o, lanes_of(intrinsic))
    load, type_ = verb == "load", register_type(o, r)
    first = 0 if load else 2
    listed = ", ".join(f"%{first + k}" for k in range(r.count))
    address, stride = (r.count, r.count + 1) if load else (0, 1)
    fields = {operand: f"{{{listed}}}", "layout": major, "address": f"%{address}", "stride": f"%{stride}"}
    fields["space"] = ".shared" if shared else ""
    template = o.opaque.load if load else o.opaque.store
    if not template:
        raise SpecError(f"{intrinsic.name}: operand {operand} has no text that stores it", hint="opaque: {store: …}")
    text = " ".join(_TOKEN.sub(lambda t: fields[t["operand"]] if t["operand"] else t.group(0)[0], template).split())
    registers = [f'"{"=" if load else ""}{r.constraint}"({operand}[{k}])' for k in range(r.count)]
    pointer = "from" if load else "to"
    memory = [f'"r"(shared_address({pointer}))' if shared else f'"l"({pointer})', '"r"(stride)']
    name = whole_name(intrinsic, operand, verb, major)
    fragment = f"{type_} (&{operand})[{r.count}]"
    head = f"{fragment}, const void* from" if load else f"void* to, const {fragment}"
    return "\n".join(
        [
            f"__device__ __forceinline__ void {name}({head}, int stride) {{",
            f"    asm volatile({_literal(text)}",
            f"        : {_wrapped(registers)}" if load else "        :",
            f"        : {_wrapped(memory if load else [*memory, *registers])}",
            '        : "memory");',
            "}",
        ]
    )


def _head(name: str, parameters: list[str]) -> str:
    line = f"__device__ __forceinline__ void {name}({', '.join(parameters)}) {{"
    if len(line) <= LINE:
        return line
    return f"__device__ __forceinline__ void {name}(\n        {', '.join(parameters)}) {{"


def _literal(text: str) -> str:
    """A string constant, on lines of operands where it is long."""
    lines = [""]
    for piece in re.split(r"(?<=\}, )", text):
        if lines[-1] and len(lines[-1]) + len(piece) > LINE - 20:
            lines.append("")
        lines[-1] += piece
    return "\n        ".join(f'"{line}"' for line in lines)


def _wrapped(parts: list[str]) -> str:
    lines = [", ".join(parts[k : k + 4]) for k in range(0, len(parts), 4)]
    return ",\n          ".join(lines)


def _comment(intrinsic: Intrinsic) -> str:
    return in_comment((intrinsic.summary or intrinsic.name).rstrip(".") + ".")
