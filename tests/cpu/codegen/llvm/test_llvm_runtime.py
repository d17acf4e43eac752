"""The thread pool: every iteration once, whatever the threads, the load, forks and callers beside each other."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.engine import Module
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.machine.runtime import pool

COUNT = """
declare void @autosched_parallel_for(ptr, ptr, i64, i32)
define internal void @one(ptr %c, i64 %i) {
  %p = getelementptr i64, ptr %c, i64 %i
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr %p
  ret void
}
define internal void @nest(ptr %c, i64 %i) {
  %o = mul i64 %i, 64
  %p = getelementptr i8, ptr %c, i64 %o
  call void @autosched_parallel_for(ptr @one, ptr %p, i64 8, i32 2)
  ret void
}
define void @count(ptr %c, i64 %n, i32 %t, i64 %reps) {
s:
  br label %b
b:
  %k = phi i64 [0, %s], [%k1, %b]
  call void @autosched_parallel_for(ptr @one, ptr %c, i64 %n, i32 %t)
  %k1 = add i64 %k, 1
  %e = icmp eq i64 %k1, %reps
  br i1 %e, label %o, label %b
o:
  ret void
}
define void @nested(ptr %c, i64 %n, i32 %t) {
  call void @autosched_parallel_for(ptr @nest, ptr %c, i64 %n, i32 %t)
  ret void
}
"""
KINDS = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int64]


@pytest.fixture(scope="module")
def module() -> Module:
    return load(COUNT)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 64])
def test_every_iteration_runs_once_a_region(module: Module, threads: int, n: int) -> None:
    seen = np.zeros(n + 2, np.int64)
    module.function("count", KINDS)(seen[1:].ctypes.data, n, threads, 300)
    assert seen[0] == 0
    assert seen[-1] == 0
    assert (seen[1:-1] == 300).all()


def test_regions_inside_a_region_run_inline(module: Module) -> None:
    seen = np.zeros(64 * 8, np.int64)
    module.function("nested", KINDS[:3])(seen.ctypes.data, 64, 3)
    assert (seen == 1).all()


def test_callers_beside_each_other(module: Module) -> None:
    """One region owns the pool at a time; the other caller does its work itself."""
    counters = [np.zeros(16, np.int64) for _ in range(3)]
    count = module.function("count", KINDS)
    callers = [threading.Thread(target=count, args=(c.ctypes.data, 16, 2, 400)) for c in counters]
    for t in callers:
        t.start()
    for t in callers:
        t.join(60)
    assert all((c == 400).all() for c in counters)


def test_workers_sleep_wake_stop_and_come_back(module: Module) -> None:
    count, seen = module.function("count", KINDS), np.zeros(8, np.int64)
    for _ in range(5):
        count(seen.ctypes.data, 8, 3, 1)
        threading.Event().wait(0.01)  # long enough for the workers to fall asleep
    assert pool().workers >= 2
    pool().stop()
    assert pool().workers == 0
    pool().start(3, sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ())
    assert pool().workers == 2
    count(seen.ctypes.data, 8, 3, 1)
    assert (seen == 6).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_makes_its_own_workers(module: Module) -> None:
    count, seen = module.function("count", KINDS), np.zeros(8, np.int64)
    count(seen.ctypes.data, 8, 2, 10)
    child = os.fork()
    if child == 0:
        before = pool().workers
        count(seen.ctypes.data, 8, 2, 10)
        os._exit(0 if before == 0 and (seen == 20).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_object_runs_in_another_process_and_ends_quietly() -> None:
    """Object bytes carry all a worker needs: the pool is loaded there, and its threads do not disturb the exit."""
    data = compile_object(COUNT)
    script = (
        "import sys, ctypes, numpy as np\n"
        "from autosched.codegen.llvm.machine.jit import load\n"
        "m = load(sys.stdin.buffer.read())\n"
        "f = m.function('count', [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int64])\n"
        "a = np.zeros(32, np.int64)\n"
        "f(a.ctypes.data, 32, 3, 200)\n"
        "print(int(a.sum()))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.split() == [b"6400"]
