"""Expressions: a syntax tree to an `Operand`, typed strictly. See `typing` for the rules."""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import ExitStack

from autosched.errors import ProgramError, UnknownNameError
from autosched.ir.dtypes import BOOL, DTYPES, DType
from autosched.ir.parser import index_bounds, typing
from autosched.ir.parser.scope import FUNCTIONS, Choice, Local, Operand, Scope
from autosched.ir.value import Arith, Call, Comparison, Condition, Index, Logical, Read, Scalar, Select, Unary, Value
from autosched.logic import TRUE, Bool, Const, Int, Truth, Var, all_of, any_of, free_vars
from autosched.logic.expr import binary, compare, negate, where

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
LARGEST = 2**62
"""Index arithmetic stays within 64-bit integers."""
MOST_FACTORS = 4
"""Of a power."""
_WHAT = {
    ast.Lambda: "lambda", ast.ListComp: "a comprehension", ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension", ast.GeneratorExp: "a comprehension", ast.JoinedStr: "an f-string",
    ast.NamedExpr: "':='", ast.Attribute: "attribute access", ast.Await: "await", ast.Yield: "yield",
    ast.Starred: "'*'", ast.Dict: "a dictionary", ast.List: "a list", ast.Set: "a set", ast.Tuple: "a tuple",
}  # fmt: skip
_ACCEPTED = (
    "expressions are tensors, scalars, literals, + - * / // % << >> & | ^ ~, comparisons, 'a if c else b', "
    "casts and functions"
)


def unsupported(scope: Scope, node: ast.AST) -> ProgramError:
    """The error for a construct that is Python, but not of the language."""
    what = _WHAT.get(type(node), f"{type(node).__name__}")
    return scope.source.error(node, f"{what} is not part of the language", _ACCEPTED)


def operand(scope: Scope, node: ast.expr) -> Operand:
    """What the expression means; ProgramError with the place where it is not well-typed."""
    match node:
        case ast.Constant():
            return _constant(scope, node)
        case ast.Name(id=name):
            return _name(scope, node, name)
        case ast.Subscript():
            return read(scope, node)
        case ast.UnaryOp():
            return _unary(scope, node)
        case ast.BinOp(left=left, op=op, right=right):
            symbol = _BINARY.get(type(op))
            if isinstance(op, ast.Pow):
                return _power(scope, node, operand(scope, left), right)
            if symbol is None:
                raise scope.source.error(node, "@ is not part of the language", _ACCEPTED)
            return _arith(scope, node, symbol, operand(scope, left), operand(scope, right))
        case ast.Compare():
            return _comparison(scope, node)
        case ast.BoolOp(op=join, values=values):
            return _boolean(scope, "and" if isinstance(join, ast.And) else "or", values)
        case ast.IfExp():
            return _choice(scope, node)
        case ast.Call():
            return _call(scope, node)
        case _:
            raise unsupported(scope, node)


def _power(scope: Scope, node: ast.BinOp, base: Operand, exponent: ast.expr) -> Operand:
    """A product of equal factors: `x ** 3` is `x * x * x`."""
    count = exponent.value if isinstance(exponent, ast.Constant) else None
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_FACTORS:
        said = f"** takes a whole number from 2 to {MOST_FACTORS} that the text says"
        raise scope.source.error(node, said, "multiply instead")
    found = base
    for _ in range(count - 1):
        found = _arith(scope, node, "*", found, base)
    return found


def _constant(scope: Scope, node: ast.Constant) -> Operand:
    match node.value:
        case bool():
            return Truth(node.value)
        case int():
            if node.value > 2**64:
                raise scope.source.error(node, "the literal does not fit any integer dtype")
            return Const(node.value)
        case float():
            return node.value
        case _:
            kind = type(node.value).__name__
            raise scope.source.error(node, f"a {kind} literal is not part of the language", _ACCEPTED)


def _name(scope: Scope, node: ast.expr, name: str) -> Operand:
    if name in scope.axes:
        return Var(scope.axes[name].name)
    if name in scope.sizes:
        return scope.sizes[name]
    if name in scope.locals:
        return _local(scope, node, name, scope.locals[name])
    if name in scope.scalars:
        return Scalar(name, scope.scalars[name].dtype)
    if name in scope.tensors:
        raise scope.source.error(
            node,
            f"the tensor {name} needs an index",
            f"write {name}[{', '.join('…' for _ in scope.tensors[name].shape)}]",
        )
    if name == "inf":
        return float("inf")
    if name in scope.dtypes or name in DTYPES:
        raise scope.source.error(node, f"{name} is a dtype; a cast takes a value", f"write {name}(…)")
    if name in FUNCTIONS:
        raise scope.source.error(node, f"{name} is a function; it takes arguments", f"write {name}(…)")
    raise scope.unknown(node, name)


