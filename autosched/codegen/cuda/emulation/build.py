"""Compiles the emulator's runtime, once a process, and kernels as modules of it.

Kernels are compiled with the thread sanitizer's instrumentation and linked without its library: the runtime has the
callbacks, so it sees every access of unmodified code with its address and its place in the code.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
from pathlib import Path

from autosched.errors import MissingError
from autosched.scratch import Scratch, scratch_errors

INCLUDE = Path(__file__).parent.parent / "include"
FLAGS = (
    *("-std=c++20", "-O1", "-g1", "-gdwarf-4", "-fPIC", "-c", "-fsanitize=thread"),
    *("-fno-strict-aliasing", "-fno-exceptions"),
    # Jump threading would duplicate calls at which diverged lanes must meet; contraction would change sums.
    *("-fno-thread-jumps", "-fno-math-errno", "-ffp-contract=off", "-w"),
)
_SHARED = ("-std=c++20", "-O2", "-g1", "-fPIC", "-shared", "-fno-exceptions")


def compiler() -> list[str]:
    """The command of a C++ compiler: `CXX`, else g++ or clang++. MissingError for none."""
    chosen = os.environ.get("CXX", "").strip()
    if chosen:
        return shlex.split(chosen)
    for name in ("g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise MissingError("no C++ compiler: kernels cannot be emulated", hint="install g++ or clang++, or name one in CXX")


@functools.cache
def session() -> Scratch:
    """The folder of this process's modules, removed at its end."""
    return Scratch("emulate")


@functools.cache
def runtime() -> Path:
    """The runtime as a shared library."""
    library = session().path / "runtime.so"
    source = INCLUDE / "emulate" / "runtime" / "runtime.cpp"
    _run([*compiler(), *_SHARED, str(source), "-o", str(library)], "the emulator's runtime")
    return library


def module(text: str, name: str) -> Path:
    """Builds a module of kernels from host C++. MissingError, with the compiler's message, on failure."""
    source = session().path / f"{name}.cpp"
    with scratch_errors():
        source.write_text(text)
    library = source.with_suffix(".so")
    folders = ["-I", str(INCLUDE / "emulate"), "-I", str(INCLUDE), "-include", str(INCLUDE / "emulate" / "cuda.h")]
    own = list(FLAGS)
    if "clang" not in compiler()[0]:
        own += ["--param", "tsan-instrument-func-entry-exit=0", "--param", "tsan-distinguish-volatile=0"]
    compiled = source.with_suffix(".o")
    _run([*compiler(), *own, *folders, str(source), "-o", str(compiled)], name)
    # Linked separately, without the sanitizer: its library must not be linked in.
    _run([*compiler(), "-shared", str(compiled), "-o", str(library), "-Wl,--wrap=memcpy", "-Wl,--wrap=memset"], name)
    return library


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingError(f"cannot run {command[0]}: {error.strerror}", hint="name a C++ compiler in CXX") from None
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        raise MissingError(f"{command[0]} cannot build {what}: {(said or [done.stderr.strip()])[0]}")
