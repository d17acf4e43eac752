"""Assignments as C: whole-register loads, splats and stores where the access allows, else a loop over the lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autosched.codegen.analysis.access import at_lane, classify, plain
from autosched.codegen.analysis.known import known
from autosched.codegen.analysis.lane_conditions import Valid, lower_bound, repeats, split_valid
from autosched.codegen.c.lane_values import vector_values
from autosched.codegen.c.registers import Register
from autosched.codegen.c.scope import FunctionScope
from autosched.codegen.c.vector_helpers import NotVector
from autosched.codegen.c_like.blocks import loop_head, under
from autosched.codegen.c_like.ctypes import storage_type
from autosched.codegen.c_like.indices import INDEX_TYPE
from autosched.codegen.c_like.values import all_bits_zero
from autosched.codegen.tree.kernel import Assign, Lane, Stmt
from autosched.ir.value import Read, Value, is_plain, map_value, walk
from autosched.ir.variables import value_vars
from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, free_vars, minimum
from autosched.logic.walk import substitute_bool, substitute_int


class CAssignPrinter:
    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self.past: list[tuple[Register, str, str]] | None = None

    def together(self, group: tuple[Assign, ...]) -> Iterator[str]:
        """The lines of neighbouring stores past the caches. They test alignment once, after all values are computed,
        since compilers move no computation across the test."""
        past = self.past = list[tuple[Register, str, str]]()
        others = [line for stmt in group for line in self.lines(stmt)]
        self.past = None
        if any(others) or {self.scope.vectors.streamed(register) for register, _, _ in past} != {True}:
            for stmt in group:
                yield from self.lines(stmt)
            return
        vectors = self.scope.vectors
        names = [self.scope.names.local(f"{group[0].buffer}_value{n or ''}") for n in range(len(past))]
        named = list(zip(names, past, strict=True))
        self.scope.use("aligned")
        yield "{"
        for name, (register, _, text) in named:
            yield f"  const {vectors.vector(register)} {name} = {text};"
        yield f"  if ({' && '.join(f'aligned({place}, sizeof {name})' for name, (_, place, _) in named)}) {{"
        for name, (register, place, _) in named:
            yield f"    {vectors.past(register)}({place}, {name});"
        yield "  } else {"
        for name, (register, place, _) in named:
            yield f"    {vectors.store(register)}({place}, {name});"
        yield "  }"
        yield "}"

    def lines(self, stmt: Assign) -> Iterator[str]:
        """The statement's lines."""
        if stmt.lane is not None:
            self.scope.ranges[stmt.lane.var] = (0, stmt.lane.width - 1)
        yield from self._lines(replace(stmt, valid=known(stmt.valid, self.scope.ranges)))
        if stmt.lane is not None:
            del self.scope.ranges[stmt.lane.var]

    def _lines(self, stmt: Assign) -> Iterator[str]:
        register = self.scope.registers.get(stmt.buffer)
        lane = stmt.lane.var if stmt.lane else None
        valid = split_valid(stmt.valid, lane)
        if valid.guard == FALSE and register is None:
            return
        if register is not None:
            yield from self._to_register(stmt, register, valid)
        elif stmt.lane is None:
            line = f"{self.scope.element(stmt.buffer, stmt.index)} = {self.scope.values.stored(stmt.value)};"
            yield from self._guarded(stmt.valid, [line])
        else:
            whole = self._store(stmt, valid)
            if whole is not None:
                yield from self._guarded(valid.guard, [whole])
            else:
                yield from self._lane_loop(stmt, valid)

    def _guarded(self, guard: Bool, lines: list[str]) -> Iterator[str]:
        if guard == TRUE:
            yield from lines
            return
        yield from under(f"if ({self.scope.index.condition(guard)})", lines, "  ", 105)

    # Registers

    def _to_register(self, stmt: Assign, register: Register, valid: Valid) -> Iterator[str]:
        *outer, last = stmt.index
        target = self.scope.register(stmt.buffer, tuple(outer))
        whole = (
            stmt.lane is not None and stmt.lane.width == register.elements and last == Var(stmt.lane.var)
        ) or register.elements == 1
        if whole and register.style == "scalar":
            yield f"{target} = {self._scalar_or_zero(stmt)};"
            return
        if register.elements == 1:  # a vector of one: some intrinsics have no plain scalar operands
            splat = f"{self.scope.vectors.splat(register)}({self._scalar_or_zero(stmt)})"
            yield f"{target} = {register.cast_from_vector(splat)};"
            return
        text = self._whole(stmt, register, valid) if whole and register.style == "vector" else None
        if text is None and whole and register.style == "vector":
            text = self._vector(stmt, register, valid)
        if text is not None:
            vector_zero = f"({register.vector}){{0}}"
            bare = f"({self.scope.vectors.declared(register)}){{0}}"
            yield f"{target} = {bare if text == vector_zero else register.cast_from_vector(text)};"
            return
        yield from self._lanes_to_register(stmt, register, target, whole)

    def _scalar_or_zero(self, stmt: Assign) -> str:
        """The value of a one-element register; a lane of width one is 0."""
        if stmt.lane is not None:
            stmt = _at_lane_zero(stmt)
        value = self.scope.values.stored(stmt.value)
        if stmt.valid == TRUE:
            return value
        return f"{self.scope.index.choice(stmt.valid)} ? {value} : 0"

    def _whole(self, stmt: Assign, register: Register, valid: Valid) -> str | None:
        """The register's new vector in one expression, where the value is a splat or a plain load; else None."""
        assert stmt.lane is not None
        vectors, scope = self.scope.vectors, self.scope
        least = lower_bound(valid.rest, stmt.lane.var)
        if valid.rest != TRUE and least is None:
            return None
        zero = f"({vectors.vector(register)}){{0}}"
        if stmt.lane.var not in value_vars(stmt.value) and valid.count is None and least is None:
            if all_bits_zero(stmt.value):
                return zero
            value = scope.values.stored(stmt.value)
            if valid.guard != TRUE:
                value = f"{self.scope.index.choice(valid.guard)} ? {value} : 0"
            return f"{vectors.splat(register)}({value})"
        if not isinstance(stmt.value, Read) or stmt.value.dtype != register.dtype:
            return None
        if least is None:
            text = self._load(stmt.value, stmt, register, valid)
        else:
            text = self._load_between(stmt.value, stmt, register, least, valid.count)
        if text is None or valid.guard == TRUE:
            return text
        return f"({self.scope.index.choice(valid.guard)} ? {text} : {zero})"

    def _vector(self, stmt: Assign, register: Register, valid: Valid) -> str | None:
        """The register's new vector as an expression on vectors, zeros in lanes that are not valid; None where the
        value has no such form."""
        assert stmt.lane is not None
        lane, read = stmt.lane.var, isinstance(stmt.value, Read) and stmt.lane.var in value_vars(stmt.value)
        of_lane = read and free_vars(valid.rest) == {lane} and valid.count is None
        if (valid.rest != TRUE and not of_lane) or register.elements != stmt.lane.width:
            return None
        values, dtype = vector_values(self.scope, stmt.lane, valid.rest), stmt.value.dtype
        zero = f"({self.scope.vectors.vector(register)}){{0}}"
        try:
            with self.scope.attempt():
                text = values.stored(stmt.value, valid.count)
                if valid.count is not None:
                    mask = values.helpers.first(self.scope.index.number(valid.count), 8 * dtype.bytes)
                    text = values.helpers.select(dtype, mask, text, zero)
        except NotVector:
            return None
        return text if valid.guard == TRUE else f"({self.scope.index.choice(valid.guard)} ? {text} : {zero})"

    def _load(self, read: Read, stmt: Assign, register: Register, valid: Valid) -> str | None:
        scope, lane = self.scope, stmt.lane
        assert lane is not None
        if not is_plain(read.index):
            return None
        access = classify(read.index, scope.kernel.buffers[read.tensor].shape, lane)
        source = scope.registers.get(read.tensor)
        if source is not None:
            if access.kind == "contiguous" and source.elements == register.elements and valid.count is None:
                return source.cast_to_vector(scope.register(read.tensor, read.index[:-1]))
            return None
        first = at_lane(read.index, lane.var)
        if access.kind == "contiguous":
            if valid.count is None:
                return f"{scope.vectors.load(register)}(&{scope.element(read.tensor, first)})"
            count = scope.index.number(valid.count)
            return f"{scope.vectors.load_first(register)}(&{scope.element(read.tensor, first)}, {count})"
        if access.kind == "group" and valid.count is None:
            function = scope.vectors.repeat(register, access.size)
            return f"{function}(&{scope.element(read.tensor, first)})" if function else None
        return None

    def _load_between(
        self, read: Read, stmt: Assign, register: Register, least: Int, count: Int | None
    ) -> str | None:
        """Elements from lane `least` to `count`: those before may lie before the tensor."""
        scope, lane = self.scope, stmt.lane
        assert lane is not None
        if not is_plain(read.index) or read.tensor in scope.registers:
            return None
        if classify(read.index, scope.kernel.buffers[read.tensor].shape, lane).kind != "contiguous":
            return None
        offset = scope.flat(read.tensor, at_lane(read.index, lane.var))
        bounds = f"{scope.index.number(least)}, {lane.width if count is None else scope.index.number(count)}"
        return f"{scope.vectors.load_between(register)}({scope.names(read.tensor)}, {offset}, {bounds})"

    def _lanes_to_register(self, stmt: Assign, register: Register, target: str, whole: bool) -> Iterator[str]:
        """Compute the lanes in an array of the element type, then move that into the register.

        By value, through `load` and `store`: a register whose address is taken would live in memory everywhere.
        """
        scope = self.scope
        group = self._group(stmt, register) if whole else None
        yield "{"
        yield f"  {storage_type(register.dtype)} lanes[{group or register.elements}]{' = {0}' if whole else ''};"
        if not whole:
            yield f"  {self._moved_out(register, target)}"
        for line in self._copies(stmt.value):
            yield f"  {line}"
        where = f"lanes[{scope.index.number(stmt.index[-1])}]"
        value = scope.values.stored(stmt.value)
        if not whole and stmt.valid != TRUE:
            stores = [f"{where} = {self.scope.index.choice(stmt.valid)} ? {value} : 0;"]
        else:
            stores = list(self._guarded(stmt.valid, [f"{where} = {value};"]))
        yield from (f"  {line}" for line in self._over_lanes(stmt, Const(group) if group else None, stores))
        scope.lanes.clear()
        if register.style != "vector":
            yield f"  memcpy(&{target}, lanes, sizeof lanes);"
        else:
            move = scope.vectors.repeat(register, group) if group else scope.vectors.load(register)
            yield f"  {target} = {register.cast_from_vector(f'{move}(lanes)')};"
        yield "}"

    def _moved_out(self, register: Register, target: str) -> str:
        if register.style != "vector":
            return f"memcpy(lanes, &{target}, sizeof lanes);"
        return f"{self.scope.vectors.store(register)}(lanes, {register.cast_to_vector(target)});"

    def _group(self, stmt: Assign, register: Register) -> int | None:
        """The size of the group of lanes that value and validity repeat over the register; None where they do not."""
        if register.style != "vector" or stmt.lane is None or not isinstance(stmt.value, Read):
            return None
        read = stmt.value
        if read.tensor in self.scope.registers or not is_plain(read.index):
            return None
        access = classify(read.index, self.scope.kernel.buffers[read.tensor].shape, stmt.lane)
        if access.kind != "group" or not repeats(stmt.valid, stmt.lane.var, access.size):
            return None
        return access.size if self.scope.vectors.repeat(register, access.size) else None

    # Memory

    def _store(self, stmt: Assign, valid: Valid) -> str | None:
        """One call that stores a whole register; None where the assignment is not that."""
        scope, read = self.scope, stmt.value
        assert stmt.lane is not None
        if valid.rest != TRUE:
            return None
        if not isinstance(read, Read) or read.tensor not in scope.registers:
            return self._store_value(stmt, valid)
        register = scope.registers[read.tensor]
        buffer = scope.kernel.buffers[stmt.buffer]
        if register.style != "vector" or register.elements != stmt.lane.width or read.index[-1] != Var(stmt.lane.var):
            return None
        if classify(stmt.index, buffer.shape, stmt.lane).kind != "contiguous":
            return None
        value = register.cast_to_vector(scope.register(read.tensor, plain(read.tensor, read.index[:-1])))
        return self._stored(stmt, stmt.lane, register, value, valid)

    def _store_value(self, stmt: Assign, valid: Valid) -> str | None:
        """One call that stores a vector expression; None where the value is none, or where lanes are not contiguous."""
        scope = self.scope
        assert stmt.lane is not None
        if classify(stmt.index, scope.kernel.buffers[stmt.buffer].shape, stmt.lane).kind != "contiguous":
            return None
        values = vector_values(scope, stmt.lane)
        try:
            with scope.attempt():
                text, register = values.stored(stmt.value, valid.count), values.helpers.register(stmt.value.dtype)
        except NotVector:
            return None
        return self._stored(stmt, stmt.lane, register, text, valid)

    def _stored(self, stmt: Assign, lane: Lane, register: Register, text: str, valid: Valid) -> str:
        scope = self.scope
        first = scope.element(stmt.buffer, at_lane(stmt.index, lane.var))
        if valid.count is None:
            if stmt.stream and self.past is not None:
                self.past.append((register, f"&{first}", text))
                return ""
            store = scope.vectors.stream if stmt.stream else scope.vectors.store
            return f"{store(register)}(&{first}, {text});"
        return f"{scope.vectors.store_first(register)}(&{first}, {scope.index.number(valid.count)}, {text});"

    def _lane_loop(self, stmt: Assign, valid: Valid) -> Iterator[str]:
        scope = self.scope
        assert stmt.lane is not None
        copies = self._copies(stmt.value)
        stored = scope.values.stored(stmt.value)
        lines = list[str]()
        if _reads_other_elements(stmt):
            # All lanes are read before any is written.
            lane = scope.names.local(stmt.lane.var)
            lines.append(f"{storage_type(stmt.value.dtype)} lanes[{stmt.lane.width}];")
            compute = list(self._guarded(valid.rest, [f"lanes[{lane}] = {stored};"]))
            lines += self._over_lanes(stmt, valid.count, compute)
            stored = f"lanes[{lane}]"
        store = f"{scope.element(stmt.buffer, stmt.index)} = {stored};"
        lines += self._over_lanes(stmt, valid.count, list(self._guarded(valid.rest, [store])))
        lines = copies + lines
        scope.lanes.clear()
        if valid.guard != TRUE:
            yield f"if ({scope.index.condition(valid.guard)}) {{"
        elif len(lines) > 1 and (copies or "lanes[" in lines[0]):
            yield "{"
        else:
            yield from lines
            return
        yield from (f"  {line}" for line in lines)
        yield "}"

    def _over_lanes(self, stmt: Assign, count: Int | None, body: list[str]) -> Iterator[str]:
        if stmt.lane is None:
            yield from body
            return
        scope, lane, width = self.scope, stmt.lane.var, stmt.lane.width
        upper = scope.index.number(Const(width) if count is None else minimum(count, width), 5)
        head = loop_head(INDEX_TYPE, scope.names.local(lane), upper)
        if len(body) == 1 and len(head) + len(body[0]) >= 110:
            yield head
            yield f"  {body[0]}"
        else:
            yield from under(head, body, "  ", 110)

    def _copies(self, value: Value) -> list[str]:
        """Vector copies of the registers that `value` reads by element: indexing the register itself with a variable
        would force the compiler to keep it, and its whole array, in memory."""
        scope = self.scope
        lines = []
        for node in walk(value):
            if not isinstance(node, Read) or node.tensor not in scope.registers:
                continue
            register, key = scope.registers[node.tensor], (node.tensor, plain(node.tensor, node.index[:-1]))
            if register.style != "vector" or key in scope.lanes:
                continue
            number = sum(1 for buffer, _ in scope.lanes if buffer == node.tensor)
            name = scope.names.local(f"{node.tensor}_lanes{number or ''}")
            scope.lanes[key] = name
            source = register.cast_to_vector(scope.register(*key))
            lines.append(f"const {scope.vectors.vector(register)} {name} = {source};")
        return lines


