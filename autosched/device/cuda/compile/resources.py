"""What each kernel of a cubin takes, as the assembler (`ptxas -v`) says in the compiler's log."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one kernel: 32-bit registers of a thread, bytes of its stack and of what it spills (a thread, static code
    counts), static shared memory of a block in bytes, hardware barriers."""

    registers: int
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    shared_bytes: int = 0
    barriers: int = 0

    @property
    def spills(self) -> bool:
        return self.spill_store_bytes > 0 or self.spill_load_bytes > 0


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_WORTH = re.compile(r"\bwarning\b|Potential Performance Loss|\(C7\d\d\d\)")
_SHARED = re.compile(r"(\d+) bytes smem")


def resources_of(log: str) -> dict[str, Resources]:
    """By kernel; a function that is called, not launched, is its caller's."""
    found: dict[str, Resources] = {}
    entry, stack = "", (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, stack = match[1], (0, 0, 0)
        elif (match := _STACK.search(line)) and entry:
            stack = int(match[1]), int(match[2]), int(match[3])
        elif (match := _USED.search(line)) and entry:
            barriers, shared = _BARRIERS.search(match[2]), _SHARED.search(match[2])
            found[entry] = Resources(
                int(match[1]), *stack, int(shared[1]) if shared else 0, int(barriers[1]) if barriers else 0
            )
    return found


def warnings_of(log: str) -> tuple[str, ...]:
    """What the compiler finds worth saying: warnings, and its notes on lost speed (serialised `wgmma`, a refused
    `setmaxnreg`), which it calls information."""
    said = [line.strip() for line in log.splitlines() if _WORTH.search(line) and "deprecated" not in line]
    return tuple(dict.fromkeys(said))