def _local(scope: Scope, node: ast.expr, name: str, local: Local) -> Operand:
    """A use of a local, which is inlined; refused where a tensor it read has been written since."""
    for tensor, version in local.versions.items():
        changed = scope.written.get(tensor, 0) != version
        if changed or any(tensor in writes for writes in scope.loop_writes[local.loops :]):
            raise scope.source.error(
                node,
                f"{name} reads {tensor}, which is written between its definition and this use",
                f"define {name} after the write, or store it in an intermediate tensor",
            )
    return local.operand


def read(scope: Scope, node: ast.Subscript) -> Read:
    """An element of a tensor, its index checked against the shape."""
    if not isinstance(node.value, ast.Name):
        raise scope.source.error(node, "only a tensor can be indexed", "write the tensor's name before [")
    name = node.value.id
    tensor = scope.tensors.get(name)
    if tensor is None:
        if scope.means(name):
            raise scope.source.error(node, f"{name!r} is not a tensor and takes no index")
        raise scope.unknown(node.value, name)
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(parts) != len(tensor.shape):
        raise scope.source.error(
            node,
            f"{name} has {len(tensor.shape)} dimensions, and the index has {len(parts)}",
            f"its shape is [{', '.join(map(str, tensor.shape))}]",
        )
    index = tuple(_subscript(scope, p) for p in parts)
    index_bounds.check(scope, node, tensor, index)
    return Read(name, index, tensor.dtype)


def _subscript(scope: Scope, node: ast.expr) -> Index:
    found = operand(scope, node) if not isinstance(node, ast.Slice) else None
    match found:
        case None:
            raise scope.source.error(node, "slices are not part of the language", "index one element, in a loop")
        case Int():
            return found
        case Bool() | float() | Choice():
            raise scope.source.error(node, f"an index is an integer, not {typing.describe(found)}")
        case _ if not found.dtype.is_integer:
            raise scope.source.error(node, f"an index is an integer, and this is {found.dtype}", "cast it: s32(…)")
        case _:
            return found


def integer(scope: Scope, node: ast.expr, what: str) -> Int:
    """An integer expression over sizes and axes; `what` names the place that needs one."""
    found = operand(scope, node)
    if isinstance(found, Int):
        return found
    raise scope.source.error(node, f"{what} is an integer expression, not {typing.describe(found)}")


def value(scope: Scope, node: ast.expr, dtype: DType, what: str) -> Value:
    """The expression as a value of `dtype`."""
    return typing.coerce(scope.source, node, operand(scope, node), dtype, what)


def condition(scope: Scope, node: ast.expr) -> Condition:
    """The expression as a condition."""
    found = operand(scope, node)
    if isinstance(found, Bool):
        return found
    if isinstance(found, Int | float | Choice) or found.dtype != BOOL:
        raise scope.source.error(node, f"a condition is needed, not {typing.describe(found)}", "compare it: … != 0")
    return found


def _unary(scope: Scope, node: ast.UnaryOp) -> Operand:
    if isinstance(node.op, ast.Not):
        found = condition(scope, node.operand)
        return negate(found) if isinstance(found, Bool) else Logical("not", (found,))
    found_value = operand(scope, node.operand)
    symbol = "-" if isinstance(node.op, ast.USub) else "~" if isinstance(node.op, ast.Invert) else "+"
    if symbol == "+":
        raise scope.source.error(node, "a leading '+' is not part of the language", "leave it out")
    if typing.is_condition(found_value):
        raise scope.source.error(node, f"{symbol!r} takes a value, not a condition", "negate a condition with not")
    match found_value:
        case float() if symbol == "-":
            return -found_value
        case Int() if symbol == "-":
            return -found_value
        case Int() | float() | Choice():
            raise scope.source.error(
                node, f"'~' takes a value with a dtype, not {typing.describe(found_value)}", "cast it: ~s32(…)"
            )
    assert not isinstance(found_value, Int | Bool | float | Choice)
    typing.computes(scope.source, node, repr(symbol), found_value.dtype)
    if symbol == "~" and not found_value.dtype.is_integer:
        raise scope.source.error(node, f"'~' takes integers, and this is {found_value.dtype}")
    return Unary(symbol, found_value, found_value.dtype)


