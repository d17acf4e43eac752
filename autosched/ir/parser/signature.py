"""The signature: keyword-only sizes and dtypes with what `-D` set, then tensors and run-time scalars."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from autosched.errors import ProgramError, UnknownNameError, UsageError, nearest
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import ScalarParam, Tensor
from autosched.ir.parser import expressions
from autosched.ir.parser.scope import Scope, is_word
from autosched.logic import Const, Int, Var, interval

Define = int | str | tuple[int, int]
_RANGE = re.compile(r"\s*(-?\d{1,18})\s*\.\.\s*(-?\d{1,18})\s*")
_LARGEST = 2**40
MAX_PARAMETERS = 500
"""Tensors, scalars and sizes of a program."""
MAX_DIMENSIONS = 32


def read_sizes(
    scope: Scope, node: ast.FunctionDef, defines: Mapping[str, Define]
) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Declare the keyword-only parameters: sizes with their values, and symbolic ones with their ranges.

    Dtype variables go into `scope.dtypes`. UnknownNameError for a define that the signature does not have.
    """
    names = [a.arg for a in node.args.kwonlyargs]
    for name in defines:
        if name not in names:
            if (use := _used_in_a_shape(node, name)) is not None:
                raise _undeclared(scope, *use)
            raise UnknownNameError("size or dtype", name, names, scope.source.location(node))
    sizes: dict[str, int] = {}
    symbolic: dict[str, tuple[int, int]] = {}
    for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        scope.declare(arg, arg.arg)
        if arg.annotation is not None:
            raise scope.source.error(
                arg.annotation,
                f"{arg.arg} takes no annotation: its default says what it is",
                f'write {arg.arg}=512 or {arg.arg}="f32"',
            )
        standard = _default(scope, default) if default is not None else None
        given = defines.get(arg.arg, standard)
        if given is None:
            raise UsageError(
                f"{node.name} needs a value for {arg.arg}",
                hint=f"set it: -D {arg.arg}=…",
                location=scope.source.location(arg),
            )
        match _understood(arg.arg, given, standard, names):
            case int() as size:
                sizes[arg.arg] = size
                scope.sizes[arg.arg] = Const(size)
                scope.given.add(arg.arg)
            case DType() as chosen:
                scope.dtypes[arg.arg] = chosen
            case (low, high):
                symbolic[arg.arg] = (low, high)
                scope.sizes[arg.arg] = Var(arg.arg)
                scope.ranges[arg.arg] = (low, high)
                scope.given.add(arg.arg)
    return sizes, symbolic


def _default(scope: Scope, node: ast.expr) -> Define:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if not isinstance(value, bool):
            return -value
    raise scope.source.error(
        node, "a default is an integer (a size) or a text (a dtype or a range)", 'write m=512, t="f32" or m="1..4096"'
    )


def _understood(
    name: str, given: Define, standard: Define | None, names: Sequence[str]
) -> int | DType | tuple[int, int]:
    """A define as size, dtype or range; it must be of the kind that the default is of. `names` are all there are."""
    meant: int | DType | tuple[int, int]
    if isinstance(given, str):
        text = given.strip()
        found = _RANGE.fullmatch(text)
        if found:
            meant = (int(found[1]), int(found[2]))
        elif re.fullmatch(r"[+-]?\d{1,18}", text):
            meant = int(text)
        elif text in DTYPES:
            meant = DTYPES[text]
        else:
            close = nearest(text, DTYPES)
            raise UsageError(
                f"{name}={text[:80]!r} is neither an integer, a range nor a dtype",
                hint=(f"did you mean {close!r}? " if close else "")
                + f"write {name}=512, {name}=1..4096, or one of {' '.join(DTYPES)}",
            )
    elif isinstance(given, tuple):
        if len(given) != 2 or not all(isinstance(x, int) for x in given):
            raise UsageError(f"{name}: a range is two integers")
        meant = given
    elif isinstance(given, bool) or not isinstance(given, int):
        raise UsageError(f"{name} is an integer, a range or a dtype, not {_shown(given)}")
    else:
        meant = given
    wants_dtype = isinstance(standard, str) and not _RANGE.fullmatch(standard)
    if standard is not None and wants_dtype != isinstance(meant, DType):
        raise UsageError(
            f"{name} is a {'dtype' if wants_dtype else 'size'}, and {_shown(given)} is not",
            hint=f"its default is {_shown(standard)}; the program has {', '.join(names)}",
        )
    if isinstance(meant, DType):
        return meant
    if max(map(abs, meant if isinstance(meant, tuple) else (meant,))) > 2**64:
        raise UsageError(f"{name} has more than 64 bits", hint="sizes go up to 2**40")
    if isinstance(meant, tuple):
        low, high = meant
        wrong = "is empty" if low > high else "has negative sizes" if low < 0 else "is too large"
        if not 0 <= low <= high <= _LARGEST:
            hint = f"write the least size, then the largest (at most 2**40): -D {name}=1..4096"
            raise UsageError(f"{name}: the range {low}..{high} {wrong}", hint=hint)
        return meant[0] if meant[0] == meant[1] else meant
    if meant < 0:
        hint = f"a dimension is 1 or more, any other size 0 or more: -D {name}=…"
        raise UsageError(f"the size {name}={meant} is negative", hint=hint)
    if meant > _LARGEST:
        raise UsageError(f"the size {name}={meant} is too large", hint="sizes go up to 2**40")
    return meant


