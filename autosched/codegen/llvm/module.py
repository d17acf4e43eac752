"""`print_llvm`: a kernel as the text of one LLVM module."""

from __future__ import annotations

from autosched.backends import backend_of
from autosched.codegen import workarounds
from autosched.codegen.llvm.accesses.memory import ONE
from autosched.codegen.llvm.fallback_function import FallbackFunction, fallback_of
from autosched.codegen.llvm.print_cache import Prepared, PrintCache
from autosched.codegen.llvm.statements import Printer, Shared, quoted
from autosched.codegen.llvm.types import memory, scalar
from autosched.codegen.tree.kernel import Function, Kernel
from autosched.escape import llvm_text
from autosched.ir.dtypes import DType

_BITS_OF_HALF = "i16"


def print_llvm(kernel: Kernel) -> str:
    """LLVM IR with one exported `void name(buffer pointers…, run-time scalars…)` for each function of `kernel`.

    `main` takes the program's scalars after its buffers, in parameter order; `prepare` functions run before scalars are
    known and take none. Scalars pass as C passes their type (`b1 u4 s4` as a byte; `f16 bf16` as 16 and floats of 8
    as 8 bits). Raises UnsupportedError where the kernel needs what a CPU does not have.
    """
    shared = Shared(kernel, fallback_of(kernel.main, kernel.buffers))
    exported = [_function(shared, f) for f in (*kernel.prepare, kernel.main)]
    if shared.fallback is not None:
        shared.declarations.lines.pop(shared.fallback.name)
        exported.append(_fallback(shared, shared.fallback))
    return _module(kernel.name, shared, exported)


_FALLBACKS, _PREPARED = PrintCache(16), Prepared()  # a search has few plans that check anything


def print_parts(kernel: Kernel, known: Prepared = _PREPARED) -> tuple[str, ...]:
    """The same as up to three modules: `main`, the `prepare` functions, and the fallback of `main`. Kernels that differ
    in their loops only have equal texts of the last two, which are then compiled once. `known` caches those of
    `prepare`."""
    shared = Shared(kernel, fallback_of(kernel.main, kernel.buffers))
    parts = [_module(kernel.name, shared, [_function(shared, kernel.main)])]
    if kernel.prepare:

        def prepared() -> str:
            alone = Shared(kernel)
            return _module("prepare", alone, [_function(alone, f) for f in kernel.prepare])

        parts.append(known.of(kernel, prepared))
    if (fallback := shared.fallback) is not None:

        def text() -> str:
            alone = Shared(kernel)
            return _module("fallback", alone, [_fallback(alone, fallback)])

        # Lowering answers the very same statements for all kernels that share them.
        stands_by = fallback.choice.fallback
        parts.append(_FALLBACKS.of((id(stands_by), kernel.threads, fallback.buffers), text, alive=stands_by))
    return tuple(parts)


def _module(title: str, shared: Shared, exported: list[str]) -> str:
    """The module that exports these functions."""
    stack = f" {workarounds.STACK_REALIGN.text}" if backend_of(shared.kernel.isa).stack_bytes else ""
    parts = [
        f"; {title}",
        *shared.functions,
        *exported,
        *_without_repeats([*shared.declarations.lines.values(), *shared.intrinsics]),
        f"attributes #0 = {{ nounwind {workarounds.FULL_WIDTH.text}{stack} }}",
    ]
    if any("!nontemporal" in part for part in parts):
        parts.append(f"{ONE} = !{{i32 1}}")
    return llvm_text("\n\n".join(parts) + "\n")


def scalar_type(dtype: DType) -> str:
    """The LLVM type in which a run-time scalar is passed."""
    return _BITS_OF_HALF if dtype.name == "f16" else memory(dtype)


def _function(shared: Shared, function: Function) -> str:
    kernel = shared.kernel
    passed = [f"ptr noalias %{b}" for b in function.buffers]
    scalars = list(kernel.program.scalars.values()) if function is kernel.main else []
    inner = [*passed, *(f"{scalar(s.dtype)} %{s.name}" for s in scalars)]
    printer = Printer(shared, function, inner)
    signature = list(passed)
    for s in scalars:
        outside, inside = scalar_type(s.dtype), scalar(s.dtype)
        if outside == inside:
            signature.append(f"{outside} %{s.name}")
            continue
        signature.append(f"{outside} %{s.name}.bits")
        op = "bitcast" if s.dtype.name == "f16" else "trunc"
        printer.out.entry.append(f"  %{s.name} = {op} {outside} %{s.name}.bits to {inside}")
    printer.body(function.body)
    printer.out.line("  ret void")
    return f"define void @{quoted(function.name)}({', '.join(signature)}) #0 {{\n{printer.text()}\n}}"


def _fallback(shared: Shared, fallback: FallbackFunction) -> str:
    """The function that `main` calls where its checks refuse the data. It is passed scalars as `main` has them."""
    scalars = [f"{scalar(s.dtype)} %{s.name}" for s in shared.kernel.program.scalars.values()]
    arguments = [*(f"ptr noalias %{b}" for b in fallback.buffers), *scalars]
    printer = Printer(shared, Function(fallback.name, fallback.buffers, fallback.choice.fallback), arguments)
    printer.body(fallback.choice.fallback)
    printer.out.line("  ret void")
    return f"define void @{quoted(fallback.name)}({', '.join(arguments)}) #0 {{\n{printer.text()}\n}}"


def _without_repeats(declarations: list[str]) -> list[str]:
    """One declaration for each name: an intrinsic's text may call what the printer calls too."""
    found: dict[str, str] = {}
    for line in declarations:
        found.setdefault(line.split("@", 1)[1].split("(", 1)[0], line)
    return list(found.values())
