"""The `static inline` functions on vectors that vector values call: one of each kind for each vector type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autosched.codegen import workarounds
from autosched.codegen.c.registers import Register, VectorHelpers
from autosched.codegen.c_like.ctypes import compute_type, literal, storage_type
from autosched.codegen.passes.small_floats import table
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Literal, Value

F32, U32, S32, U16 = (DTYPES[name] for name in ("f32", "u32", "s32", "u16"))


_ELEMENTWISE = {"rint": "roundeven", "fabs": "abs"}


@workarounds.HALVED_CONVERSIONS
def _between(source: DType, dtype: DType) -> tuple[DType, ...]:
    """The intermediate types of a conversion, each half or twice as wide as the one before."""
    if source.is_float or (dtype.is_float and source.bits >= 32):
        return ()
    wanted = S32 if dtype.is_float else dtype
    sizes = [b for b in (8, 16, 32, 64) if min(source.bits, wanted.bits) < b < max(source.bits, wanted.bits)]
    kind = (source if source.bits < wanted.bits else wanted).name[0]
    steps = [DTYPES[f"{kind}{b}"] for b in (sizes if source.bits < wanted.bits else reversed(sizes))]
    return (*steps, S32) if dtype.is_float else tuple(steps)


class NotVector(Exception):
    """The value cannot be printed on vectors."""

_WHOLE = {
    4: "_mm_cvtsi32_si128((int)x)",
    8: "_mm_cvtsi64_si128((long long)x)",
    16: "(__m128i)x",
    32: "(__m256i)x",
}
"""The vector `x` of so many bytes as an operand of x86's extensions."""
_EXTENDING = {16: ("__SSE4_1__", ""), 32: ("__AVX2__", "256"), 64: ("__AVX512BW__", "512")}
"""What a machine must have to extend to so many bytes, and how the instruction's name begins."""


