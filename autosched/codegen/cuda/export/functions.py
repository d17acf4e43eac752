"""What prints CUDA C++, as a backend's `Language` names it."""

from __future__ import annotations

from autosched.codegen.cuda.export.files import export_cuda
from autosched.codegen.cuda.export.torch_op import torch_op
from autosched.codegen.cuda.printer import print_cuda
from autosched.codegen.cuda.shared_memory.proofs import prove_placed
from autosched.codegen.print_functions import Files, PrintFunctions, RunText
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import AutoschedError
from autosched.machine.target import Target
from autosched.tiling.steps.gpu.operands.shared_proofs import LayoutProof


def _text(kernel: Kernel, target: Target) -> str:
    return print_cuda(kernel, target).text


def _files(kernel: Kernel, target: Target) -> Files:
    made = export_cuda(kernel, target)
    return Files(made.name, made.source, made.header, made.on_host, operator=lambda: torch_op(kernel, made))


def _emulator() -> RunText:
    from autosched.codegen.cuda.emulation import run_printed
    from autosched.codegen.cuda.emulation.build import compiler

    compiler()
    return run_printed


def _placed(kernel: Kernel, target: Target) -> list[LayoutProof]:
    try:
        printed = print_cuda(kernel, target).memory
    except AutoschedError:  # an instruction that can be simulated only
        return []
    limit = target.limits.get("shared_bytes", 0)
    return [p for memory in printed.values() if memory.buffers for p in prove_placed(kernel, memory, limit)]


FUNCTIONS = PrintFunctions(_text, _files, _emulator, _placed)
