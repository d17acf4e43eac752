"""Text to `Program`. Nothing is imported, compiled or evaluated: `ast` gives a tree, and these files read it.

Read in this order: `source` (text to tree), `signature`, `statements`, `expressions`, `typing`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

from autosched.errors import Location, ProgramError, UnknownNameError, UsageError
from autosched.given import checked
from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.parser import expressions, signature, statements
from autosched.ir.parser.scope import Scope
from autosched.ir.parser.signature import Define
from autosched.ir.parser.source import MAX_CHARACTERS, Source
from autosched.ir.program import Program
from autosched.logic import Int
from autosched.text_file import read_text

__all__ = ["Define", "load", "parse"]


def parse(
    text: str,
    filename: str = "<text>",
    function: str | None = None,
    sizes: Mapping[str, Define] | None = None,
    first_line: int = 1,
) -> Program:
    """The program written in `text`.

    `sizes` sets keyword-only parameters: ints, dtype names, `"1..4096"` or `(1, 4096)` for a size kept symbolic.
    `function` chooses one of several functions; `first_line` is where the text starts in `filename`, for messages.
    ProgramError, with the place, for what the language does not accept; UnknownNameError or UsageError for `sizes`.
    """
    source = Source(text, filename, first_line)
    node = _function(source, source.tree(), function)
    scope = Scope(source)
    if not isinstance(node, ast.FunctionDef):
        raise source.error(node, "an async function is not part of the language", "write def")
    if node.decorator_list:
        raise source.error(node.decorator_list[0], "decorators are not part of the language", "remove the line")
    if node.returns is not None:
        raise source.error(node.returns, "a program returns nothing: it writes into its parameters", "remove the ->")
    if getattr(node, "type_params", None):
        raise source.error(node, "type parameters are not part of the language")
    parameters = signature.read_parameters(scope, node)
    values, symbolic = signature.read_sizes(scope, node, sizes or {})
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    rest = [s for s in body if not _derived_size(scope, s)]
    signature.declare_parameters(scope, node)
    block = statements.Block(scope)
    tree = block.body(rest)
    if not scope.written:
        raise source.error(node, f"{node.name} writes nothing", "assign to an element of a tensor, as C[i] = …")
    _check_intermediates(scope, rest, tree)
    return Program(
        name=node.name,
        doc=inspect.cleandoc(ast.get_docstring(node, clean=False) or ""),
        tensors=scope.tensors,
        scalars=scope.scalars,
        parameters=parameters,
        sizes=values,
        dtypes={n: t.name for n, t in scope.dtypes.items()},
        body=tree,
        assumptions=tuple(block.assumptions),
        symbolic=symbolic,
        source=text,
    )


def _check_intermediates(scope: Scope, body: list[ast.stmt], tree: tuple[Statement, ...]) -> None:
    """An intermediate tensor holds nothing at first: one that no `=` gives a value has no meaning."""
    given = {a.tensor for a in _assignments(tree) if a.op == "="}
    for node in body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if name not in given:
                raise scope.source.error(
                    node,
                    f"no = gives the intermediate tensor {name} a value",
                    f"assign its elements before they are read or updated: {name}[…] = 0",
                )


def _assignments(body: tuple[Statement, ...]) -> Iterator[Assign]:
    for statement in body:
        match statement:
            case Assign():
                yield statement
            case Loop(body=inner) | Guard(body=inner):
                yield from _assignments(inner)


@checked()
def load(path: str | Path, **defines: Define) -> Program:
    """The program in a file: `path.py`, or `path.py:function` where the file holds several."""
    text = str(path)
    function = None
    if ":" in text and text.rpartition(":")[2].isidentifier() and not Path(text).exists():
        text, _, function = text.rpartition(":")
    hint = "give a path, path.py:function, or a workload's name"
    content = read_text(text, UsageError, 4 * MAX_CHARACTERS, hint)
    return parse(content, text, function, defines)


def _function(source: Source, tree: ast.Module, name: str | None) -> ast.FunctionDef | ast.AsyncFunctionDef:
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for k, node in enumerate(tree.body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name in found:
                    raise source.error(node, f"{node.name} is defined twice")
                found[node.name] = node
            case ast.Expr(value=ast.Constant(value=str())) if k == 0:
                pass
            case _:
                raise source.error(
                    node,
                    "a program file holds functions only",
                    "remove everything but def … (nothing is executed or imported)",
                )
    if not found:
        raise ProgramError(
            "the text holds no program",
            hint="write def name(A: f32[m], …, *, m=512): …",
            location=Location(source.filename, source.first_line),
        )
    if name is not None:
        if name not in found:
            raise UnknownNameError("function", name, found, Location(source.filename, source.first_line))
        return found[name]
    if len(found) > 1:
        raise UsageError(
            f"{source.filename} holds several functions: {', '.join(found)}",
            hint=f"choose one: {', '.join(f'{source.filename}:{name}' for name in found)}",
        )
    return next(iter(found.values()))


def _derived_size(scope: Scope, node: ast.stmt) -> bool:
    """Declare `name = integer expression over sizes` as a derived size; False for any other statement."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
            used = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
            if not all(used_name in scope.sizes or used_name in ("min", "max") for used_name in used):
                return False
            found = expressions.operand(scope, value)
            if not isinstance(found, Int):
                return False
            scope.declare(target, name)
            scope.sizes[name] = found
            return True
        case _:
            return False
