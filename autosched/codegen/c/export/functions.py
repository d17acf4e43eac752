"""What prints C, as a backend's `Language` names it."""

from __future__ import annotations

from autosched.codegen.c.export.files import print_c
from autosched.codegen.c.export.torch_op import torch_op
from autosched.codegen.print_functions import Files, PrintFunctions
from autosched.codegen.tree.kernel import Kernel
from autosched.machine.target import Target


def _text(kernel: Kernel, target: Target) -> str:
    return print_c(kernel).source


def _files(kernel: Kernel, target: Target) -> Files:
    code = print_c(kernel)
    return Files(code.name, code.source, code.header, code, code, lambda: torch_op(kernel, code))


FUNCTIONS = PrintFunctions(_text, _files)
