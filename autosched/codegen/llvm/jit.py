"""IR text to object bytes, and object bytes to callable code, through llvmlite. No C compiler takes part.

Objects load in any process of the same kind of machine (`load`), so a worker gets bytes, not a module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from autosched.codegen.llvm.errors import CompileError
from autosched.errors import MissingError

_OBJECT_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe")  # ELF; 64-bit Mach-O


def toolchain() -> str:
    """What builds the code: part of a study's key."""
    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(str(v) for v in llvm.llvm_version_info)}"


def compile_object(ir: str, cpu: str | None = None, features: str | None = None, opt: int = 2) -> bytes:
    """The object file of a module's text for `cpu` (None: this machine's) with `features` (`+avx512f,-…`; None: what
    this machine has, or the cpu's own where one is named). `opt` is the code generation level, 0 to 3.

    CompileError with LLVM's message where it refuses the text, or calls an intrinsic that LLVM does not have.
    """
    machine = target_machine(cpu, features, opt)
    module = _parse(ir, machine)
    try:
        code = bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise CompileError(f"LLVM could not generate code: {error}") from error
    # LLVM takes a name that it does not know for an outside function, and the loader gives that the address 0.
    for function in module.functions:
        if function.is_declaration and function.name.startswith("llvm.") and f"{function.name}\0".encode() in code:
            raise CompileError(f"LLVM has no intrinsic {function.name}", hint="correct emit.llvm in the YAML file")
    return code


def assembly(ir: str, cpu: str | None = None, features: str | None = None, opt: int = 2) -> str:
    """The assembly text of what `compile_object` builds."""
    machine = target_machine(cpu, features, opt)
    return str(machine.emit_assembly(_parse(ir, machine)))


def _parse(ir: str, machine: Any) -> Any:
    """The module, verified, with register buffers promoted to values."""
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(ir, context)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(
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
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def target_machine(cpu: str | None = None, features: str | None = None, opt: int = 2) -> Any:
    """LLVM's target machine; CompileError for an unknown cpu."""
    _initialise()
    name = cpu or llvm.get_host_cpu_name()
    if features is None:
        features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
    try:
        target = llvm.Target.from_triple(llvm.get_process_triple())
        return target.create_target_machine(
            cpu=name, features=features, opt=opt, reloc="pic", codemodel="small", jit=True
        )
    except RuntimeError as error:
        raise MissingError(f"LLVM has no target machine for {name!r}: {error}") from error


class Module:
    """Loaded machine code. It lives as long as this object or one of its functions does."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def address(self, name: str) -> int:
        """The address of an exported function (CompileError where there is none of that name)."""
        found = int(self._engine.get_function_address(name))
        if not found:
            raise CompileError(f"the module has no function {name!r}")
        return found

    def function(self, name: str, arguments: Sequence[Any] | int = ()) -> Any:
        """A ctypes callable returning nothing; `arguments` are ctypes types, or a number of pointers."""
        kinds = [ctypes.c_void_p] * arguments if isinstance(arguments, int) else list(arguments)
        callable_ = ctypes.CFUNCTYPE(None, *kinds)(self.address(name))
        callable_.module = self  # type: ignore[attr-defined]  # the code must not go before the callable
        return callable_


def load(code: bytes | str, cpu: str | None = None) -> Module:
    """Code from an object file's bytes, or from IR text built for `cpu` first.

    Loads the thread pool too where the code has parallel loops (`runtime.pool`).
    """
    data = compile_object(code, cpu) if isinstance(code, str) else code
    from autosched.codegen.llvm.pool_ir import PARALLEL_FOR
    from autosched.codegen.llvm.runtime import pool

    if PARALLEL_FOR.encode() in data:
        pool()
    return Module(engine_of(data))


@cache
def _engine_context() -> Any:
    """The context of the empty modules that engines are made from. It is never disposed: garbage collection of a cycle
    may reach an engine's context before the engine, whose end then reads freed memory."""
    return llvm.create_context()


def engine_of(data: bytes) -> Any:
    """An execution engine that holds one object file."""
    if not data.startswith(_OBJECT_MAGIC):  # the loader would end the process
        raise CompileError("cannot load the object: these bytes are no object file")
    machine = target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("", _engine_context()), machine)
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
    except RuntimeError as error:
        raise CompileError(f"cannot load the object: {error}") from error
    return engine
