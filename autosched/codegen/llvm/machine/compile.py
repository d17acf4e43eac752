"""IR text to object bytes, through llvmlite. No C compiler takes part.

Objects load in any process of the same kind of machine (`jit.load`), so a worker gets bytes, not a module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import llvmlite.binding as llvm

from autosched.codegen import workarounds
from autosched.codegen.llvm.machine.errors import LlvmCompileError
from autosched.errors import MissingError


def compile_object(
    ir: str, cpu: str | None = None, features: str | None = None, opt: int = 2, triple: str | None = None
) -> bytes:
    """The object file of a module's text for `cpu` (None: this machine's) with `features` (`+avx512f,-…`; None: what
    this machine has, or the cpu's own where one is named). `opt` is the code generation level, 0 to 3; `triple` names
    another machine (`aarch64-unknown-linux-gnu`), whose `cpu` is then `generic` where none is named.

    LlvmCompileError with LLVM's message where it refuses the text, or calls an intrinsic that LLVM does not have;
    MissingError where this LLVM has no code generator for `triple`.
    """
    machine = target_machine(cpu, features, opt, triple)
    module = _parse(ir, machine)
    try:
        with _without(*UNWANTED):
            code = bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise LlvmCompileError(f"LLVM could not generate code: {error}") from error
    _check_intrinsics(module, code)
    return code


@workarounds.KNOWN_INTRINSICS
def _check_intrinsics(module: Any, code: bytes) -> None:
    for function in module.functions:
        if function.is_declaration and function.name.startswith("llvm.") and f"{function.name}\0".encode() in code:
            raise LlvmCompileError(f"LLVM has no intrinsic {function.name}", hint="correct emit.llvm in the YAML file")


def assembly(
    ir: str, cpu: str | None = None, features: str | None = None, opt: int = 2, triple: str | None = None
) -> str:
    """The assembly text of what `compile_object` builds."""
    machine = target_machine(cpu, features, opt, triple)
    module = _parse(ir, machine)
    with _without(*UNWANTED):
        return str(machine.emit_assembly(module))


UNWANTED = (workarounds.NO_REDUCTION.text, workarounds.NO_SINKING.text)
"""Passes of LLVM's code generator that kernels do without."""


@contextmanager
def _without(*passes: str) -> Iterator[None]:
    """Options are the process's, so others in it get them back."""
    for name in passes:
        llvm.set_option("", f"-disable-{name}=true")
    try:
        yield
    finally:
        for name in passes:
            llvm.set_option("", f"-disable-{name}=false")


def _parse(ir: str, machine: Any) -> Any:
    """The module, verified, with register buffers promoted to values."""
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(ir, context)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise LlvmCompileError(
            f"LLVM refused the module: {error}", hint="this is a mistake of the printer; report it"
        ) from error
    # The printer hoists and folds by itself: promoting the registers is all that the middle end has to do.
    manager = llvm.create_new_function_pass_manager()
    manager.add_sroa_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0))
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)
    return module


@cache
def initialise(everything: bool = False) -> None:
    """Make LLVM ready for this machine's code, or for that of any."""
    if everything:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()


@cache
def host() -> tuple[str, str]:
    """This machine's CPU and features, by LLVM's names."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@lru_cache(maxsize=8)  # one takes 0.25 ms to make, and as long again to let go
def _made(cpu: str, features: str, opt: int, triple: str, here: bool) -> Any:
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=opt, reloc="pic", codemodel="small", jit=here
    )


def target_machine(cpu: str | None = None, features: str | None = None, opt: int = 2, triple: str | None = None) -> Any:
    """LLVM's target machine, of this machine's kind where `triple` is None; MissingError for an unknown one."""
    initialise(triple is not None)
    here = triple is None
    name = cpu or (host()[0] if here else "generic")
    if features is None:
        features = host()[1] if cpu is None and here else ""
    try:
        return _made(name, features, opt, triple or llvm.get_process_triple(), here)
    except RuntimeError as error:
        of = name if here else f"{name} of {triple}"
        raise MissingError(f"LLVM has no target machine for {of!r}: {error}") from error
