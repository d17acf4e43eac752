"""Code that runs: an object with its loops over threads, in this process."""

from __future__ import annotations

from autosched.codegen.llvm.compile import compile_object
from autosched.codegen.llvm.engine import Module, engine_of
from autosched.codegen.llvm.pool_ir import PARALLEL_FOR
from autosched.codegen.llvm.runtime import pool


def load(code: bytes | str, cpu: str | None = None) -> Module:
    """Code from an object file's bytes, or from IR text built for `cpu` first.

    Loads the thread pool too where the code has parallel loops (`runtime.pool`).
    """
    data = compile_object(code, cpu) if isinstance(code, str) else code
    if PARALLEL_FOR.encode() in data:
        pool()
    return Module(engine_of(data))
