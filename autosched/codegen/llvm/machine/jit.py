"""Code that runs: an object with its loops over threads, in this process."""

from __future__ import annotations

from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.engine import Module
from autosched.codegen.llvm.machine.pool_ir import PARALLEL_FOR
from autosched.codegen.llvm.machine.runtime import pool


def load(code: bytes | str | tuple[bytes, ...], cpu: str | None = None) -> Module:
    """Code from the bytes of object files, or from IR text built for `cpu` first.

    Loads the thread pool too where the code has parallel loops (`runtime.pool`).
    """
    built = compile_object(code, cpu) if isinstance(code, str) else code
    objects = built if isinstance(built, tuple) else (built,)
    if any(PARALLEL_FOR.encode() in data for data in objects):
        pool()
    return Module(*objects)