def _arith(scope: Scope, node: ast.expr, op: str, left: Operand, right: Operand) -> Operand:
    if isinstance(left, Int) and isinstance(right, Int):
        return _index_arith(scope, node, op, left, right)
    a, b = typing.unify(scope.source, node, repr(op), left, right)
    typing.check_operator(scope.source, node, op, a.dtype)
    return Arith(op, a, b, a.dtype)


def _index_arith(scope: Scope, node: ast.expr, op: str, left: Int, right: Int) -> Int:
    """Quasi-affine arithmetic of sizes and axes."""
    if op not in ("+", "-", "*", "//", "%"):
        hint = (
            "write // for whole sizes, or cast the axes: f32(i) / f32(n)" if op == "/" else "cast them first, as s32(i)"
        )
        raise scope.source.error(node, f"{op!r} is not defined on index expressions", hint)
    if op == "*" and _over_axes(scope, left) and _over_axes(scope, right):
        raise scope.source.error(
            node,
            f"({left}) * ({right}) multiplies two axes; an index is affine in axes",
            "cast one to use the product as a value",
        )
    if op in ("//", "%") and (_over_axes(scope, right) or index_bounds.span(scope, right)[0] <= 0):
        raise scope.source.error(node, f"the divisor {right} is not a positive constant")
    result = binary(op, left, right)
    if isinstance(result, Const) and abs(result.value) > LARGEST:
        raise scope.source.error(node, "the integer does not fit 63 bits", "sizes and indices stay below 2**62")
    return result


def _over_axes(scope: Scope, node: Int) -> bool:
    names = {a.name for a in scope.axes.values()}
    return not names.isdisjoint(free_vars(node))


def _boolean(scope: Scope, op: str, nodes: list[ast.expr]) -> Operand:
    """`and`, `or`: a part is read only where the ones before it leave the answer open."""
    parts: list[Condition] = []
    with ExitStack() as stack:
        for node in nodes:
            part = condition(scope, node)
            parts.append(part)
            stack.enter_context(index_bounds.under(scope, part if op == "and" else _negated(part)))
    return _join(op, parts)


def _negated(test: Condition) -> Condition:
    return negate(test) if isinstance(test, Bool) else Logical("not", (test,))


def _join(op: str, parts: list[Condition]) -> Operand:
    logic = [p for p in parts if isinstance(p, Bool)]
    if len(logic) == len(parts):
        return all_of(*logic) if op == "and" else any_of(*logic)
    return Logical(op, tuple(parts))


def _comparison(scope: Scope, node: ast.Compare) -> Operand:
    parts: list[Condition] = []
    left_node, left = node.left, operand(scope, node.left)
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        symbol = _COMPARE.get(type(op))
        if symbol is None:
            raise scope.source.error(node, "'in' and 'is' are not part of the language", "compare with < <= == != > >=")
        right = operand(scope, right_node)
        if isinstance(left, Int) and isinstance(right, Int):
            parts.append(compare(symbol, left, right))
        else:
            a, b = typing.unify(scope.source, left_node, f"{symbol!r}", left, right)
            parts.append(Comparison(symbol, a, b))
        left_node, left = right_node, right
    return parts[0] if len(parts) == 1 else _join("and", parts)


def _choice(scope: Scope, node: ast.IfExp) -> Operand:
    test = condition(scope, node.test)
    with index_bounds.under(scope, test):
        then = operand(scope, node.body)
    with index_bounds.under(scope, _negated(test)):
        other = operand(scope, node.orelse)
    if isinstance(then, Int) and isinstance(other, Int) and isinstance(test, Bool):
        return where(test, then, other)
    if typing.is_literal(then) and typing.is_literal(other):
        return Choice(test, then, other)
    a, b = typing.unify(scope.source, node, "'if else'", then, other)
    if isinstance(test, Truth):
        return a if test == TRUE else b
    return Select(test, a, b, a.dtype)


