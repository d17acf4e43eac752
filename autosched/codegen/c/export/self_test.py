"""`self_test`: a small C program that calls an exported kernel and compares some of its results with the oracle's.

The C program draws inputs from a table of values by a linear congruential generator; this file draws them by the same.
There are several data sets, each with tables and scalars of its own (`ir.oracle.sets.ends`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.codegen.c.export.compared_elements import ComparedElements
from autosched.codegen.c_like.ctypes import literal, storage_type, stored_as_bits
from autosched.codegen.c_like.helpers import ordered
from autosched.codegen.c_like.names import Names, libc
from autosched.codegen.c_like.source import WORKSPACE, CSource
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import UsageError
from autosched.escape import c_string
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.oracle.sets.domains import DECIDED, decided, drawn_inputs
from autosched.ir.oracle.sets.ends import end_inputs
from autosched.ir.oracle.sets.strength import no_less, shares_of_numbers, strongest
from autosched.ir.oracle.slack import NO_SLACK, Slack, joined
from autosched.ir.program import Program

VALUES = 61
"""Values in the table of an input: a prime, so that no row of a matrix repeats another."""
CHECKED = 64
"""Elements of an output that are compared, spread evenly over it."""
OWN = frozenset(
    {"places", "set", "state", "draw", "memory", "wrong", "check", "i", "work", "status", "got", "want", "p", "bytes"}
)
"""Names that the program uses itself."""
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
"""D. E. Knuth's generator modulo 2^64 (MMIX); its upper half is used."""


