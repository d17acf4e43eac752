"""A process of its own that compiles and runs LLVM IR: a crash of the compiler or of the code ends it, not the caller.

Run as a script with pipes. A request is a JSON line `{ir, operands, cases, written}` (operands: bytes of each; `ask`:
system calls to make first, as numbers), then all operands' bytes, case by case; with no cases the text is only
compiled, for the core `[triple, cpu]`. The answer is a JSON line `{bytes}` or `{error}`, then the written operand's
bytes of every case. Imports nothing of autosched, so that it starts quickly.
"""

from __future__ import annotations

import ctypes
import json
import re
import signal
import sys
from typing import Any, BinaryIO

import llvmlite.binding as llvm

ENTRY = "issue"


def compile_ir(ir: str) -> tuple[Any, int]:
    """The execution engine and the address of `issue`, compiled for this machine."""
    module = llvm.parse_assembly(ir)
    module.verify()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True)
    if "@llvm." in ir:
        refuse_unknown(bytes(machine.emit_object(llvm.parse_assembly(ir))))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine, engine.get_function_address(ENTRY)


def compile_for(ir: str, core: list[str] | None) -> bytes:
    """The object made for the core, nothing where this LLVM does not know it and only read the text."""
    module = llvm.parse_assembly(ir)
    module.verify()
    if core is None:
        return b""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, cpu = core
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError:
        return b""
    code = bytes(target.create_target_machine(cpu=cpu, reloc="pic").emit_object(module))
    refuse_unknown(code)
    return code


def refuse_unknown(code: bytes) -> None:
    """RuntimeError for an object that calls an intrinsic of LLVM: it calls what it does not know as a function."""
    if unknown := re.search(rb"\bllvm\.[\w.]+", code):
        raise RuntimeError(f"LLVM has no {unknown[0].decode()}")


def run_cases(ir: str, sizes: list[int], cases: int, written: int, blob: bytes) -> bytes:
    """The written operand's bytes after one issue, for each case in turn."""
    engine, address = compile_ir(ir)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(sizes))(address)
    memory = ctypes.create_string_buffer(blob, len(blob) + 1)
    base, out, step = ctypes.addressof(memory), [], sum(sizes)
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    for case in range(cases):
        at = base + case * step
        function(*[at + s for s in starts])
        out.append(ctypes.string_at(at + starts[written], sizes[written]))
    del engine
    return b"".join(out)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    if sys.platform == "linux":  # one that is stopped is woken up when its parent ends (PR_SET_PDEATHSIG)
        ctypes.CDLL(None).prctl(1, signal.SIGCONT, 0, 0, 0)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    while line := requests.readline():
        request = json.loads(line)
        sizes, cases = request["operands"], request["cases"]
        blob = requests.read(sum(sizes) * cases)
        try:
            for call in request.get("ask", []):
                ctypes.CDLL(None).syscall(*map(ctypes.c_long, call))
            if cases:
                result = run_cases(request["ir"], sizes, cases, request["written"], blob)
            else:
                result = compile_for(request["ir"], request.get("core"))
            answers.write(json.dumps({"bytes": len(result)}).encode() + b"\n" + result)
        except RuntimeError as error:
            answers.write(json.dumps({"error": str(error)}).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
