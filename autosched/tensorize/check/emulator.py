"""Code of another machine, run under an emulator: objects or C files are linked with a small driver of their own.

Needs what a backend's `Emulation` names: QEMU's user mode, say, and a C compiler that links for the machine.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from autosched.backends import backends
from autosched.scratch import Scratch, scratch_errors

DEADLINE_S = 300.0
"""Limit of a compiler's or an emulator's run; at its first zig builds its C library."""
HERE_S = 60.0
"""Limit of a run on this machine itself."""
ILLEGAL = (-4, 128 + 4)
"""Exit statuses of a process that issued an instruction which its machine lacks."""


class EmulatorError(Exception):
    """The code did not compile, link or run."""


class RunError(EmulatorError):
    """The code compiled, and its run failed."""


class _TooLongError(EmulatorError):
    """A process was killed at its limit."""


class LackingError(EmulatorError):
    """The code cannot run here: an older emulator lacks the instruction, or LLVM the machine."""


@dataclass(frozen=True, slots=True)
class EmulatedCalls:
    """What the driver does for each case: read buffers, call functions on buffers, write buffers.

    `sizes` are bytes; `calls` names functions, each with its buffers by number; `reads` and `writes` are numbers of
    buffers in the order of the data. What is not read holds the byte 0xA5 at first.
    """

    sizes: tuple[int, ...]
    calls: tuple[tuple[str, tuple[int, ...]], ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    def written(self, data: bytes) -> int:
        """Bytes that the driver writes for `data`."""
        case = sum(self.sizes[n] for n in self.reads)
        return len(data) // case * sum(self.sizes[n] for n in self.writes) if case else 0

    def driver(self) -> str:
        """The C file."""
        declared = [f"void {name}({', '.join(['void *'] * len(buffers))});" for name, buffers in self.calls]
        called = [f"    {name}({', '.join(f'b{n}' for n in buffers)});" for name, buffers in self.calls]
        return "\n".join(
            [
                "#include <stdio.h>",
                "#include <string.h>",
                *declared,
                *(f"static _Alignas(64) unsigned char b{n}[{max(1, size)}];" for n, size in enumerate(self.sizes)),
                "int main(void) {",
                "  for (;;) {",
                *(f"    memset(b{n}, 0xA5, sizeof b{n});" for n in range(len(self.sizes))),
                *(f"    if (fread(b{n}, 1, {self.sizes[n]}, stdin) != {self.sizes[n]}) return 0;" for n in self.reads),
                *called,
                *(f"    fwrite(b{n}, 1, {self.sizes[n]}, stdout);" for n in self.writes),
                "  }",
                "}",
                "",
            ]
        )


@dataclass(frozen=True, slots=True)
class Emulator:
    """`command` runs an executable (empty: this machine does, for at most `here_s` seconds), `compiler` links one;
    `features` are the emulated machine's."""

    command: tuple[str, ...]
    compiler: tuple[str, ...]
    features: frozenset[str]
    here_s: float = HERE_S

    @property
    def name(self) -> str:
        return self.command[0] if self.command else "this machine"

    @property
    def works(self) -> bool:
        """Whether the compiler makes a program that runs."""
        try:
            self.run([], EmulatedCalls((1,), (), (0,), ()), b"")
        except EmulatorError:
            return False
        return True

    def run(self, parts: Sequence[Path | bytes], calls: EmulatedCalls, data: bytes, flags: Sequence[str] = ()) -> bytes:
        """What the driver writes for `data`, which holds the reads of all cases. `parts` are objects as bytes and C
        files, built with `flags`. EmulatorError where a step fails."""
        with Scratch("run") as scratch:
            folder, files = scratch.path, []
            driver, program = folder / "driver.c", folder / "program"
            with scratch_errors():
                for n, part in enumerate(parts):
                    if isinstance(part, bytes):
                        (folder / f"part{n}.o").write_bytes(part)
                    files.append(str(folder / f"part{n}.o") if isinstance(part, bytes) else str(part))
                driver.write_text(calls.driver(), encoding="utf-8")
            static = ["-static"] if self.command else []
            said = _process([*self.compiler, *static, "-O2", *flags, str(driver), *files, "-o", str(program), "-lm"])
            if said.returncode:
                raise EmulatorError(f"{self.compiler[0]}: {_complaint(said.stderr)}")
            limit = DEADLINE_S if self.command else self.here_s
            try:
                done = _process([*self.command, str(program)], data, limit)
            except _TooLongError:
                raise RunError(f"the code did not end within {limit:g} s") from None
        if done.returncode in ILLEGAL and self.command:
            raise LackingError(f"this {self.name} lacks an instruction of the code")
        if done.returncode < 0:
            raise RunError(f"the code ended by signal {-done.returncode}")
        if done.returncode:
            raise RunError(f"{self.name} ended with status {done.returncode}")
        if calls.reads and len(done.stdout) != calls.written(data):
            raise RunError("the code ended the process, or wrote to its output")
        return done.stdout


def installed() -> dict[str, Emulator]:
    """The emulators that this machine can use, by isa."""
    found = {}
    for backend in backends():
        if (by := backend.emulation) is None:
            continue
        compiler = next((c for c in by.compilers if _there(c)), None)
        if shutil.which(by.run[0]) is not None and compiler is not None:
            found[backend.isa] = Emulator(by.run, compiler, by.features)
    return found


def version_of(command: Sequence[str]) -> str:
    """A compiler's version line; empty where it cannot be run."""
    try:
        return _process([*command, "--version"]).stdout.decode("utf-8", "replace")
    except EmulatorError:
        return ""


def _complaint(stderr: bytes) -> str:
    """A compiler's complaint: its lines with errors, else its last lines."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    telling = [line for line in lines if "error" in line or "undefined" in line]
    return "; ".join(telling[:3])[:500] if telling else "\n".join(lines)[-500:]


def _there(command: Sequence[str]) -> bool:
    """Whether a command is installed: a program, or a module that Python runs."""
    if command[1] == "-m":
        return find_spec(command[2]) is not None
    return shutil.which(command[0]) is not None


def _process(
    command: Sequence[str], data: bytes = b"", limit_s: float = DEADLINE_S
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=data, capture_output=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise _TooLongError(f"{command[0]} did not end within {limit_s:g} s") from None
    except OSError as error:
        raise EmulatorError(f"{command[0]}: {error}") from None
