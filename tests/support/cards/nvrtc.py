"""NVRTC and a disassembler for tests that need them: where one is not installed, the test skips itself and says so."""

from __future__ import annotations

import pytest

from autosched.codegen.cuda import CudaSource
from autosched.device.cuda.compile.nvrtc import Cubin, compile_cuda
from autosched.device.cuda.compile.sass import disassembler
from autosched.device.cuda.compile.toolkit import toolkit
from autosched.errors import MissingError


def needs_nvrtc(arch: str) -> None:
    try:
        toolkit(arch)
    except MissingError as error:
        pytest.skip(error.message)


def needs_disassembler() -> None:
    try:
        disassembler()
    except MissingError as error:
        pytest.skip(error.message)


def compiled(source: CudaSource) -> Cubin:
    needs_nvrtc(source.arch)
    return compile_cuda(source.text, source.arch, source.headers)
