"""Statements: loops, guards, assignments, locals, intermediates and assumptions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from autosched.ir.nodes import Assign, Assume, Axis, Guard, Loop, Statement
from autosched.ir.parser import expressions, index_bounds, typing
from autosched.ir.parser.scope import Choice, Local, Scope
from autosched.ir.parser.signature import declare_tensor
from autosched.ir.value import Arith, Call, Condition, Read, Value, is_value, walk
from autosched.logic import TRUE, Const, Int, interval

MAX_NODES = 5_000
"""Locals are inlined, so a few lines can stand for a tree of any size; larger ones are refused."""
MAX_NESTING = 100
MAX_LOOPS = 32
"""Loops around a statement; an array has as many dimensions at most."""
MAX_STATEMENTS = 4_000
"""Later passes compare statements in pairs; the largest program people write has some hundred."""
MAX_TOTAL = 400_000
"""Nodes of all expressions together, with their locals filled in."""
_AUGMENTED: dict[type[ast.operator], str] = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*="}
_ACCEPTED = "statements are for, if, =, +=, -=, *=, assume(…) and T: f32[m, n]"


@dataclass
class Block:
    """Statements parsed so far, and the program's assumptions."""

    scope: Scope
    assumptions: list[Assume] = field(default_factory=list)
    _statements: int = 0
    _nodes: int = 0
    _writes: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)

    def body(self, nodes: list[ast.stmt]) -> tuple[Statement, ...]:
        """A block; locals defined in it end with it."""
        before = dict(self.scope.locals)
        found = [s for n in nodes for s in self.statement(n)]
        self.scope.gone |= self.scope.locals.keys() - before.keys()
        self.scope.locals = before
        return tuple(found)

    def statement(self, node: ast.stmt) -> list[Statement]:
        scope = self.scope
        self._statements += 1
        if self._statements > MAX_STATEMENTS:
            raise scope.source.error(
                node,
                f"the program has more than {MAX_STATEMENTS:,} statements",
                "write loops, or split it into several",
            )
        match node:
            case ast.For():
                return [self.loop(node)]
            case ast.If():
                return self.guard(node)
            case ast.Assign(targets=[ast.Subscript() as target]):
                return [self.assign(node, target, "=", node.value)]
            case ast.Assign(targets=[ast.Name() as name]):
                self.local(name, node.value)
                return []
            case ast.Assign():
                raise scope.source.error(node, "an assignment has one target: an element or a new name", _ACCEPTED)
            case ast.AugAssign(target=ast.Subscript() as target):
                op = _AUGMENTED.get(type(node.op))
                if op is None:
                    raise scope.source.error(
                        node, "this operator has no assigning form in the language", "write =, +=, -= or *="
                    )
                return [self.assign(node, target, op, node.value)]
            case ast.AugAssign():
                raise scope.source.error(node, "locals are assigned once", "accumulate into a tensor, as T: f32[1]")
            case ast.AnnAssign():
                self.intermediate(node)
                return []
            case ast.Expr(value=ast.Call(func=ast.Name(id="assume")) as call):
                self.assume(call)
                return []
            case ast.Pass():
                return []
            case ast.Expr():
                raise scope.source.error(node, "an expression alone computes nothing", _ACCEPTED)
            case _:
                raise scope.source.error(node, f"{type(node).__name__} is not part of the language", _ACCEPTED)

    # -- loops and guards

    def loop(self, node: ast.For) -> Loop:
        scope = self.scope
        if node.orelse:
            raise scope.source.error(node.orelse[0], "a loop has no else")
        names = [node.target] if not isinstance(node.target, ast.Tuple) else list(node.target.elts)
        pairs = self.loop_bounds(node, len(names))
        if len(scope.axes) + len(names) > MAX_LOOPS:
            raise scope.source.error(
                node, f"more than {MAX_LOOPS} loops around a statement", "join axes: i // n, i % n"
            )
        writes = self.written_below(node)
        opened: list[tuple[str, Axis]] = []
        locals_before = dict(scope.locals)
        for name, (lower, upper) in zip(names, pairs, strict=True):
            if not isinstance(name, ast.Name):
                raise scope.source.error(name, "a loop runs over names", "write for i, j in grid(m, n):")
            opened.append((name.id, self.open(name, lower, upper)))
            scope.loop_writes.append(writes)
        inner = self.body(node.body)
        for name_id, axis in reversed(opened):
            inner = (Loop(axis, inner),)
            del scope.axes[name_id], scope.ranges[axis.name]
            scope.loop_writes.pop()
        scope.locals = locals_before
        (result,) = inner
        assert isinstance(result, Loop)
        return result

    def loop_bounds(self, node: ast.For, count: int) -> list[tuple[Int, Int]]:
        scope = self.scope
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if count == 1 and len(args) in (1, 2):
                ends = [expressions.integer(scope, a, "a bound of range") for a in args]
                return [(ends[0] if len(ends) == 2 else Const(0), ends[-1])]
            case ast.Call(func=ast.Name(id="grid"), args=args, keywords=[]) if args:
                if len(args) != count:
                    raise scope.source.error(
                        node, f"grid has {len(args)} extents, and the loop {count} name{'s' * (count > 1)}"
                    )
                return [(Const(0), expressions.integer(scope, a, "an extent of grid")) for a in args]
            case ast.Call(func=ast.Name(id="range"), args=[_, _, _]):
                raise scope.source.error(
                    node.iter, "range takes no step", "loop over range(n) and write i * step in the index"
                )
        raise scope.source.error(node.iter, "a loop runs over range(n), range(a, b) or grid(n, m, …)")

    def open(self, node: ast.Name, lower: Int, upper: Int) -> Axis:
        """A new axis. A name that an earlier loop had gets `_2`, `_3`, … so that axis names are unique."""
        scope = self.scope
        earlier = node.id in scope.taken and not scope.means(node.id)
        if earlier:
            name = scope.unused(node.id)
            scope.taken.add(name)
        else:
            scope.declare(node, node.id)
            name = node.id
        low, high = index_bounds.span(scope, lower)[0], index_bounds.span(scope, upper)[1] - 1
        axis = Axis(name, lower, upper)
        scope.axes[node.id] = axis
        scope.ranges[name] = (low, max(low, high))
        return axis

    def guard(self, node: ast.If) -> list[Statement]:
        if node.orelse:
            raise self.scope.source.error(
                node.orelse[0], "an if has no else", "write a second if, or 'a if c else b' as a value"
            )
        self._check_size(node.test)
        test = index_bounds.simplified(self.scope, expressions.condition(self.scope, node.test))
        with index_bounds.under(self.scope, test):
            inner = self.body(node.body)
        return list(inner) if test == TRUE else [Guard(test, inner)]

    def written_below(self, node: ast.stmt) -> frozenset[str]:
        """Tensors that are written somewhere in a statement."""
        if node not in self._writes:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AugAssign) else targets
            own = [t.value.id for t in targets if isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name)]
            inner = node.body if isinstance(node, ast.For | ast.If) else []
            self._writes[node] = frozenset(own).union(*(self.written_below(n) for n in inner))
        return self._writes[node]

    # -- assignments

    def assign(self, node: ast.stmt, target: ast.Subscript, op: str, right: ast.expr) -> Assign:
        scope = self.scope
        self._check_size(target, right)
        read = expressions.read(scope, target)
        tensor = scope.tensors[read.tensor]
        if tensor.const:
            raise scope.source.error(target, f"{tensor.name} is const and cannot be written", "remove const[…]")
        value = expressions.value(scope, right, tensor.dtype, f"{tensor.name}[…]")
        if tensor.dtype.scale and not (op == "=" and _as_it_is(value)):
            said = f"{tensor.name} is {tensor.dtype}: elements of that are copied or made of bytes, not rounded"
            raise scope.source.error(target, said, f"compute the byte: bits_{tensor.dtype}(…)")
        if op == "=":
            op, value = _accumulation(read, value)
        scope.written[tensor.name] = scope.written.get(tensor.name, 0) + 1
        return Assign(read.tensor, read.index, op, value, scope.source.location(node))

    def local(self, node: ast.Name, right: ast.expr) -> None:
        scope = self.scope
        if node.id in scope.locals:
            raise scope.source.error(
                node, f"{node.id} is already defined; locals are assigned once", "choose another name, or use a tensor"
            )
        nodes, depth = self._check_size(right)
        operand = expressions.operand(scope, right)
        if isinstance(operand, Choice):
            hint = "cast one side: f32(1) if … else 0"
            raise scope.source.error(right, "nothing gives this choice a dtype", hint)
        if node.id not in scope.taken or scope.means(node.id):
            scope.declare(node, node.id)
        elif node.id not in scope.gone:
            raise scope.source.error(node, f"{node.id!r} named an axis before", "choose another name")
        values: list[Condition] = [operand] if not isinstance(operand, float) and is_value(operand) else []
        read = {v.tensor for value in values for v in walk(value) if isinstance(v, Read)}  # type: ignore[arg-type]
        scope.gone.discard(node.id)
        versions = {t: scope.written.get(t, 0) for t in read}
        scope.locals[node.id] = Local(operand, versions, len(scope.loop_writes), nodes, depth)

    def _check_size(self, *nodes: ast.expr) -> tuple[int, int]:
        """Nodes and depth of expressions with locals inlined; ProgramError where they are too large."""
        count, deepest = 0, 0
        for root in nodes:
            level: list[ast.AST] = [root]
            depth = 0
            while level:
                depth += 1
                for n in level:
                    used = self.scope.locals.get(n.id) if isinstance(n, ast.Name) else None
                    count += used.nodes if used else 1
                    deepest = max(deepest, depth + (used.depth if used else 0))
                level = [c for n in level for c in ast.iter_child_nodes(n)]
        if count > MAX_NODES or deepest > MAX_NESTING:
            raise self.scope.source.error(
                nodes[-1],
                "the expression, with its locals filled in, is too large",
                "store a part in an intermediate tensor: T: f32[…]",
            )
        self._nodes += count
        if self._nodes > MAX_TOTAL:
            raise self.scope.source.error(
                nodes[-1],
                "the program, with its locals filled in, is too large",
                "store what is used often in an intermediate tensor: T: f32[…]",
            )
        return count, deepest

    def intermediate(self, node: ast.AnnAssign) -> None:
        scope = self.scope
        if node.value is not None or not isinstance(node.target, ast.Name):
            raise scope.source.error(
                node,
                "an intermediate tensor is declared alone",
                "write T: f32[m, n], and assign its elements in a loop",
            )
        if scope.axes or scope.conditions:
            raise scope.source.error(node, "intermediate tensors are declared outside loops and guards")
        scope.declare(node, node.target.id)
        declare_tensor(scope, node, node.target.id, node.annotation, intermediate=True)

    # -- assumptions

    def assume(self, node: ast.Call) -> None:
        """`assume(low <= name <= high)`, `assume(size % k == 0)` or `assume(distinct(tensor, n))`, at the top level."""
        scope = self.scope
        if scope.axes or scope.conditions:
            raise scope.source.error(node, "assume stands at the top level, outside loops and guards")
        if len(node.args) != 1 or node.keywords:
            raise scope.source.error(node, "assume takes one condition")
        location = scope.source.location(node)
        match node.args[0]:
            case ast.Compare(
                left=ast.BinOp(left=ast.Name(id=name), op=ast.Mod(), right=step),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=0)],
            ):
                size = self._subject(node, name, sizes_only=True)
                multiple = self._number(step)
                if not isinstance(multiple, int) or multiple < 1:
                    raise scope.source.error(step, "a size is assumed to be a multiple of a positive integer")
                if isinstance(size, Const) and size.value % multiple:
                    said = f"assume({name} % {multiple} == 0)"
                    raise scope.source.error(node, f"{said} does not hold: {name} = {size.value}")
                self.assumptions.append(Assume(name, multiple=multiple, location=location))
            case ast.Call(func=ast.Name(id="distinct"), args=[ast.Name(id=name), ast.Constant(value=int(n))]) as call:
                self._assume_distinct(call, name, n)
            case ast.Compare() as test:
                self._assume_range(node, test)
            case _:
                raise scope.source.error(
                    node,
                    "assume takes a range or a divisibility",
                    "write assume(-64 <= B <= 64) or assume(m % 16 == 0)",
                )

    def _assume_distinct(self, node: ast.Call, name: str, n: int) -> None:
        scope = self.scope
        tensor = scope.tensors.get(name)
        if tensor is None or not tensor.dtype.is_integer or not tensor.shape:
            said = f"distinct({name}, {n}): {name} is no tensor of integers"
            raise scope.source.error(node, said, "it speaks of neighbours along a tensor's last dimension")
        last = tensor.shape[-1]
        if node.keywords or n < 2 or not isinstance(last, Const) or last.value % n:
            said = f"distinct({name}, {n}): the last dimension of {name} ({last}) is no number of groups of {n}"
            raise scope.source.error(node, said, "write assume(distinct(E, 2)), as of the two that are kept of four")
        self.assumptions.append(Assume(name, distinct=n, location=scope.source.location(node)))

    def _assume_range(self, node: ast.Call, test: ast.Compare) -> None:
        scope = self.scope
        terms = [test.left, *test.comparators]
        named = [
            k for k, t in enumerate(terms)
            if isinstance(t, ast.Name) and (t.id in scope.tensors or t.id in scope.scalars or t.id in scope.sizes)
        ]  # fmt: skip
        place = named[0] if len(named) == 1 or (len(terms) == 2 and named) else 1 if len(terms) == 3 else -1
        if place < 0 or len(terms) > 3 or (len(terms) == 3 and place != 1) or not isinstance(terms[place], ast.Name):
            raise scope.source.error(
                node, "assume takes a range or a divisibility", "write assume(-64 <= B <= 64) or assume(m % 16 == 0)"
            )
        name = terms[place].id  # type: ignore[attr-defined]
        size = self._subject(node, name)
        whole = size is not None or (name in scope.tensors and scope.tensors[name].dtype.is_integer)
        whole = whole or (name in scope.scalars and scope.scalars[name].dtype.is_integer)
        low: int | float | None = None
        high: int | float | None = None
        for k, op in enumerate(test.ops):
            symbol = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}.get(type(op))
            if symbol is None:
                raise scope.source.error(node, "assume compares with < <= > >= or ==")
            number = self._number(terms[k if k != place else k + 1])
            if place == k:  # name op number
                symbol = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}[symbol]
            if symbol in "<>":
                if not whole or isinstance(number, float):
                    raise scope.source.error(node, "a range of floats includes its ends", "write <= and >=")
                number = number + 1 if symbol == "<" else number - 1
            if symbol in ("<", "<=", "=="):
                low = number if low is None else max(low, number)
            if symbol in (">", ">=", "=="):
                high = number if high is None else min(high, number)
        if low is not None and high is not None and low > high:
            raise scope.source.error(node, "the assumed range is empty")
        others = [a for a in self.assumptions if a.subject == name]
        least_left = max([n for n in (low, *(a.low for a in others)) if n is not None], default=None)
        most_left = min([n for n in (high, *(a.high for a in others)) if n is not None], default=None)
        if least_left is not None and most_left is not None and least_left > most_left:
            said = f"the assumptions about {name} leave nothing: at least {least_left}, at most {most_left}"
            raise scope.source.error(node, said, "correct one of them")
        if size is not None:
            least, most = interval(size, scope.ranges)
            if (low is not None and most < low) or (high is not None and least > high):
                raise scope.source.error(
                    node,
                    f"the assumption does not hold: {name} = {size if isinstance(size, Const) else f'{least}..{most}'}",
                )
        self.assumptions.append(Assume(name, low, high, location=scope.source.location(node)))

    def _subject(self, node: ast.AST, name: str, sizes_only: bool = False) -> Int | None:
        scope = self.scope
        if name in scope.sizes:
            return scope.sizes[name]
        if name not in scope.known():
            raise scope.unknown(node, name)
        if sizes_only or not (name in scope.tensors or name in scope.scalars):
            raise scope.source.error(
                node,
                f"nothing can be assumed of {name} here",
                "assume ranges of tensors, scalars and sizes, divisibility of sizes",
            )
        return None

    def _number(self, node: ast.expr) -> int | float:
        found = expressions.operand(self.scope, node)
        if isinstance(found, Const):
            return found.value
        if isinstance(found, float):
            return found
        raise self.scope.source.error(node, f"assume takes numbers as bounds, not {typing.describe(found)}")


def _as_it_is(value: Value) -> bool:
    """Whether a scale is an element, or the one that a byte stands for: nothing is rounded then."""
    return isinstance(value, Read) or (isinstance(value, Call) and value.function == f"bits_{value.dtype}")


def _accumulation(target: Read, value: Value) -> tuple[str, Value]:
    """`C = C + e` is `C += e`, and so on for `- * min max`; sums, products and extrema also with C on the right."""
    if isinstance(value, Arith) and value.op in ("+", "-", "*", "min", "max") and value.dtype == target.dtype:
        op = f"{value.op}="
        if value.left == target and value.right != target:
            return op, value.right
        if value.right == target and value.left != target and value.op != "-":
            return op, value.left
    return "=", value
