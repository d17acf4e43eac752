"""The device functions of an intrinsic as they are printed: what each operand is, and bodies of our own for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autosched.codegen.cuda.fragments.lane_registers import ACROSS, HELD, identifier, lanes_of
from autosched.codegen.cuda.plain import plain_function
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.emit import KEEP

REGISTERS, ROWS, TILE = "registers", "rows", "tile"
"""How an operand is given: a lane's registers; the address of one row of a matrix in memory; a descriptor of a tile in
shared memory."""
ROW, COLUMN = "row", "col"
_PARAMETER = re.compile(r"\(&\s*(?P<registers>\w+)\)\s*\[|void\s*\*\s*(?P<rows>\w+)|uint64_t\s+(?P<tile>\w+)\s*$")
_LIST = r"\((?P<list>(?:[^()]|\([^()]*\))*)\) \{.*?\n\}"
_ISSUE = r"__device__ __forceinline__ void {name}(?P<majors>(?:_(?:row|col|k|mn|registers))*)" + _LIST
_WHOLE = r"__device__ __forceinline__ void {name}_(?P<verb>load|store)_(?P<operand>\w+)_(?P<major>row|col)" + _LIST


@dataclass(frozen=True)
class IssueSignature:
    """A function that issues the intrinsic. `kinds` are those of its operands, by name; `across` are the operands that
    do not run along the reduction in shared memory; `columns` those that were loaded by columns."""

    intrinsic: Intrinsic
    text: str
    kinds: Mapping[str, str]
    across: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()

    def body(self, number: int) -> str:
        """The function with the emulator's instruction `number` in it, on as many lines."""
        names = list(self.intrinsic.operands)
        operands = ", ".join(f"(void*)({'&' if self.kinds[o] == TILE else ''}{o})" for o in names)
        call = f"emulate_issue({number}, operands);"
        if lanes_of(self.intrinsic) > 32:
            across = sum(1 << n for n, o in enumerate(names) if o in self.across)
            keep = KEEP if re.search(rf"\bint {KEEP}\b", _head(self.text)) else "1"
            call = f"emulate_issue_group({number}, operands, {across}, {keep});"
        return _filled(self.text, f"void* const operands[] = {{{operands}}}; {call}")

    def plain(self, use: set[str]) -> str:
        """An instruction of one thread, from its semantics, on as many lines; `use` is told of helpers."""
        lines = [t for t in plain_function(self.intrinsic, use.add).splitlines() if not t.startswith("#pragma")]
        return " ".join(lines) + "\n" * self.text.count("\n")


@dataclass(frozen=True)
class Whole:
    """A function that loads or stores an opaque fragment as a whole."""

    intrinsic: Intrinsic
    text: str
    operand: str
    verb: str
    major: str

    def body(self) -> str:
        """The function by the emulator's own arrangement of fragments: lines of what was loaded, in equal runs; results
        always by rows."""
        o = self.intrinsic.operands[self.operand]
        rows, columns = o.shape
        lines, each = (rows, columns) if self.major == ROW else (columns, rows)
        transposed = o.written and self.major == COLUMN
        size = o.dtype.bits // 8 if o.dtype.bits >= 8 else 1
        bits = o.dtype.bits
        numbers = f"stride * {bits} / 8, {lines}, {each * bits // 8}, {size}, {'true' if transposed else 'false'}"
        memory = "from" if self.verb == "load" else "to"
        return _filled(self.text, f"emulate_{self.verb}_whole((void*){self.operand}, {memory}, {numbers});")


def printed(intrinsic: Intrinsic, text: str) -> Iterator[IssueSignature | Whole]:
    """Where the text defines functions of the intrinsic in assembly: one for each way that its operands lie."""
    name = re.escape(identifier(intrinsic))
    for m in re.finditer(_WHOLE.replace("{name}", name), text, re.S):
        yield Whole(intrinsic, m.group(0), m["operand"], m["verb"], m["major"])
    opaque = [o.name for o in intrinsic.operands.values() if o.opaque is not None and not o.written]
    for m in re.finditer(_ISSUE.replace("{name}", name), text, re.S):
        if "asm" not in m.group(0):
            continue
        majors = m["majors"].split("_")[1:]
        lying = dict(zip(opaque or intrinsic.shared_memory, majors, strict=False))
        kinds = dict(_kinds(m["list"]))
        across = frozenset(o for o, major in lying.items() if major == ACROSS)
        columns = frozenset(o for o, major in lying.items() if major == COLUMN)
        assert all(kinds[o] == REGISTERS for o, major in lying.items() if major == HELD)
        yield IssueSignature(intrinsic, m.group(0), kinds, across, columns)


def _kinds(parameters: str) -> Iterator[tuple[str, str]]:
    for parameter in parameters.split(","):
        match = _PARAMETER.search(parameter.strip())
        if match and match.lastgroup:
            yield match[match.lastgroup], match.lastgroup


def _head(text: str) -> str:
    return " ".join(text.partition("{\n")[0].split())


def _filled(text: str, body: str) -> str:
    """A function with another body, on as many lines."""
    return f"{_head(text)} {{ {body} }}" + "\n" * text.count("\n")