@dataclass(frozen=True)
class LaneHelpers:
    """Functions on vectors of `width` elements, none wider than `limit` bytes; `vectors` collects them."""

    vectors: VectorHelpers
    width: int
    limit: int

    def register(self, dtype: DType) -> Register:
        """The vector of `width` elements of a dtype. NotVector where there is none."""
        size = self.width * dtype.bytes
        if self.width < 2 or size & (size - 1) or size > self.limit:
            raise NotVector
        return Register("vector", f"{dtype.name}x{self.width}", dtype, self.width)

    def vector(self, dtype: DType) -> str:
        """The vector's name, defined."""
        return self.vectors.vector(self.register(dtype))

    def splat(self, dtype: DType, text: str) -> str:
        return f"{self.vectors.splat(self.register(dtype))}({text})"

    def signed(self, bits: int) -> str:
        return self.vector(DTYPES[f"s{bits}"])

    def resized(self, mask: str, bits: int, wanted: int) -> str:
        """A mask of elements of `bits` as one of elements of `wanted`."""
        return mask if bits == wanted else self.converted(DTYPES[f"s{bits}"], DTYPES[f"s{wanted}"], mask)

    def converted(self, source: DType, dtype: DType, text: str) -> str:
        """Each element as C converts it."""
        return self._in_steps(source, [*_between(source, dtype), dtype], text)

    def _in_steps(self, source: DType, steps: Sequence[DType], text: str) -> str:
        """Each element as each of `steps` in turn, several of them in one instruction where there is one."""
        if not steps:
            return text
        far = max((k for k, step in enumerate(steps) if self._extends(source, step)), default=None)
        if far is None:
            first = f"__builtin_convertvector({text}, {self.vector(steps[0])})"
            return self._in_steps(steps[0], steps[1:], first)
        return self._in_steps(steps[far], steps[far + 1 :], self._extended(source, steps[: far + 1], text))

    def _extends(self, source: DType, dtype: DType) -> bool:
        """Whether one of x86's instructions makes wider integers of these."""
        known = self.width * source.bytes in _WHOLE and self.width * dtype.bytes in _EXTENDING
        return known and not source.is_float and not dtype.is_float and source.bits < dtype.bits

    @workarounds.OWN_EXTENSION
    def _extended(self, source: DType, steps: Sequence[DType], text: str) -> str:
        """Integers widened by x86's instruction; step by step on a machine without it."""
        dtype = steps[-1]
        whole, (feature, size) = _WHOLE[self.width * source.bytes], _EXTENDING[self.width * dtype.bytes]
        v, w = self.vector(dtype), self.vector(source)
        kinds = f"ep{'u' if source.kind == 'uint' else 'i'}{source.bits}", f"epi{dtype.bits}"
        before = self._in_steps(source, steps[:-1], "x")
        return self._function(
            f"extend_{v}_of_{w}",
            f"{v} extend_{v}_of_{w}({w} x)",
            f"#ifdef {feature}",
            f"return ({v})_mm{size}_cvt{kinds[0]}_{kinds[1]}({whole});",
            "#else",
            f"return __builtin_convertvector({before}, {v});",
            "#endif",
        )(text)

    def first(self, count: str, bits: int) -> str:
        """The mask of the lanes below `count`."""
        v, t = self.signed(bits), compute_type(DTYPES[f"s{bits}"])
        steps = ", ".join(str(e) for e in range(self.width))
        return self._function(
            f"first_{v}",
            f"{v} first_{v}(ptrdiff_t count)",
            f"const {t} n = ({t})(count < 0 ? 0 : count > {self.width} ? {self.width} : count);",
            f"return ({v}){{{steps}}} < n - ({v}){{0}};",
        )(count)

    def compared(self, offsets: Sequence[int], op: str, limit: str, bits: int) -> str:
        """The mask of the lanes whose offset compares so with the limit, an index."""
        low, high = min(offsets) - 1, max(offsets) + 1  # what lies beyond compares as these do
        wide = next((b for b in (8, 16, 32) if b >= bits and -(1 << (b - 1)) <= low and high < 1 << (b - 1)), 64)
        v, t = self.signed(wide), compute_type(DTYPES[f"s{wide}"])
        self.vectors.helpers |= {"min_index", "max_index"}
        places = f"({v}){{{', '.join(map(str, offsets))}}}"
        bound = f"({t})max_index({low}, min_index({high}, {limit}))"
        mask = f"({places} {op} {self.splat(DTYPES[f's{wide}'], bound)})"
        return self.resized(mask, wide, bits)

    def all_or_none(self, condition: str, bits: int) -> str:
        """The mask of a condition that all lanes share."""
        dtype = DTYPES[f"s{bits}"]
        return self.splat(dtype, f"{condition} ? {literal(-1, dtype)} : {literal(0, dtype)}")

    def moved(self, dtype: DType, start: str, steps: Sequence[str]) -> str:
        """Integers in steps from a start; they wrap."""
        v, u = self.vector(dtype), self.vector(DTYPES[f"u{dtype.bits}"])
        places = f"({v}){{{', '.join(steps)}}}"
        return f"({v})(({u}){self.splat(dtype, start)} + ({u}){places})"

    def constant_mask(self, lanes: list[bool], bits: int) -> str:
        return f"({self.signed(bits)}){{{', '.join(str(-int(x)) for x in lanes)}}}"

    @workarounds.MASK_AS_IT_IS
    def select(self, dtype: DType, mask: str, a: str, b: str) -> str:
        """`a` where the mask (of elements as wide) holds, else `b`."""
        v, m = self.vector(dtype), self.signed(8 * dtype.bytes)
        t = storage_type(dtype)
        first = ["#ifdef __clang__"]
        if blend := self._blend(dtype):
            there = f"#if defined __clang__ && defined {blend[0]}"
            first = [there, f"return ({v}){blend[1]};", "#elif defined __clang__"]
        return self._function(
            f"select_{v}",
            f"{v} select_{v}({m} mask, {v} a, {v} b)",
            *first,
            f"return ({v})((mask & ({m})a) | (~mask & ({m})b));",
            f"#else  /* {workarounds.BLEND_BY_LANES.reason} */",
            f"{t} x[{self.width}], y[{self.width}];",
            "memcpy(x, &a, sizeof x);",
            "memcpy(y, &b, sizeof y);",
            f"{workarounds.ROLLED_BLEND.text}  /* {workarounds.ROLLED_BLEND.reason} */",
            f"for (int e = 0; e < {self.width}; ++e) x[e] = mask[e] ? x[e] : y[e];",
            "memcpy(&a, x, sizeof x);",
            "return a;",
            "#endif",
        )(mask, a, b)

    @workarounds.OWN_BLEND
    def _blend(self, dtype: DType) -> tuple[str, str] | None:
        """The macro under which x86 selects from `b` and `a` by `mask` at once, and the call; None for other sizes."""
        size = self.width * dtype.bytes
        kind, cast = {4: ("ps", ""), 8: ("pd", "d")}.get(dtype.bytes, ("epi8", "i"))
        feature = {16: "__SSE4_1__", 32: "__AVX2__" if kind == "epi8" else "__AVX__"}.get(size)
        t = f"__m{8 * size}{cast}"
        call = f"_mm{'256' if size == 32 else ''}_blendv_{kind}(({t})b, ({t})a, ({t})mask)"
        return (feature, call) if feature else None

    def extreme(self, op: str, dtype: DType, a: str, b: str) -> str:
        """`min` or `max`, of floats the one in which NaN wins."""
        v, sign = self.vector(dtype), "<" if op == "min" else ">"
        chosen = self.chosen(sign, dtype, "a", "b")
        if dtype.is_float:
            chosen = self.select(dtype, "a != a", "a", chosen)
        return self._function(f"{op}_{v}", f"{v} {op}_{v}({v} a, {v} b)", f"return {chosen};")(a, b)

    def chosen(self, sign: str, dtype: DType, a: str, b: str) -> str:
        """`a > b ? a : b`, or with `<`: on floats as x86's maxps and minps."""
        v, name = self.vector(dtype), "greater" if sign == ">" else "lesser"
        plain = f"return {self.select(dtype, f'a {sign} b', 'a', 'b')};"
        body = [plain]
        if dtype.is_float and (own := self._on_x86("max" if sign == ">" else "min", dtype, {16: "__SSE2__"})):
            body = [f"#ifdef {own[0]}", f"return {own[1]}(a, b);", "#else", plain, "#endif"]
        return self._function(f"{name}_{v}", f"{v} {name}_{v}({v} a, {v} b)", *body)(a, b)

    def _on_x86(self, operation: str, dtype: DType, features: dict[int, str]) -> tuple[str, str] | None:
        """The macro under which x86 has an instruction for such vectors, and its name; None for other sizes. `features`
        has the macros of sizes that do not go by AVX and AVX-512 alone."""
        size = self.width * dtype.bytes
        feature = ({32: "__AVX__", 64: "__AVX512F__"} | features).get(size)
        width, kind = 8 * size if size > 16 else "", "d" if dtype.bits == 64 else "s"
        separator = "" if operation == "cvt" else "_"
        return (feature, f"_mm{width}_{operation}{separator}p{kind}") if feature else None

    def each(self, function: str, dtype: DType, arguments: list[str]) -> str:
        """Element by element, a function of C's library for which compilers have an instruction."""
        v, names = self.vector(dtype), "abc"[: len(arguments)]
        called = function if dtype.name == "f64" else f"{function}f"
        lanes = [f"{called}({', '.join(f'{n}[{e}]' for n in names)})" for e in range(self.width)]
        rows = [", ".join(lanes[i : i + 4]) for i in range(0, self.width, 4)]
        parameters = ", ".join(f"{v} {n}" for n in names)
        builtin = f"__builtin_elementwise_{_ELEMENTWISE.get(function, function)}"
        own = self._fused(dtype, names) if function == "fma" else []
        return self._function(
            f"{function}_{v}",
            f"{v} {function}_{v}({parameters})",
            f"#if __has_builtin({builtin})",
            f"return {builtin}({', '.join(names)});",
            *own,
            "#else",
            f"return ({v}){{",
            *(f"  {r}," for r in rows),
            "};",
            "#endif",
        )(*arguments)

    @workarounds.OWN_FMA
    def _fused(self, dtype: DType, names: str) -> list[str]:
        """x86's instruction for all elements, where there is one."""
        x86 = self._on_x86("fmadd", dtype, {16: "__FMA__", 32: "__FMA__"})
        return [f"#elif defined {x86[0]}", f"return {x86[1]}({', '.join(names)});"] if x86 else []

    def scalb(self, dtype: DType, x: str, k: str) -> str:
        """x times two to the power floor(k)."""
        v, one = self.vector(dtype), f"scalb_{dtype.name}"
        self.vectors.helpers.add(one)
        lanes = ", ".join(f"{one}(x[{e}], k[{e}])" for e in range(self.width))
        body = [f"return ({v}){{{lanes}}};"]
        if own := self._on_x86("scalef", dtype, {16: "__AVX512VL__", 32: "__AVX512VL__"}):
            body = [f"#ifdef {own[0]}", f"return {own[1]}(x, k);", "#else", *body, "#endif"]
        return self._function(f"scalb_{v}", f"{v} scalb_{v}({v} x, {v} k)", *body)(x, k)

    def lookup(self, dtype: DType, word: DType, place: str, numbers: Sequence[Value]) -> str:
        """The number that the lowest bits of each lane's place choose."""
        v, w, count = self.vector(dtype), self.vector(word), len(numbers)
        texts = [literal(n.value, dtype) for n in numbers if isinstance(n, Literal)]
        rows = [f"  {', '.join(texts[at : at + 4])}," for at in range(0, count, 4)]
        lanes = ", ".join(f"all[place[{e}] & {count - 1}]" for e in range(self.width))
        body = [f"static const {compute_type(dtype)} all[{count}] = {{", *rows, "};"]
        plain = f"return ({v}){{{lanes}}};"
        if self.width * dtype.bytes == 64 and dtype.bits == 32 and count == 32:
            halves = [f"{self.vectors.load(self.register(dtype))}(all + {at})" for at in (0, 16)]
            own = f"return _mm512_permutex2var_ps({halves[0]}, (__m512i)place, {halves[1]});"
            body += ["#ifdef __AVX512F__", own, "#else", plain, "#endif"]
        else:
            body.append(plain)
        number = self.vectors.tables.setdefault(tuple(texts), len(self.vectors.tables) + 1)
        name = f"lookup{number}_{v}"
        return self._function(name, f"{v} {name}({w} place)", *body)(place)

    def clamped(self, source: DType, own: DType, dtype: DType, text: str) -> str:
        """Integers of `source`, which vectors of `own` hold, within the limits of `dtype`."""
        (low, high), (least, greatest) = dtype.limits, source.limits
        for op, bound, needed in (("max", low, low > least), ("min", high, high < greatest)):
            if needed:
                text = self.extreme(op, own, text, self.splat(own, literal(bound, own)))
        return text

    def rounded(self, source: DType, dtype: DType, own: DType, text: str) -> str:
        """Floats to nearest even and clamped to a dtype of at most 16 bits, or s32, as vectors of `own` hold it; NaN
        gives 0."""
        v, x = self.vector(own), self.vector(source)
        low, high = dtype.limits
        exact = dtype.bits < 32 or source.name == "f64"
        top = float(high) if exact else float(2**31 - 2**7)  # the greatest f32 below 2^31
        at_low, at_top = (self.splat(source, literal(n, source)) for n in (float(low), top))
        lines = [
            f"x = {self.select(source, 'x == x', 'x', f'({x}){{0}}')};",
            f"x = {self.chosen('>', source, 'x', at_low)};",
        ]
        result = self._nearest(source, self.chosen("<", source, "x", at_top))
        if not exact:
            beyond = self.splat(source, literal(float(high + 1), source))
            result = self.select(S32, f"x >= {beyond}", self.splat(S32, literal(high, S32)), result)
        lines.append(f"return {result if dtype == S32 else self.converted(S32, own, result)};")
        name = f"satrint_{dtype}_{v}_of_{x}" if dtype != own else f"satrint_{v}_of_{x}"
        return self._function(name, f"{v} {name}({x} x)", *lines)(text)

    def _nearest(self, source: DType, text: str) -> str:
        """Floats within s32 to its nearest, ties to even."""
        v, x = self.vector(S32), self.vector(source)
        plain = f"return __builtin_convertvector({self.each('rint', source, ['x'])}, {v});"
        body = [plain]
        if source == F32 and (own := self._on_x86("cvt", source, {16: "__SSE2__"})):
            body = [f"#ifdef {own[0]}", f"return ({v}){own[1]}_epi32(x);", "#else", plain, "#endif"]
        return self._function(f"nearest_{v}_of_{x}", f"{v} nearest_{v}_of_{x}({x} x)", *body)(text)

    def widened(self, dtype: DType, text: str, plain: list[str]) -> list[str]:
        """The lines of a function from the bits of a small float, `text`, to f32: by an instruction of the machine's,
        else `plain`."""
        if dtype.name == "f16" and (own := self._on_halves()):
            return [f"#ifdef {own[0]}", f"return _mm{own[1]}_cvtph_ps(({own[2]}){text});", "#else", *plain, "#endif"]
        if dtype.bits == 4 and (chosen := self._table(dtype, text)):
            return [f"#ifdef {chosen[0]}", *chosen[1], "#else", *plain, "#endif"]
        return plain

    def narrowed(self, dtype: DType, text: str, plain: list[str]) -> list[str]:
        """The same from f32 to those bits."""
        if dtype.name != "f16" or not (own := self._on_halves()):
            return plain
        call = f"return ({self.vector(dtype)})_mm{own[1]}_cvtps_ph({text}, _MM_FROUND_TO_NEAREST_INT);"
        return [f"#ifdef {own[0]}", call, "#else", *plain, "#endif"]

    def _on_halves(self) -> tuple[str, str, str] | None:
        """The macro under which x86 converts so many f16 at once, how the names of its functions begin, their type."""
        return {8: ("__F16C__", "256", "__m128i"), 16: ("__AVX512F__", "512", "__m256i")}.get(self.width)

    def _table(self, dtype: DType, text: str) -> tuple[str, list[str]] | None:
        """Floats of four bits by a permutation of their values, and the macro under which x86 has one."""
        if self.width not in (8, 16):
            return None
        f, u, numbers = self.vector(F32), self.vector(U32), [literal(x, F32) for x in table(dtype)]
        if self.width == 16:
            held = f"static const {f} all = {{{', '.join(numbers)}}};"
            return "__AVX512F__", [held, f"return _mm512_permutexvar_ps((__m512i){text}, all);"]
        held = f"static const {f} all = {{{', '.join(numbers[:8])}}};"  # the other eight are these, negative
        size = f"const {u} size = ({u})_mm256_permutevar8x32_ps(all, (__m256i){text});"
        return "__AVX2__", [held, size, f"return ({f})(size | ({text} & 8u) << 28);"]

    def bf16_value(self, bits: str) -> str:
        """bf16 as stored, as f32."""
        return f"({self.vector(F32)})({self.converted(U16, U32, bits)} << 16)"

    def bf16_bits(self, text: str) -> str:
        """f32 rounded to bf16 as stored."""
        v, u, f, m = (self.vector(DTYPES[n]) for n in ("bf16", "u32", "f32", "s32"))
        rounded = self.select(U32, f"({m})(x != x)", "bits | 0x400000u", "bits + 0x7fffu + ((bits >> 16) & 1u)")
        return self._function(
            f"bits_{v}",
            f"{v} bits_{v}({f} x)",
            f"const {u} bits = ({u})x;",
            f"return __builtin_convertvector({rounded} >> 16, {v});",
        )(text)

    def _function(self, name: str, head: str, *body: str) -> _Caller:
        if name not in self.vectors.functions:
            text = f"VECTOR_INLINE {head} {{ {body[0]} }}"
            if len(body) > 1 or len(text) > 118:
                text = "\n".join(
                    [f"VECTOR_INLINE {head} {{", *(line if line.startswith("#") else f"  {line}" for line in body), "}"]
                )
            self.vectors.functions[name] = text
        return _Caller(name)


@dataclass(frozen=True)
class _Caller:
    name: str

    def __call__(self, *arguments: str) -> str:
        return f"{self.name}({', '.join(arguments)})"
