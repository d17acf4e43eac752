"""`CSource`: a header and a source file, with the calls of their functions; what their comments say of the program."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from autosched.codegen.tree.kernel import Kernel
from autosched.ir.nodes import Assume
from autosched.ir.printer import print_assume
from autosched.ir.program import Program

WORKSPACE = ""
"""Stands for the workspace among a call's arguments: no buffer has this name."""


@dataclass(frozen=True, slots=True)
class CSource:
    """`name`: the function's name; the files are to be called `name.h` and `name.c`. `calls`: the functions in calling
    order, each with its arguments (buffers and scalars by the kernel's names, and `WORKSPACE`). `compiler` builds the
    source, a file that ends in `suffix`, with `flags`. `failure`: where calls return a `status`, a C expression for the
    message of one that is not 0."""

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
    """The function's name and the program's docstring, for a file's first comment."""
    return f"{name}: {program.doc}" if program.doc.split() else name


def right_where(kernel: Kernel) -> str:
    """What callers must see to, in words: what a kernel relies on and what its program assumes; empty for nothing."""
    told = dict.fromkeys([*kernel.relies, *map(_in_words, kernel.program.assumptions)])
    return f"Right only where: {'; '.join(told)}." if told else ""


def _in_words(a: Assume) -> str:
    if a.distinct is not None:
        return f"of each {a.distinct} neighbours along the last dimension of {a.subject} no two are equal"
    return print_assume(a).removeprefix("assume(").removesuffix(")")


def function_text(program: Program) -> str:
    """The program's own text: of a file with several functions, its function."""
    try:
        tree = ast.parse(program.source)
    except (SyntaxError, ValueError):
        return ""
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == program.name]
    return (ast.get_source_segment(program.source, found[0]) or "") if found else ""
