"""The C type of each register buffer, and the helpers that load, splat and store such registers.

A register is a vector of its own elements (`s32x16`), cast to the type that the YAML names (`__m512i`) where an
intrinsic is called. Scalars and arrays are used where no vector has the size.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen import workarounds
from autosched.codegen.c_like.ctypes import storage_type, vector_name, vector_typedef
from autosched.codegen.tree.kernel import Buffer, IntrinsicCall, Kernel
from autosched.errors import SpecError
from autosched.ir.dtypes import DTYPES, DType

_SAME_AS_VECTOR = {("__m512", "f32"), ("__m256", "f32"), ("__m128", "f32")} | {
    ("__m512d", "f64"), ("__m256d", "f64"), ("__m128d", "f64")
}  # fmt: skip
"""Register types that are vectors of the element already, so that no cast is needed."""


@dataclass(frozen=True, slots=True)
class Register:
    """`style` is `vector` (a machine or GCC vector; `type` names it), `scalar` (one element) or `array`."""

    style: str
    type: str
    dtype: DType
    elements: int

    @property
    def vector(self) -> str:
        """The vector type as which the register is read and written."""
        return vector_name(self.dtype, self.elements)

    def cast_to_vector(self, text: str) -> str:
        return text if self._same else f"({self.vector}){text}"

    def cast_from_vector(self, text: str) -> str:
        return text if self._same else f"({self.type}){text}"

    @property
    def _same(self) -> bool:
        return self.type == self.vector or (self.type, self.dtype.name) in _SAME_AS_VECTOR


def registers_of(kernel: Kernel) -> dict[str, Register]:
    """The C form of every register buffer. SpecError where an intrinsic names no C type for an operand."""
    types: dict[str, str] = {}
    issued = kernel.statements
    for call in (stmt for stmt in issued if isinstance(stmt, IntrinsicCall)):
        for name, ref in call.operands.items():
            if call.intrinsic.matrices is not None:
                continue
            operand = call.intrinsic.operands[name]
            if "c" not in operand.registers:
                raise SpecError(
                    f"{call.intrinsic.name} cannot be exported as C: operand {name} has no register type for c",
                    hint=f"add `register: {{c: …}}` to {name} and `c:` to `emit`, or choose another intrinsic",
                )
            if operand.written and is_mask(operand.registers["c"]):
                raise SpecError(f"{call.intrinsic.name} cannot be exported as C: it writes a mask, {name}")
            types.setdefault(ref.buffer, operand.registers["c"])
    return {b.name: _register(b, types.get(b.name)) for b in kernel.buffers.values() if b.scope == "register"}


def is_mask(machine: str) -> bool:
    """Whether a C type is a mask of x86: a bit for each lane. Registers hold it as a vector of bytes."""
    return machine.startswith("__mmask")


def _register(buffer: Buffer, machine: str | None) -> Register:
    dtype, elements = buffer.dtype, buffer.shape[-1]
    size = dtype.bytes * elements
    is_vector = machine is not None and ("vector_size" in machine or machine.startswith("__m"))
    if machine is not None and dtype.sub_byte and not is_mask(machine):
        raise SpecError(f"registers of {dtype} cannot be exported as C: their elements are packed")
    if elements == 1 and not is_vector:
        return Register("scalar", machine or storage_type(dtype), dtype, 1)
    if machine is not None:
        return Register("vector", _declared(machine, dtype, elements), dtype, elements)
    if size & (size - 1) or size > 64:
        return Register("array", storage_type(dtype), dtype, elements)
    return Register("vector", vector_name(dtype, elements), dtype, elements)


@workarounds.ONE_ELEMENT_TYPE
def _declared(machine: str, dtype: DType, elements: int) -> str:
    """The type of a register that instructions take as `machine`."""
    return machine if (machine, dtype.name) in _SAME_AS_VECTOR else vector_name(dtype, elements)


@dataclass(frozen=True, slots=True)
class _Masked:
    """x86's loads and stores of some elements of a vector of `bits`, where the compiler has `feature`."""

    feature: str
    bits: int
    element: int

    @property
    def _stem(self) -> str:
        return f"_mm{self.bits if self.bits > 128 else ''}"

    @property
    def type(self) -> str:
        return f"__m{self.bits}i"

    @property
    def load(self) -> str:
        return f"{self._stem}_maskz_loadu_epi{self.element}"

    @property
    def store(self) -> str:
        return f"{self._stem}_mask_storeu_epi{self.element}"

    def negative(self, vector: str) -> str:
        """The mask of a vector's negative elements."""
        zero = f"{self._stem}_setzero_si{self.bits}()"
        return f"{self._stem}_cmplt_epi{self.element}_mask(({self.type}){vector}, {zero})"

    def mask(self, count: str) -> str:
        lanes = self.bits // self.element
        ones = (
            f"(((uint64_t)1 << ({count})) - 1)" if lanes < 64 else f"(({count}) ? ~(uint64_t)0 >> (64 - ({count})) : 0)"
        )
        return f"(__mmask{max(8, lanes)}){ones}"