def streamed(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """The statements of a body; neighbouring stores past the caches, none of which reads what another stores, as
    one."""
    group: list[Assign] = []
    for stmt in body:
        if not isinstance(stmt, Assign) or not stmt.stream or stmt.valid != TRUE or not _apart([*group, stmt]):
            if group:
                yield tuple(group)
            group = []
        if isinstance(stmt, Assign) and stmt.stream and stmt.valid == TRUE and _apart([stmt]):
            group.append(stmt)
        else:
            yield (stmt,)
    if group:
        yield tuple(group)


def _apart(group: list[Assign]) -> bool:
    stored = {stmt.buffer for stmt in group}
    read = {node.tensor for stmt in group for node in walk(stmt.value) if isinstance(node, Read)}
    return not stored & read


def _reads_other_elements(stmt: Assign) -> bool:
    """Whether a lane may read what another lane of the same assignment writes."""
    return any(
        isinstance(node, Read) and node.tensor == stmt.buffer and node.index != stmt.index for node in walk(stmt.value)
    )


def _at_lane_zero(stmt: Assign) -> Assign:
    assert stmt.lane is not None
    zero = {stmt.lane.var: 0}
    value = map_value(stmt.value, on_int=lambda e: substitute_int(e, zero), on_bool=lambda e: substitute_bool(e, zero))
    return replace(
        stmt,
        lane=None,
        value=value,
        valid=substitute_bool(stmt.valid, zero),
        index=at_lane(stmt.index, stmt.lane.var),
    )