def _call(scope: Scope, node: ast.Call) -> Operand:
    if not isinstance(node.func, ast.Name):
        raise unsupported(scope, node.func)
    if node.keywords:
        raise scope.source.error(node, "calls take no keyword arguments")
    name = node.func.id
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            raise unsupported(scope, argument)
    target = _dtype_named(scope, name)
    if target is not None:
        _arity(scope, node, name, 1)
        return typing.convert(scope.source, node, operand(scope, node.args[0]), target, saturate=False)
    if name.startswith("sat_") and (target := _dtype_named(scope, name[4:])) is not None:
        _arity(scope, node, name, 1)
        return typing.convert(scope.source, node, operand(scope, node.args[0]), target, saturate=True)
    if name.startswith("bits_") and (target := _dtype_named(scope, name[5:])) is not None:
        _arity(scope, node, name, 1)
        return typing.reinterpret(scope.source, node, operand(scope, node.args[0]), target)
    function = _FUNCTIONS.get(name)
    if function is None:
        known = [*FUNCTIONS, *DTYPES, *scope.dtypes]
        raise _as_program_error(scope, node, name, known)
    return function(scope, node, name, [operand(scope, a) for a in node.args])


def _as_program_error(scope: Scope, node: ast.Call, name: str, known: list[str]) -> ProgramError:
    e = UnknownNameError("function", name, known)
    return ProgramError(e.message, hint=e.hint, location=scope.source.location(node))


def _dtype_named(scope: Scope, name: str) -> DType | None:
    return scope.dtypes.get(name) or DTYPES.get(name)


def _arity(scope: Scope, node: ast.Call, name: str, count: int) -> None:
    if len(node.args) != count:
        plural = "s" * (count > 1)
        raise scope.source.error(node, f"{name} takes {count} argument{plural}, and here are {len(node.args)}")


def _extremum(scope: Scope, node: ast.Call, name: str, args: list[Operand]) -> Operand:
    if len(args) < 2:
        raise scope.source.error(node, f"{name} takes two or more arguments")
    result = args[0]
    for other in args[1:]:
        if isinstance(result, Int) and isinstance(other, Int):
            result = binary(name, result, other)
        else:
            a, b = typing.unify(scope.source, node, name, result, other)
            result = Arith(name, a, b, a.dtype)
    return result


def _fma(scope: Scope, node: ast.Call, name: str, args: list[Operand]) -> Operand:
    _arity(scope, node, name, 3)
    values = typing.unify(scope.source, node, name, *args)
    typing.check_function(scope.source, node, name, values[0].dtype)
    return Call(name, values, values[0].dtype)


def _one_argument(scope: Scope, node: ast.Call, name: str, args: list[Operand]) -> Operand:
    _arity(scope, node, name, 1)
    (argument,) = typing.unify(scope.source, node, name, args[0])
    typing.check_function(scope.source, node, name, argument.dtype)
    return Call(name, (argument,), argument.dtype)


def _scalb(scope: Scope, node: ast.Call, name: str, args: list[Operand]) -> Operand:
    _arity(scope, node, name, 2)
    values = typing.unify(scope.source, node, name, *args)
    typing.check_word(scope.source, node, name, values[0].dtype, "float")
    return Call(name, values, values[0].dtype)


def _lookup(scope: Scope, node: ast.Call, name: str, args: list[Operand]) -> Operand:
    count = len(args) - 1
    if count < 2 or count & (count - 1):
        raise scope.source.error(node, f"lookup takes an integer and 2, 4, 8, … literals, and here are {count}")
    (index,) = typing.unify(scope.source, node, name, args[0])
    typing.check_word(scope.source, node, name, index.dtype, "integer")
    if not all(isinstance(a, float | Const) for a in args[1:]):
        raise scope.source.error(node, "lookup chooses among literals")
    dtype = DTYPES[f"f{index.dtype.bits}"]
    literals = zip(node.args[1:], args[1:], strict=True)
    return Call(name, (index, *(typing.coerce(scope.source, n, a, dtype, name) for n, a in literals)), dtype)


_SPECIAL: dict[str, Callable[[Scope, ast.Call, str, list[Operand]], Operand]] = {
    "min": _extremum, "max": _extremum, "fma": _fma, "scalb": _scalb, "lookup": _lookup,
}  # fmt: skip
_FUNCTIONS = {name: _SPECIAL.get(name, _one_argument) for name in FUNCTIONS}