def _shown(given: Define) -> str:
    """A define in a message. (Python refuses to write integers of thousands of digits.)"""
    return "a number of more than 64 bits" if isinstance(given, int) and abs(given) > 2**64 else repr(given)[:80]


def read_parameters(scope: Scope, node: ast.FunctionDef) -> tuple[str, ...]:
    """Declare names of tensors and scalars with their dtypes; shapes follow once derived sizes are known."""
    if node.args.vararg or node.args.kwarg or node.args.posonlyargs:
        raise scope.source.error(
            node, "*args, **kwargs and '/' are not part of the language", "list tensors, then *, then sizes"
        )
    if node.args.defaults:
        raise scope.source.error(node.args.defaults[0], "tensors have no defaults", "put sizes after a bare *")
    if len(node.args.args) + len(node.args.kwonlyargs) > MAX_PARAMETERS:
        raise scope.source.error(node, f"the program has more than {MAX_PARAMETERS} parameters")
    return tuple(a.arg for a in node.args.args)


def declare_parameters(scope: Scope, node: ast.FunctionDef) -> None:
    """Fill `scope.tensors` and `scope.scalars` from the annotations."""
    for arg in node.args.args:
        scope.declare(arg, arg.arg)
        if arg.annotation is None:
            raise scope.source.error(
                arg,
                f"the parameter {arg.arg} has no type",
                f"write {arg.arg}: f32[m, n], or {arg.arg}: f32 for a scalar",
            )
        declare_tensor(scope, arg, arg.arg, arg.annotation, intermediate=False)


def declare_tensor(scope: Scope, place: ast.AST, name: str, annotation: ast.expr, intermediate: bool) -> None:
    """Declare one tensor (or, for a parameter with a bare dtype, a scalar) from its annotation."""
    const = False
    match annotation:
        case ast.Subscript(value=ast.Name(id="const"), slice=inner):
            const, annotation = True, inner
    match annotation:
        case ast.Name(id=dtype_name) if not intermediate and not const:
            dtype = _dtype(scope, annotation, dtype_name)
            if dtype.scale:
                raise scope.source.error(annotation, f"{dtype} is a dtype of tensors", f"declare {name} as f32")
            scope.scalars[name] = ScalarParam(name, dtype)
        case ast.Subscript(value=ast.Name(id=dtype_name), slice=dims):
            if const and intermediate:
                raise scope.source.error(annotation, "an intermediate tensor is computed and cannot be const")
            parts = list(dims.elts) if isinstance(dims, ast.Tuple) else [dims]
            if len(parts) > MAX_DIMENSIONS:
                raise scope.source.error(annotation, f"{name} has more than {MAX_DIMENSIONS} dimensions")
            shape = tuple(_extent(scope, name, p) for p in parts)
            _check_total(scope, annotation, name, shape)
            scope.tensors[name] = Tensor(name, _dtype(scope, annotation.value, dtype_name), shape, const, intermediate)
        case _:
            raise scope.source.error(
                annotation,
                f"the type of {name} is not understood",
                "write dtype[shape], const[dtype[shape]], or a bare dtype for a scalar",
            )


def _dtype(scope: Scope, node: ast.AST, name: str) -> DType:
    found = scope.dtypes.get(name) or DTYPES.get(name)
    if found is None:
        close = nearest(name, [*scope.dtypes, *DTYPES])
        raise scope.source.error(
            node,
            f"unknown dtype {name!r}",
            (f"did you mean {close!r}? " if close else "") + "types: " + " ".join([*scope.dtypes, *DTYPES]),
        )
    return found


def _used_in_a_shape(node: ast.FunctionDef, name: str) -> tuple[str, ast.Name] | None:
    """A parameter whose shape has this name, and where."""
    for arg in node.args.args:
        for found in ast.walk(arg.annotation) if isinstance(arg.annotation, ast.Subscript) else ():
            if isinstance(found, ast.Name) and found.id == name:
                return arg.arg, found
    return None


def _undeclared(scope: Scope, tensor: str, node: ast.Name) -> ProgramError:
    said = f"{tensor} has a dimension {node.id}, and no size of that name is declared"
    return scope.source.error(
        node, said, f"declare it behind *, as in `…, *, {node.id}=64)`; -D {node.id}=… then sets it"
    )


def _extent(scope: Scope, name: str, node: ast.expr) -> Int:
    for used in ast.walk(node):
        known = isinstance(used, ast.Name) and (scope.means(used.id) or is_word(used.id))
        if isinstance(used, ast.Name) and not known and nearest(used.id, scope.known()) is None:
            raise _undeclared(scope, name, used)
    size = expressions.integer(scope, node, f"a dimension of {name}")
    low, _ = interval(size, scope.ranges)
    if low < 1:
        text = ast.unparse(node)
        least = "" if isinstance(size, Const) else "at least "
        said = f"{text} is {least}{low}" if text != str(low) else f"it is {low}"
        sizes = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in scope.given]
        sizes = list(dict.fromkeys(sizes)) or sorted(scope.given)
        hint = f"set a larger size: -D {' or -D '.join(f'{n}=…' for n in sizes)}" if sizes else "write 1 or more"
        raise scope.source.error(node, f"every dimension of {name} is at least 1, and {said}", hint)
    return size


def _check_total(scope: Scope, node: ast.AST, name: str, shape: tuple[Int, ...]) -> None:
    total = 1
    for size in shape:
        total *= interval(size, scope.ranges)[1]
    if total > _LARGEST:
        raise scope.source.error(node, f"{name} would hold {total:,} elements", "at most 2**40 are allowed")
