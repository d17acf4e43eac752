"""Exported C. Read `export.files` (what is printed), then `statements` and `assignments` (how).

What CUDA prints alike is in `codegen.c_like`.
"""

from autosched.codegen.c.export.files import print_c
from autosched.codegen.c_like.source import CSource

__all__ = ["CSource", "print_c"]
