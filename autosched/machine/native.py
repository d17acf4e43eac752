"""Object code in this process: load it, and call its functions many times under the system's clock.

The loop of calls and the clock readings are compiled, so that a sample holds no interpreter time.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from autosched.machine.object_loader import Loaded


def start() -> None:
    """Make LLVM ready; to be called once a process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


class NativeCalls:
    """`void f(ptr × arity, scalars…)` at `address`, called on one of several argument sets in turn.

    A scalar is its LLVM type and its bytes.

    The next sample goes on where the last one ended, so that cold samples never come back to warm sets.
    """

    def __init__(self, address: int, sets: Sequence[Sequence[int]], scalars: Sequence[tuple[str, bytes]] = ()) -> None:
        arity = len(sets[0])
        flat = [pointer for one in sets for pointer in one]
        self._address, self._count, self._next = address, len(sets), 0
        self._pointers = (ctypes.c_void_p * max(1, len(flat)))(*flat)
        self._scalars = b"".join(raw.ljust(8, b"\0") for _, raw in scalars)
        self._repeat = _repeat(arity, tuple(kind for kind, _ in scalars))

    def __call__(self, times: int) -> float:
        """Make `times` calls; seconds for all of them."""
        first, self._next = self._next, (self._next + times) % self._count
        return float(self._repeat(self._address, self._pointers, self._scalars, self._count, first, times)) * 1e-9


def compile_ir(text: str) -> bytes:
    """Object code of LLVM IR text, for this machine. RuntimeError where it is not valid."""
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=cpu, features=features, opt=2, jit=True)
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(machine.emit_object(module))


@lru_cache(maxsize=64)
def _repeat(arity: int, scalars: tuple[str, ...]) -> Any:
    """`repeat(f, pointers, scalars, sets, first, times) -> ns` for functions of `arity` pointers and then scalars of
    these types, eight bytes each in memory."""
    loads = "\n".join(
        f"  %p{i} = getelementptr ptr, ptr %args, i64 {i}\n  %a{i} = load ptr, ptr %p{i}" for i in range(arity)
    )
    constants = "\n".join(
        f"  %q{i} = getelementptr i8, ptr %values, i64 {8 * i}\n  %s{i} = load {kind}, ptr %q{i}"
        for i, kind in enumerate(scalars)
    )
    passed = [f"ptr %a{i}" for i in range(arity)] + [f"{kind} %s{i}" for i, kind in enumerate(scalars)]
    arguments = ", ".join(passed)
    text = f"""
declare i32 @clock_gettime(i32, ptr)
define i64 @now() noinline {{
  %t = alloca {{i64, i64}}
  %r = call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %t)
  %s = load i64, ptr %t
  %q = getelementptr i64, ptr %t, i64 1
  %n = load i64, ptr %q
  %m = mul i64 %s, 1000000000
  %v = add i64 %m, %n
  ret i64 %v
}}
define i64 @repeat(ptr %f, ptr %pointers, ptr %values, i64 %sets, i64 %first, i64 %times) {{
entry:
{constants}
  %start = call i64 @now()
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %body]
  %set = phi i64 [%first, %entry], [%turn, %body]
  %more = icmp slt i64 %i, %times
  br i1 %more, label %body, label %done
body:
  %offset = mul i64 %set, {arity}
  %args = getelementptr ptr, ptr %pointers, i64 %offset
{loads}
  call void %f({arguments})
  %next = add i64 %i, 1
  %after = add i64 %set, 1
  %wraps = icmp eq i64 %after, %sets
  %turn = select i1 %wraps, i64 0, i64 %after
  br label %loop
done:
  %end = call i64 @now()
  %took = sub i64 %end, %start
  ret i64 %took
}}
"""
    loaded = Loaded(compile_ir(text))
    numbers = [ctypes.c_int64] * 3
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, *numbers)
    function = prototype(loaded.address("repeat"))
    function.keep = loaded  # type: ignore[attr-defined]  # the code must live as long as the pointer to it
    return function
