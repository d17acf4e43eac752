"""Exported C. Read `export.files` (what is printed), then `statements` and `assignments` (how).

`values` holds the exact meaning of expressions, `helpers` and `arithmetic` the functions that carry it.
"""

from autosched.codegen.c.export.files import CSource, print_c

__all__ = ["CSource", "print_c"]