def self_test(
    kernel: Kernel, code: CSource, program: Program, reassociated: bool = True, slack: Slack = NO_SLACK
) -> str:
    """The text of `NAME_test.c`. `program` is what the kernel computes; tolerances are tuning's, for `reassociated`
    sums or for the program's own order, and of the plan's `slack` (`device.correctness.oracle`).

    UsageError where an input has known values, which the kernel does not hold, and for a function with a name that the
    test uses.
    """
    taken = [name for name, _ in code.calls if name in OWN]
    if taken:
        said = f"no self-test of {taken[0]}: the test's own code uses that name"
        raise UsageError(said, hint="give the file another name")
    for name, known in program.data.items():
        if known.values is not None:
            said = f"no self-test: the kernel is for given values of {name}, which it does not hold"
            raise UsageError(said, hint="export without --self-test")
    fused = {s.name for s in program.stages} if reassociated else set()
    slack = joined((slack, *(Slack(i.numerics.slack(i.accumulator.dtype.mantissa)) for i in kernel.intrinsics)))

    compared, picks = ComparedElements(program), _picks(program)

    def run(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        tables, scalars = split_inputs(program, dict(given))
        return compared.run(_drawn(program, tables, picks), scalars, fused, slack)

    def shares(found: tuple[dict[str, Any], dict[str, Any]]) -> tuple[float, ...]:
        return shares_of_numbers((want, found[1][name]) for name, want in found[0].items())

    def counts(made: tuple[dict[str, Any], dict[str, Any]]) -> bool:
        return no_less(shares(made), usually)

    def tells(made: tuple[dict[str, Any], dict[str, Any]]) -> bool:
        return min(shares(made), default=1.0) > 0

    decided(program, lambda domain: run(_tables(program, domain)), lambda made: min(shares(made), default=1.0))
    usual = _tables(program, DECIDED)
    first = run(usual)
    usually = shares(first)
    found = [("", usual, first)]
    for data in end_inputs(program, usual):
        best = strongest(data, lambda arrays: run(usual | arrays), counts if data.plain else tells)
        if best.made is not None:
            found.append((f"where {data.said}: ", usual | best.arrays, best.made))
    checks: dict[str, list[Check]] = {}
    for number, (_, _, (wants, bounds)) in enumerate(found):
        for name, want in wants.items():
            own = _checked(number, want, np.broadcast_to(bounds[name], want.shape), compared.places(name))
            checks.setdefault(name, []).extend(own)
    places, sets = [place for place, _, _ in found], [given for _, given, _ in found]
    checks = {n: found for n, found in checks.items() if found}
    stacked = {n: np.stack([one[n] for one in (sets if _differ(sets, n) else sets[:1])]) for n in usual}
    tables, scalars = split_inputs(program, stacked)
    return "\n".join(_Test(kernel, code, program, places, tables, scalars, checks).lines())


def _tables(program: Program, domain: str | None) -> dict[str, Any]:
    """A table of each input, and the scalars."""
    drawn = drawn_inputs(program, np.random.default_rng(0), domain=domain)
    return {n: np.resize(v.reshape(-1), VALUES) if n in program.tensors else v for n, v in drawn.items()}


def _differ(sets: list[dict[str, Any]], name: str) -> bool:
    """Whether some data set has another table than the first."""
    return any(one[name] is not sets[0][name] for one in sets)


def _states(count: int) -> npt.NDArray[np.uint64]:
    """The generator's first states after 1, by doubling: its step by n follows from that by n/2."""
    states = np.array([MULTIPLIER + INCREMENT & (2**64 - 1)], np.uint64)
    factor, addend = MULTIPLIER, INCREMENT
    while len(states) < count:
        ahead = states * np.uint64(factor) + np.uint64(addend)
        states = np.concatenate([states, ahead])
        factor, addend = factor * factor % 2**64, (factor * addend + addend) % 2**64
    return states[:count]


def _picks(program: Program) -> dict[str, npt.NDArray[np.int64]]:
    """Which value of its table each element of an input has, as the C program draws them: one input after the other, in
    the program's order."""
    shapes = {n: program.tensors[n].extents for n in program.parameters if n in program.inputs}
    sizes = {name: int(np.prod(shape, dtype=np.int64)) for name, shape in shapes.items()}
    picks = ((_states(sum(sizes.values())) >> np.uint64(33)) % np.uint64(VALUES)).astype(np.int64)
    ends = np.cumsum(list(sizes.values()), dtype=np.int64)
    return {n: picks[end - sizes[n] : end].reshape(shapes[n]) for n, end in zip(sizes, ends, strict=True)}


def _drawn(program: Program, tables: Mapping[str, Any], picks: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as the C program fills them."""
    return {n: tables[n][picks[n]] for n in program.parameters if n in tables}


Check: TypeAlias = tuple[int, int, int | float, float]
"""The data set, an element of an output, its value and its tolerance."""


def _checked(data_set: int, want: Any, tolerance: Any, known: npt.NDArray[np.int64] | None) -> list[Check]:
    """The checks of an output: elements spread evenly (or the `known` ones, of which `want` is), without those that may
    be anything."""
    places = np.unique(np.linspace(0, want.size - 1, CHECKED).astype(np.int64))
    whole = np.issubdtype(want.dtype, np.integer)
    values, near = want.reshape(-1), tolerance.reshape(-1)
    numbers = np.arange(want.size) if known is None else known
    found = [(data_set, int(numbers[p]), (int if whole else float)(values[p]), float(near[p])) for p in places]
    special = [(*check[:3], 0.0) for check in found if not np.isfinite(check[2])]
    return [check for check in found if np.isfinite(check[2:]).all()] + special


@dataclass(frozen=True)
class _Kind:
    """How C stores, writes and prints values of an output."""

    name: str
    type: str
    literal: Callable[[Any], str]
    printed: str

    @staticmethod
    def of(dtype: DType) -> _Kind:
        if not dtype.is_integer:
            return _Kind("want", "double", lambda v: literal(v, DTYPES["f64"]), '"%.9g"')
        if dtype.name == "u64":
            return _Kind("want_unsigned", "uint64_t", lambda v: f"UINT64_C({v})", '"%" PRIu64')
        return _Kind("want_integer", "int64_t", lambda v: literal(v, DTYPES["s64"]), '"%" PRId64')


class _Test:
    """`places` begin the messages of each data set. `tables` are stacked: a row for all data sets, or one for each."""

    def __init__(
        self, kernel: Kernel, code: CSource, program: Program, places: list[str], tables: Mapping[str, Any],
        scalars: Mapping[str, Any], checks: Mapping[str, list[Check]],
    ) -> None:  # fmt: skip
        self.kernel, self.code, self.program, self.places = kernel, code, program, places
        self.tables, self.scalars, self.checks = tables, scalars, checks
        taken = {name for name, _ in code.calls} | OWN | libc()
        self.names = Names({*taken, "uint64_t", "size_t"})
        self.held = list(dict.fromkeys(a for _, arguments in code.calls for a in arguments if a in kernel.buffers))
        # All tensors of the program have memory, and of the kernel's buffers those that a call names.
        self.held += [n for n in (*tables, *checks) if n not in self.held]

    def lines(self) -> Iterator[str]:
        name = self.code.name
        code = self.code
        sources = f"{name}_test.c {name}{code.suffix}"
        yield f"/* Self-test of {name}. Build: {code.compiler} {code.flags} {sources} -lm -o {name}_test */"
        yield from (f'#include "{name}.h"', "")
        yield from (f"#include <{h}.h>" for h in ("inttypes", "math", "stdbool", "stdio", "stdlib", "string"))
        helpers = {f"load_{d.name}" for d in map(self._dtype, self.checks) if stored_as_bits(d)}
        yield from ("", *(text for helper in ordered(helpers).values() for text in (helper, "")))
        yield from (
            "static uint64_t state = 1;",
            "",
            f"static unsigned draw(void) {{  /* 0 to {VALUES - 1} */",
            f"  state = state * UINT64_C({MULTIPLIER}) + UINT64_C({INCREMENT});",
            f"  return (unsigned)((state >> 33) % {VALUES});",
            "}",
            "",
            "static void *memory(size_t bytes) {  /* filled, so that elements left unwritten show */",
            "  void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);",
            '  if (p == NULL) { puts("out of memory"); exit(2); }',
            "  return memset(p, 0xa5, bytes);",
            "}",
            "",
        )
        kinds = {kind.name: kind for kind in (_Kind.of(self._dtype(n)) for n in self.checks)}
        members = "int set; size_t at; {} value; double tolerance;"
        yield from (f"struct {n} {{ {members.format(k.type)} }};" for n, k in kinds.items())
        yield ""
        yield from self._tables()
        if self.checks:
            yield f"static const char *const places[] = {{{', '.join(map(c_string, self.places))}}};"
        yield from ("int main(void) {", "  int wrong = 0;")
        yield from (f"  {line}" for line in self._memory())
        yield f"  for (int set = 0; set < {len(self.places)}; ++set) {{"
        yield from (f"    {line}" for line in self._body())
        yield "  }"
        yield from (f"  free({self.names(n)});" for n in self.held)
        if self.code.workspace_bytes:
            yield "  free(work);"
        yield from ('  puts(wrong ? "FAILED" : "ok");', "  return wrong != 0;", "}", "")

    def _dtype(self, name: str) -> DType:
        if name in self.program.scalars:
            return self.program.scalars[name].dtype
        tensors = self.program.tensors
        return tensors[name].dtype if name in tensors else self.kernel.buffers[name].dtype

    def _elements(self, name: str) -> int:
        if name in self.kernel.buffers:
            return self.kernel.buffers[name].elements
        return int(np.prod(self.program.tensors[name].extents, dtype=np.int64))

    def _tables(self) -> Iterator[str]:
        for name, table in self.tables.items():
            dtype = self._dtype(name)
            yield f"static const {storage_type(dtype)} {self.names(f'{name}.values')}[{len(table)}][{VALUES}] = {{"
            for row in table:
                texts = [_stored(v, dtype) for v in row]
                yield "  {"
                yield from (f"    {', '.join(texts[i : i + 8])}," for i in range(0, VALUES, 8))
                yield "  },"
            yield "};"
        for name, several in self.scalars.items():
            if len(several) > 1:
                dtype, own = self._dtype(name), self.names(f"{name}.values")
                row = ", ".join(_stored(v, dtype) for v in several)
                yield f"static const {storage_type(dtype)} {own}[{len(several)}] = {{{row}}};"
        for name, found in self.checks.items():
            kind = _Kind.of(self._dtype(name))
            yield f"static const struct {kind.name} {self.names(f'{name}.wants')}[{len(found)}] = {{"
            yield from (f"  {{{number}, {at}, {kind.literal(value)}, {near!r}}}," for number, at, value, near in found)
            yield "};"
        yield ""

    def _memory(self) -> Iterator[str]:
        for name in self.held:
            t = storage_type(self._dtype(name))
            yield f"{t} *const {self.names(name)} = ({t} *)memory({self._elements(name)} * sizeof({t}));"
        if self.code.workspace_bytes:
            yield f"void *const work = memory({self.code.workspace_bytes});"

    def _body(self) -> Iterator[str]:
        names = self.names
        yield "state = 1;"
        for name in self.checks:
            yield f"memset({names(name)}, 0xa5, {self._elements(name)} * sizeof(*{names(name)}));"
        for name in (n for n in self.program.parameters if n in self.tables):
            row = "set" if len(self.tables[name]) > 1 else "0"
            fill = f"{names(name)}[i] = {names(f'{name}.values')}[{row}][draw()];"
            yield f"for (size_t i = 0; i < {self._elements(name)}; ++i) {fill}"
        for function, arguments in self.code.calls:
            call = f"{function}({', '.join(self._argument(a) for a in arguments)})"
            if self.code.failure:
                yield f"const int status = (int){call};"
                yield f'if (status) {{ printf("{function}: %s\\n", {self.code.failure}); return 2; }}'
            else:
                yield f"{call};"
        for name, found in self.checks.items():
            dtype, element = self._dtype(name), f"{names(name)}[check->at]"
            got = f"load_{dtype.name}({element})" if stored_as_bits(dtype) else element
            wants = names(f"{name}.wants")
            kind = _Kind.of(dtype)
            yield f"for (const struct {kind.name} *check = {wants}; check < {wants} + {len(found)}; ++check) {{"
            yield "  if (check->set != set) continue;"
            yield f"  const {kind.type} got = ({kind.type}){got};"
            yield "  if (got == check->value) continue;"
            if any(value != value for _, _, value, _ in found):
                yield "  if (isnan(got) && isnan(check->value)) continue;"
            if any(near for *_, near in found):
                yield "  if (fabs((double)got - (double)check->value) <= check->tolerance) continue;"
            printed = f'"%s%s[%zu] is " {kind.printed} ", not " {kind.printed} "\\n", places[set], {c_string(name)}'
            yield f"  printf({printed}, check->at, got, check->value);"
            yield "  wrong = 1;"
            yield "}"

    def _argument(self, name: str) -> str:
        if name == WORKSPACE:
            return "work"
        if name in self.kernel.buffers:
            return self.names(name)
        several = self.scalars[name]
        if len(several) > 1:
            return f"{self.names(f'{name}.values')}[set]"
        return _stored(several[0], self._dtype(name))


def _stored(value: Any, dtype: DType) -> str:
    """A stored element as a C constant."""
    if stored_as_bits(dtype):
        return str(int(np.asarray(value).view(f"u{dtype.bytes}")))
    if dtype.is_float:
        return literal(float(value), dtype)
    return literal(int(value), dtype if dtype.name in ("s64", "u64", "s32", "u32") else DTYPES["s32"])
