"""`print_llvm`: a kernel as the text of one LLVM module."""

from __future__ import annotations

from autosched.codegen.kernel import Function, Kernel
from autosched.codegen.llvm.memory import ONE
from autosched.codegen.llvm.statements import Printer, Shared, quoted
from autosched.codegen.llvm.types import memory, scalar
from autosched.ir.dtypes import DType

_BITS_OF_HALF = "i16"


def print_llvm(kernel: Kernel) -> str:
    """LLVM IR with one exported `void name(buffer pointers…, run-time scalars…)` for each function of `kernel`.

    `main` takes the program's scalars after its buffers, in parameter order; `prepare` functions run before scalars are
    known and take none. Scalars pass as C passes their type (`b1 u4 s4` as a byte; `f16 bf16` as 16 and floats of 8
    as 8 bits). Raises UnsupportedError where the kernel needs what a CPU does not have.
    """
    return _module(kernel, kernel.name, (*kernel.prepare, kernel.main))


def print_parts(kernel: Kernel) -> tuple[str, ...]:
    """The same as a module for `main` and one for what `prepare` has, if anything: kernels that differ in their loops
    only have the latter in common, letter by letter, so that it need not be compiled for each of them."""
    parts = [_module(kernel, kernel.name, (kernel.main,))]
    if kernel.prepare:
        parts.append(_module(kernel, "prepare", kernel.prepare))
    return tuple(parts)


def _module(kernel: Kernel, title: str, functions: tuple[Function, ...]) -> str:
    """The module that exports these functions of the kernel."""
    shared = Shared(kernel)
    exported = [_function(shared, f) for f in functions]
    wide = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
    parts = [
        f"; {title}",
        *shared.functions,
        *exported,
        *_without_repeats([*shared.declarations.lines.values(), *shared.intrinsics]),
        # Without these, 512-bit types are split on CPUs that LLVM tunes for 256 bits.
        f"attributes #0 = {{ nounwind {wide} }}",
    ]
    if any("!nontemporal" in part for part in parts):
        parts.append(f"{ONE} = !{{i32 1}}")
    return "\n\n".join(parts) + "\n"


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


def _without_repeats(declarations: list[str]) -> list[str]:
    """One declaration for each name: an intrinsic's text may call what the printer calls too."""
    found: dict[str, str] = {}
    for line in declarations:
        found.setdefault(line.split("@", 1)[1].split("(", 1)[0], line)
    return list(found.values())
