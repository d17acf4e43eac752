"""Intrinsics as device functions: `asm` around the PTX that the YAML gives, or its semantics as plain code.

`emit: cuda` is PTX in which `{a}` stands for the operand's registers: `{%0, %1}`, bare where an instruction of one
thread has one. An operand of memory (a copy's source without registers) is its shared address. An intrinsic of one
thread that has no text is printed from its semantics, which says exactly what it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from autosched.codegen.cuda.plain import plain_function
from autosched.codegen.cuda.registers import identifier, lanes_of, register_type, registers_of
from autosched.errors import SpecError
from autosched.tensorize.intrinsic import Intrinsic

_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<operand>[A-Za-z_]\w*)\}")


def device_function(intrinsic: Intrinsic, use: Callable[[str], None]) -> str:
    """The intrinsic as a device function on registers; `use` is told the helpers that it calls. SpecError where it has
    neither text nor plain semantics."""
    if "cuda" in intrinsic.emit:
        return _assembly(intrinsic)
    if intrinsic.scope == "thread":
        return plain_function(intrinsic, use)
    raise SpecError(
        f"{intrinsic.name} has no emit.cuda", hint="such an intrinsic can be matched, simulated and interpreted only"
    )


def _assembly(intrinsic: Intrinsic) -> str:
    lanes, name = lanes_of(intrinsic), identifier(intrinsic)
    parameters: list[str] = []
    outputs: list[str] = []
    inputs: list[str] = []
    numbers: dict[str, str] = {}
    operands = [*(o for o in intrinsic.operands.values() if o.written)]
    operands += [o for o in intrinsic.operands.values() if not o.written]
    number = 0
    for o in operands:
        if intrinsic.kind == "copy" and not o.written and "cuda" not in o.registers:
            parameters.append(f"const void* {o.name}")
            inputs.append(f'"r"(shared_address({o.name}))')
            numbers[o.name], number = f"%{number}", number + 1
            continue
        r = registers_of(o, lanes)
        const, sign = ("", "=" if intrinsic.kind == "copy" else "+") if o.written else ("const ", "")
        type_ = register_type(o, r)
        parameters.append(f"{const}{type_} (&{o.name})[{r.count}]")
        (outputs if o.written else inputs).extend(f'"{sign}{r.constraint}"({o.name}[{k}])' for k in range(r.count))
        listed = ", ".join(f"%{number + k}" for k in range(r.count))
        numbers[o.name] = listed if lanes == 1 and r.count == 1 else f"{{{listed}}}"
        number += r.count

    def one(token: re.Match[str]) -> str:
        return numbers[token["operand"]] if token["operand"] else token.group(0)[0]

    text = " ".join(_TOKEN.sub(one, intrinsic.emit["cuda"]).split())
    clobber = ' : "memory"' if intrinsic.kind == "copy" else ""
    volatile = " volatile" if lanes > 1 else ""
    return "\n".join(
        [
            f"// {_comment(intrinsic)}",
            f"__device__ __forceinline__ void {name}({', '.join(parameters)}) {{",
            f'    asm{volatile}("{text}"',
            f"        : {_wrapped(outputs)}",
            f"        : {_wrapped(inputs)}{clobber});",
            "}",
        ]
    )


def _wrapped(parts: list[str]) -> str:
    lines = [", ".join(parts[k : k + 4]) for k in range(0, len(parts), 4)]
    return ",\n          ".join(lines)


def _comment(intrinsic: Intrinsic) -> str:
    return (intrinsic.summary or intrinsic.name).rstrip(".") + "."
