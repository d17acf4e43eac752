"""The C text of an intrinsic, compiled as a function of its own and run on the values that the LLVM text is run on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from autosched.backends import backend_of
from autosched.scratch import Scratch, scratch_errors
from autosched.tensorize.check.emulator import (
    HERE_S,
    EmulatedCalls,
    Emulator,
    EmulatorError,
    LackingError,
    RunError,
)
from autosched.tensorize.check.native import Arrays, Values, from_register_bytes, register_bytes
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.emit import render_c

_STRICT = ("-ffp-contract=off", "-Wno-psabi", "-Werror=implicit-function-declaration")
_MISSING_HEADER = re.compile(r"([\w./+-]+\.h)'?:? (?:No such file|file not found)")
_UNKNOWN_FLAG = re.compile(r"(?:unrecognized command-line option|unknown argument:?) ['‘](-[\w=+.-]+)")


class NoToolError(Exception):
    """This machine's compiler cannot tell: it is too old, or a header comes with an accelerator's own tools."""


@dataclass(frozen=True, slots=True)
class CTools:
    """The compiler of this machine. What it makes runs for `here_s` seconds at most."""

    command: tuple[str, ...]
    here_s: float = HERE_S

    def native(self, features: frozenset[str]) -> Emulator:
        """This machine, as what programs run on."""
        return Emulator((), self.command, features, self.here_s)


def c_source(intrinsic: Intrinsic) -> str:
    """A file with `issue(operand pointers…)`: load the registers, issue the intrinsic once, store the result.

    Registers have other names than the operands, and the text stands in parentheses: `a` in place of `{a}`, and several
    statements, do not compile, as in a kernel.
    """
    operands = list(intrinsic.operands.values())
    written = intrinsic.accumulator.name
    place = [o.name for o in operands].index(written)
    loads = [
        f"  {o.registers['c']} r_{o.name}; memcpy(&r_{o.name}, p{k}, sizeof r_{o.name});"
        for k, o in enumerate(operands)
    ]
    return "\n".join(
        [
            "#include <string.h>",
            *([f"#include <{intrinsic.header}>"] if intrinsic.header else []),
            f"void issue({', '.join(f'void *p{k}' for k in range(len(operands)))}) {{",
            *loads,
            f"  r_{written} = ({render_c(intrinsic, {o.name: f'r_{o.name}' for o in operands})});",
            f"  memcpy(p{place}, &r_{written}, sizeof r_{written});",
            "}",
            "",
        ]
    )


def compile_c(intrinsic: Intrinsic, tools: CTools, machine: Emulator) -> None:
    """Compile and link the text. Raises EmulatorError with the compiler's words, NoToolError."""
    with suppress(LackingError, RunError):  # it is run on no case at all, and that may need the instruction already
        _run(intrinsic, tools, machine, _calls(intrinsic), b"")


def issue_c(intrinsic: Intrinsic, arrays: Arrays, tools: CTools, machine: Emulator) -> Values:
    """The accumulator after one issue, shape (cases, *shape). Raises as `compile_c` does, and where a run fails."""
    operands = list(intrinsic.operands.values())
    parts = [register_bytes(o, arrays[o.name]) for o in operands]
    raw = _run(intrinsic, tools, machine, _calls(intrinsic), np.concatenate(parts, axis=1).tobytes())
    rows = np.frombuffer(raw, np.uint8).reshape(len(parts[0]), -1)
    return from_register_bytes(intrinsic.accumulator, rows)


def _calls(intrinsic: Intrinsic) -> EmulatedCalls:
    operands = list(intrinsic.operands.values())
    sizes = tuple(o.elements * o.dtype.bits // 8 for o in operands)
    every = tuple(range(len(operands)))
    return EmulatedCalls(sizes, (("issue", every),), every, ([o.written for o in operands].index(True),))


def _run(intrinsic: Intrinsic, tools: CTools, machine: Emulator, calls: EmulatedCalls, data: bytes) -> bytes:
    backend = backend_of(intrinsic.isa)
    flags = backend.c_flags(intrinsic.requires)
    switched: Sequence[str] = flags.split() if not machine.command else ()
    with Scratch("c") as scratch:
        path = scratch.path / "text.c"
        with scratch_errors():
            path.write_text(c_source(intrinsic), encoding="utf-8")
        try:
            return machine.run([path], calls, data, [*_STRICT, *switched])
        except (LackingError, RunError):
            raise
        except EmulatorError as error:
            said = str(error).replace(f"{scratch.path}/", "")
            missing = _MISSING_HEADER.search(said)
            # Compilers of CPUs have their headers; an accelerator's comes with its own tools.
            if missing and not backend.is_cpu:
                raise NoToolError(f"{missing[1]} is not on this machine") from None
            if flag := _UNKNOWN_FLAG.search(said):
                raise NoToolError(f"this compiler does not know {flag[1]}") from None
            if intrinsic.requires and backend.c.spell is None:
                features = ", ".join(sorted(intrinsic.requires))
                raise NoToolError(f"no backend says how a compiler is told of {features}") from None
            raise EmulatorError(said) from None