_MASKED = {
    (element // 8, bits // 8): _Masked(
        ("__AVX512VL__" if bits < 512 else "__AVX512F__") if element >= 32 else
        ("__AVX512VL__) && defined(__AVX512BW__" if bits < 512 else "__AVX512BW__"), bits, element
    )
    for bits in (128, 256, 512) for element in (8, 16, 32, 64)
}  # fmt: skip
"""By the bytes of an element and of the vector. Source: Intel Intrinsics Guide."""


_ELEMENTS = {"f32": ("ps", "float"), "f64": ("pd", "double"), "s32": ("epi32", "int"), "u32": ("epi32", "int")}
"""Dtypes of AVX2's masked loads and stores: the suffix of the function, and the type of its pointer."""


@workarounds.MASKED_ENDS
def _masked_avx2(r: Register, least: bool = False) -> tuple[str, str] | None:
    """The bodies of a load and a store of `count` elements at p (`least`: from that element on) by AVX2; None where
    AVX2 has none."""
    bits = 8 * r.dtype.bytes * r.elements
    if r.dtype.name not in _ELEMENTS or bits not in (128, 256):
        return None
    ending, pointed = _ELEMENTS[r.dtype.name]
    stem, whole, element = f"_mm{256 if bits == 256 else ''}", f"__m{bits}i", 8 * r.dtype.bytes
    wide = f"{element}x" if element == 64 else str(element)
    lanes = ", ".join(str(e) for e in reversed(range(r.elements)))
    places = f"{stem}_set_epi{wide}({lanes})"
    ones = f"{stem}_cmpgt_epi{element}({stem}_set1_epi{wide}(n), {places})"
    value = f"({whole})x" if ending == "epi32" else "x"
    load = f"return ({r.vector}){stem}_maskload_{ending}((const {pointed} *)p, chosen);"
    store = f"{stem}_maskstore_{ending}(({pointed} *)p, chosen, {value});"
    chosen = f"  const int n = (int)({_clamped(r.elements)});\n"
    if least:
        chosen += f"  const int m = (int)({_clamped(r.elements, 'least')});\n"
        ones = f"{stem}_andnot_si{bits}({stem}_cmpgt_epi{element}({stem}_set1_epi{wide}(m), {places}), {ones})"
    chosen += f"  const {whole} chosen = {ones};\n"
    return f"{chosen}  {load}\n", f"{chosen}  {store}\n"


_STREAMED = {
    16: ("__SSE2__", "_mm_stream_si128", "__m128i"),
    32: ("__AVX__", "_mm256_stream_si256", "__m256i"),
    64: ("__AVX512F__", "_mm512_stream_si512", "__m512i"),
}
"""x86's stores past the caches by the bytes of a vector: the feature, the function, its type. Source: Intel Intrinsics
Guide."""


def _clamped(elements: int, count: str = "count") -> str:
    return f"{count} < 0 ? 0 : {count} > {elements} ? {elements} : {count}"


