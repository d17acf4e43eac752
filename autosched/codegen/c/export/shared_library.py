"""Exported C as a shared library, by the machine's own compiler."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from autosched.backends import backend_of, host_backend
from autosched.codegen import workarounds
from autosched.codegen.c_like.source import CSource
from autosched.errors import MissingError


def compiler(environment: dict[str, str] | None = None) -> list[str]:
    """The command of a C compiler: `CC`, else gcc, clang or cc, else the `ziglang` wheel. MissingError for none."""
    chosen = (os.environ if environment is None else environment).get("CC", "").strip()
    if chosen:
        return shlex.split(chosen)
    for name in ("gcc", "clang", "cc"):
        if shutil.which(name):
            return [name]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise MissingError("no C compiler", hint="install gcc or clang, `pip install ziglang`, or name one in CC")


def build_arguments(code: CSource, source: str, library: str, *more: str) -> list[str]:
    """The arguments with which a C compiler makes a shared library of a file."""
    return [*code.flags.split(), "-shared", "-fPIC", *more, source, "-o", library, "-lm"]


def build_shared(code: CSource, source: Path, isa: str, command: list[str]) -> Path:
    """Builds `NAME.so` from `source`, whose header is beside it. MissingError, with the compiler's message, on
    failure."""
    library = source.with_suffix(".so")
    foreign = backend_of(isa).machines not in ((), host_backend().machines)
    if foreign and "CC" not in os.environ:
        said = f"the kernel is for {isa}; this machine is {platform.machine()}"
        raise MissingError(said, hint="name a cross compiler in CC")
    whole = [workarounds.WHOLE_LIBRARY.text] if sys.platform == "linux" else []
    arguments = build_arguments(code, str(source), str(library), *whole)
    try:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingError(f"cannot run {command[0]}: {error.strerror}", hint="name a C compiler in CC") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        said = lines[0] if lines else done.stderr.strip() or "no reason"
        hint = "name another compiler in CC"
        if "__kmpc" in said or "GOMP" in said:
            hint = f"this one has no OpenMP, which kernels of several threads need: {hint}"
        raise MissingError(f"{' '.join(command)} cannot build {source.name}: {said}", hint=hint)
    return library
