"""The device function of an intrinsic as it is printed: what each operand is, and a body of our own in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from autosched.codegen.cuda.plain import plain_function
from autosched.codegen.cuda.registers import identifier, lanes_of
from autosched.tensorize.intrinsic import Intrinsic

REGISTERS, ROWS, TILE = "registers", "rows", "tile"
"""How an operand is given: a lane's registers; the address of one row of a matrix in memory; a descriptor of a tile in
shared memory."""
_PARAMETER = re.compile(
    r"\(&\s*(?P<registers>\w+)\)\s*\[|void\s*\*\s*(?P<rows>\w+)|(?:unsigned long long|uint64_t)\s+(?P<tile>\w+)\s*$"
)


@dataclass(frozen=True)
class Printed:
    """One function of the text. `kinds` are those of the operands that it takes, by name; `across` are the operands
    whose template argument says whether they are contiguous along m or n; `keep` is the parameter that says whether the
    accumulator counts."""

    intrinsic: Intrinsic
    text: str
    head: str
    kinds: dict[str, str]
    across: dict[str, str]
    keep: str | None

    @property
    def assembly(self) -> bool:
        return "asm" in self.text

    def body(self, number: int) -> str:
        """The function with the emulator's instruction `number` in it, on as many lines."""
        operands = ", ".join(
            f"(void*)({'&' if self.kinds[o] == TILE else ''}{o})" for o in self.intrinsic.operands if o in self.kinds
        )
        call = f"emulate_issue({number}, operands);"
        if lanes_of(self.intrinsic) > 32:
            order = [o for o in self.intrinsic.operands if o in self.kinds]
            across = " | ".join(f"{name} << {order.index(o)}" for o, name in self.across.items()) or "0"
            call = f"emulate_issue_group({number}, operands, {across}, {self.keep or 'true'});"
        made = f"{self.head} {{ void* const operands[] = {{{operands}}}; {call} }}"
        return made + "\n" * self.text.count("\n")


def printed(intrinsic: Intrinsic, text: str) -> list[Printed]:
    """Where the text defines the intrinsic's function: once, or in several forms under one name or longer ones."""
    name = re.escape(identifier(intrinsic))
    found = []
    pattern = rf"(?:template\s*<(?P<template>[^>]*)>\s*)?__device__ __forceinline__ void (?:{name})(?:_registers)?\((?P<list>[^)]*?(?:\([^)]*\)[^)]*?)*)\) \{{.*?\n\}}"
    for m in re.finditer(pattern, text, re.S):
        kinds: dict[str, str] = {}
        keep = None
        for parameter in m["list"].split(","):
            match = _PARAMETER.search(parameter.strip())
            if match and match.lastgroup:
                kinds[match[match.lastgroup]] = match.lastgroup
            elif parameter.split()[-1:] == ["keep"]:
                keep = "keep"
        template = m["template"] or ""
        across = {o: w for o in kinds if (w := f"{o.upper()}Across") in template}
        head = " ".join(m.group(0).partition(" {")[0].split())
        found.append(Printed(intrinsic, m.group(0), head, kinds, across, keep))
    return found


def plain(intrinsic: Intrinsic, function: Printed, use: set[str]) -> str:
    """An instruction of one thread, from its semantics, on as many lines."""
    lines = [line for line in plain_function(intrinsic, use.add).splitlines() if not line.startswith("#pragma")]
    return " ".join(lines) + "\n" * function.text.count("\n")