def _choice(ways: list[tuple[str, str]], plain: str) -> str:
    """The first text whose feature the compiler has, else the plain one."""
    if not ways:
        return plain
    texts = [f"{'#elif' if at else '#if'} defined({feature})\n{text}" for at, (feature, text) in enumerate(ways)]
    return "".join([*texts, "#else\n", plain, "#endif\n"])


class VectorHelpers:
    """Collects the vector typedefs and the load, splat, repeat and store functions that a kernel uses."""

    def __init__(self) -> None:
        self.typedefs: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.helpers: set[str] = set()  # functions on one element that these call
        self.tables: dict[tuple[str, ...], int] = {}  # the number of each lookup table
        self.picks: dict[tuple[object, ...], int] = {}  # the number of each selection of elements
        self.operands: dict[str, str] = {}

    def declared(self, register: Register) -> str:
        """The type of the register in declarations, defined."""
        return self.vector(register) if register.type == register.vector else register.type

    def operand(self, register: Register, wanted: str) -> str:
        """The name of an intrinsic's type `wanted`; one spelled with an attribute is defined, under a name."""
        if "__attribute__" not in wanted:
            return wanted
        if wanted not in self.operands:
            number = sum(name.startswith(f"{register.vector}_operand") for name in self.operands.values())
            name = self.operands[wanted] = f"{register.vector}_operand{number or ''}"
            self.typedefs[name] = f"typedef {wanted} {name};"
        return self.operands[wanted]

    def vector(self, register: Register) -> str:
        """The name of the register's vector of elements, defined."""
        self.typedefs[register.vector] = vector_typedef(register.dtype, register.elements)
        return register.vector

    def mask(self, r: Register, wanted: str) -> str:
        """The function that makes a mask of x86 of a vector of bytes."""
        v, name, bits = self.vector(r), f"mask_{r.vector}", 8 * r.elements
        stem, n = f"_mm{bits if bits > 128 else ''}", r.elements
        feature = "__AVX512BW__) && defined(__AVX512VL__" if bits < 512 else "__AVX512BW__"
        at_once = f"  return {stem}_test_epi8_mask((__m{bits}i)x, (__m{bits}i)x);\n"
        plain = f"""\
  {wanted} bits = 0;
  for (int e = 0; e < {n}; ++e) bits |= ({wanted})(({wanted})(x[e] != 0) << e);
  return bits;
"""
        self.functions[name] = f"""\
/* A bit for each element that is not zero. */
VECTOR_INLINE {wanted} {name}({v} x) {{
{_choice([(feature, at_once)] if bits >= 128 else [], plain)}}}"""
        return name

    def load(self, r: Register) -> str:
        v, t, name = self.vector(r), storage_type(r.dtype), f"load_{r.vector}"
        self.functions[name] = f"""\
VECTOR_INLINE {v} {name}(const {t} *p) {{
  {v} x;
  memcpy(&x, p, sizeof x);
  return x;
}}"""
        return name

    def load_first(self, r: Register) -> str:
        v, t, name = self.vector(r), storage_type(r.dtype), f"load_first_{r.vector}"
        n, size = _clamped(r.elements), r.dtype.bytes
        masked = _MASKED.get((size, size * r.elements))
        ways = [(masked.feature, f"  return ({v}){masked.load}({masked.mask(n)}, p);\n")] if masked else []
        if avx2 := _masked_avx2(r):
            ways.append(("__AVX2__", avx2[0]))
        plain = f"  {v} x = {{0}};\n  memcpy(&x, p, (size_t)({n}) * sizeof *p);\n  return x;\n"
        self.functions[name] = f"""\
/* The first `count` elements (none where it is negative), then zeros. */
VECTOR_INLINE {v} {name}(const {t} *p, ptrdiff_t count) {{
{_choice(ways, plain)}}}"""
        return name

    def load_between(self, r: Register) -> str:
        v, t, name = self.vector(r), storage_type(r.dtype), f"load_between_{r.vector}"
        n, m, size = _clamped(r.elements), _clamped(r.elements, "least"), r.dtype.bytes
        masked = _MASKED.get((size, size * r.elements))
        ways = []
        if masked:
            load = f"{masked.load}({masked.mask(n)} & ~{masked.mask(m)}, p)"
            ways.append((masked.feature, f"  return ({v}){load};\n"))
        if avx2 := _masked_avx2(r, least=True):
            ways.append(("__AVX2__", avx2[0]))
        plain = f"""\
  {v} x = {{0}};
  {t} lanes[{r.elements}] = {{0}};
  for (ptrdiff_t e = {m}; e < ({n}); ++e) lanes[e] = p[e];
  memcpy(&x, lanes, sizeof x);
  return x;
"""
        self.functions[name] = f"""\
/* Elements `least` to `count - 1` of those from `offset` on, which may lie before the array; zeros around them. */
VECTOR_INLINE {v} {name}(const {t} *array, ptrdiff_t offset, ptrdiff_t least, ptrdiff_t count) {{
  const {t} *p = (const {t} *)((uintptr_t)array + (uintptr_t)offset * sizeof *array);
{_choice(ways, plain)}}}"""
        return name

    def load_where(self, r: Register) -> str:
        v, t, name, size = self.vector(r), storage_type(r.dtype), f"load_where_{r.vector}", r.dtype.bytes
        m = self.vector(Register("vector", f"s{8 * size}x{r.elements}", DTYPES[f"s{8 * size}"], r.elements))
        masked = _MASKED.get((size, size * r.elements))
        ways = [(masked.feature, f"  return ({v}){masked.load}({masked.negative('mask')}, p);\n")] if masked else []
        if whole := _ELEMENTS.get({4: "s32", 8: "f64"}.get(size, "")) if 16 <= size * r.elements <= 32 else None:
            stem, bits = f"_mm{256 if size * r.elements == 32 else ''}", 8 * size * r.elements
            load = f"{stem}_maskload_{whole[0]}((const {whole[1]} *)p, (__m{bits}i)mask)"
            ways.append(("__AVX2__", f"  return ({v}){load};\n"))
        plain = f"""\
  {v} x = {{0}};
  {t} lanes[{r.elements}] = {{0}};
  for (int e = 0; e < {r.elements}; ++e) if (mask[e]) lanes[e] = p[e];
  memcpy(&x, lanes, sizeof x);
  return x;
"""
        self.functions[name] = f"""\
/* Of the elements from `offset` on those of the mask, which lie in the array, and zeros. */
VECTOR_INLINE {v} {name}(const {t} *array, ptrdiff_t offset, {m} mask) {{
  const {t} *p = (const {t} *)((uintptr_t)array + (uintptr_t)offset * sizeof *array);
{_choice(ways, plain)}}}"""
        return name

    def splat(self, r: Register) -> str:
        v, t, name = self.vector(r), storage_type(r.dtype), f"splat_{r.vector}"
        # A scalar minus a vector of zeros: the compilers' splat, right for -0.0 too.
        self.functions[name] = f"VECTOR_INLINE {v} {name}({t} x) {{ return x - ({v}){{0}}; }}"
        return name

    def repeat(self, r: Register, group: int) -> str | None:
        """The function that repeats `group` elements over the register; None where no integer has their size."""
        size = group * r.dtype.bytes
        if size not in (2, 4, 8):
            return None
        count = r.elements // group
        wide = f"u{8 * size}x{count}"
        self.typedefs[wide] = f"typedef uint{8 * size}_t {wide} __attribute__((vector_size({size * count})));"
        v, t, name = self.vector(r), storage_type(r.dtype), f"repeat_{group}_{r.vector}"
        self.functions[name] = f"""\
/* p[0] to p[{group - 1}] in every group of {group} elements. */
VECTOR_INLINE {v} {name}(const {t} *p) {{
  uint{8 * size}_t group;
  memcpy(&group, p, sizeof group);
  return ({v})(group - ({wide}){{0}});
}}"""
        return name

    def pick(self, r: Register, offsets: tuple[int, ...], limit: int) -> str | None:
        """The function that loads elements at these distances, from the nearest one on, by one or two loads of at most
        `limit` bytes that cover them; None where that takes more, or lanes are too few to be worth it."""
        least, t = min(offsets), storage_type(r.dtype)
        span = max(offsets) - least + 1
        piece = 1 << (span.bit_length() - 1)
        count = 1 if piece == span else 2
        if piece == 1 or 4 * count > r.elements or piece * r.dtype.bytes > limit:
            return None
        part = Register("vector", vector_name(r.dtype, piece), r.dtype, piece)
        v, load, first = self.vector(r), self.load(part), span - piece
        # Where the loads overlap, the first has the element.
        lanes = [o if o < piece else o - first + piece for o in (o - least for o in offsets)]
        number = self.picks.setdefault((r.vector, *(o - least for o in offsets)), len(self.picks) + 1)
        name = f"pick{number}_{r.vector}"
        others, sources = (f", b = {load}(p + {first})", "a, b") if count == 2 else ("", "a, a")
        lines = [f"const {part.vector} a = {load}(p){others};"]
        if count == 2 and 2 * piece * r.dtype.bytes <= 16:  # what shuffles take
            both = Register("vector", vector_name(r.dtype, 2 * piece), r.dtype, 2 * piece)
            joined = ", ".join(str(e) for e in range(2 * piece))
            lines.append(f"const {self.vector(both)} all = __builtin_shufflevector(a, b, {joined});")
            sources = "all, all"
        lines.append(f"return __builtin_shufflevector({sources}, {', '.join(map(str, lanes))});")
        body = "\n".join(f"  {line}" for line in lines)
        self.functions[name] = f"""\
/* Some of p[0] to p[{span - 1}], some more than once. */
VECTOR_INLINE {v} {name}(const {t} *p) {{
{body}
}}"""
        return name

    def store(self, r: Register) -> str:
        v, t, name = self.vector(r), storage_type(r.dtype), f"store_{r.vector}"
        self.functions[name] = f"VECTOR_INLINE void {name}({t} *p, {v} x) {{ memcpy(p, &x, sizeof x); }}"
        return name

    def streamed(self, r: Register) -> bool:
        """Whether x86 has a store past the caches for such a vector."""
        return r.dtype.bytes * r.elements in _STREAMED

    def past(self, r: Register) -> str:
        """The function that stores such a vector past the caches, at an aligned place."""
        v, t, name = self.vector(r), storage_type(r.dtype), f"past_{r.vector}"
        feature, stem, wide = _STREAMED[r.dtype.bytes * r.elements]
        self.functions[name] = f"""\
/* Past the caches; the place is aligned. */
VECTOR_INLINE void {name}({t} *p, {v} x) {{
#ifdef {feature}
  {stem}(({wide} *)p, ({wide})x);
#else
  memcpy(p, &x, sizeof x);
#endif
}}"""
        return name

    def stream(self, r: Register) -> str:
        v, t, name = self.vector(r), storage_type(r.dtype), f"stream_{r.vector}"
        if not self.streamed(r):
            return self.store(r)
        past, store = self.past(r), self.store(r)
        self.helpers.add("aligned")
        self.functions[name] = f"""\
VECTOR_INLINE void {name}({t} *p, {v} x) {{
  if (aligned(p, sizeof x)) {past}(p, x);
  else {store}(p, x);
}}"""
        return name

    def store_first(self, r: Register) -> str:
        v, t, name = self.vector(r), storage_type(r.dtype), f"store_first_{r.vector}"
        n, size = _clamped(r.elements), r.dtype.bytes
        masked = _MASKED.get((size, size * r.elements))
        ways = [(masked.feature, f"  {masked.store}(p, {masked.mask(n)}, ({masked.type})x);\n")] if masked else []
        if avx2 := _masked_avx2(r):
            ways.append(("__AVX2__", avx2[1]))
        plain = f"  memcpy(p, &x, (size_t)({n}) * sizeof *p);\n"
        self.functions[name] = f"""\
/* The first `count` elements (none where it is negative). */
VECTOR_INLINE void {name}({t} *p, ptrdiff_t count, {v} x) {{
{_choice(ways, plain)}}}"""
        return name
