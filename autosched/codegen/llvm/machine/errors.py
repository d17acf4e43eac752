"""What can go wrong between a loop tree and machine code."""

from __future__ import annotations

from autosched.errors import AutoschedError


class UnsupportedError(AutoschedError):
    """A kernel that LLVM IR for a CPU cannot express: another isa's loops, scopes or intrinsics."""

    exit_code = 3


class LlvmCompileError(AutoschedError):
    """LLVM refused a module; the message is LLVM's own."""

    exit_code = 3
