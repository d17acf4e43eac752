"""The thread pool that parallel loops call: persistent workers, written in LLVM IR, one pool a process.

`autosched_parallel_for(f, context, n, threads)` calls `f(context, i)` for every i below n and returns when all are
done. One 64-bit word, the ticket, holds (generation, width, iterations left). A thread takes an iteration by
decrementing it with compare-and-exchange; since the generation is in the word, a thread that comes late takes nothing
of a finished region, and the caller alone can always finish. Workers spin for a while, then sleep on a condition
variable. A call from inside a region, or beside one in another thread, runs its iterations itself.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Sequence
from functools import cache

from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.engine import Module, provide
from autosched.codegen.llvm.machine.pool_ir import PARALLEL_FOR, runtime_ir


class ThreadPool:
    """This process's pool. Workers are created by the first parallel loop that wants them, or by `start`."""

    def __init__(self) -> None:
        self._module = Module(compile_object(runtime_ir()))
        self._start = self._module.function("autosched_pool_start", [ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32])
        self._stop = self._module.function("autosched_pool_stop")
        self._forget = self._module.function("autosched_pool_forget")
        provide(PARALLEL_FOR, self._module.address(PARALLEL_FOR))

    def start(self, threads: int, cpus: Sequence[int] = ()) -> None:
        """Create `threads - 1` workers now (the caller is the first thread); worker w is pinned to
        `cpus[w % len(cpus)]` where cpus are given. Workers that exist keep their place: `stop` first to move them.

        The caller is not moved: who times kernels pins it to `cpus[0]`, else it may share a core with a worker."""
        numbers = (ctypes.c_int32 * max(1, len(cpus)))(*cpus)
        self._start(threads, ctypes.addressof(numbers), len(cpus))

    def stop(self) -> None:
        """End the workers; a later region creates new ones."""
        self._stop()

    @property
    def workers(self) -> int:
        """How many workers exist."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int32)
        return int(kind(self._module.address("autosched_pool_workers"))())

    def _after_fork(self) -> None:
        self._forget()


@cache
def pool() -> ThreadPool:
    """The process's one pool: threads belong to the process, so this cannot be an argument of each kernel."""
    made = ThreadPool()
    # Before the interpreter takes its modules apart no worker may run code that goes with them.
    atexit.register(made.stop)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made._after_fork)
    return made
