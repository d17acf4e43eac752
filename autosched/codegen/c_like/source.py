"""`CSource`: a header and a source file, and how their functions are called; what both say of the program."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from autosched.ir.program import Program

WORKSPACE = ""
"""Stands for the workspace among a call's arguments: no buffer has this name."""


@dataclass(frozen=True, slots=True)
class CSource:
    """`name` is the function's; the files are to be called `name.h` and `name.c`. `calls` are the functions, in the
    order to call them, each with its arguments: buffers and scalars by the kernel's names, and `WORKSPACE`. `compiler`
    builds the source, which ends in `suffix`, with `flags`. `failure` is C for the words of a `status` that is not 0,
    where calls answer one."""

    header: str
    source: str
    name: str
    calls: tuple[tuple[str, tuple[str, ...]], ...] = ()
    flags: str = ""
    workspace_bytes: int = 0
    compiler: str = "cc"
    suffix: str = ".c"
    failure: str = ""


def about(name: str, program: Program) -> str:
    """What a file holds, as running text: the function's name, and the program's docstring."""
    return f"{name}: {program.doc}" if program.doc.split() else name


def function_text(program: Program) -> str:
    """The program's own text: of a file with several functions, its function."""
    try:
        tree = ast.parse(program.source)
    except (SyntaxError, ValueError):
        return ""
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == program.name]
    return (ast.get_source_segment(program.source, found[0]) or "") if found else ""
