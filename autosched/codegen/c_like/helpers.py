"""The `static inline` functions that printed code may call; each is printed only if used, after those it calls.

They carry the language's exact meaning where C's own operators differ: wrapping signed arithmetic, floor division, wide
shifts, saturation, one rounding for small floats. Integer helpers exist for each dtype and are named for it, as
`add_s32`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from autosched.codegen import workarounds
from autosched.codegen.c_like.arithmetic import ODD_INT, ODD_SUM, float_helper, integer_helper
from autosched.codegen.c_like.ctypes import compute_type, storage_type, stored_as_bits
from autosched.ir.dtypes import DTYPES, DType
from autosched.permission import NEEDED, Permission

_INDEX = {
    "min_index": "static inline ptrdiff_t min_index(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }",
    "max_index": "static inline ptrdiff_t max_index(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }",
    "floor_div_index": """\
static inline ptrdiff_t floor_div_index(ptrdiff_t a, ptrdiff_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}""",
    "floor_mod_index": """\
static inline ptrdiff_t floor_mod_index(ptrdiff_t a, ptrdiff_t b) { return a - floor_div_index(a, b) * b; }""",
    "aligned": """\
static inline bool aligned(const void *p, size_t bytes) { return ((uintptr_t)p & (bytes - 1)) == 0; }""",
    "drain_stores": """\
/* What this thread has written past the caches is in memory before anything that it writes after. */
static inline void drain_stores(void) {
#ifdef __x86_64__
  _mm_sfence();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}""",
    "prefetch_address": """\
/* The address may lie outside the array, so it is computed as an integer. */
static inline const void *prefetch_address(const void *base, ptrdiff_t bytes) {
  return (const void *)((uintptr_t)base + (uintptr_t)bytes);
}""",
}

_MACROS = {w.macro: w.explained for w in workarounds.MACROS}

_BITS = {
    "bits_of_float": """\
static inline uint32_t bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}""",
    "float_of_bits": """\
static inline float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}""",
    "narrow_float": """\
/* x rounded to nearest even in a format of `fraction` stored bits and the given bias; codes above `greatest` become
   `overflow`, NaN becomes `nan`. */
static inline uint32_t narrow_float(float x, int fraction, int bias, uint32_t greatest, uint32_t overflow,
                                    uint32_t nan) {
  const uint32_t magnitude = bits_of_float(x) & 0x7fffffffu;
  const int drop = 23 - fraction;
  uint32_t code;
  if (magnitude > 0x7f800000u) return nan;
  if (magnitude >= (uint32_t)(128 - bias) << 23) {  /* normal in the narrow format */
    const uint32_t odd = (magnitude >> drop) & 1u;
    code = ((magnitude + ((1u << (drop - 1)) - 1u) + odd) >> drop) - ((uint32_t)(127 - bias) << fraction);
  } else {  /* adding a power of two lets the hardware round at the narrow format's last place */
    const uint32_t anchor = (uint32_t)(127 + 1 - bias + drop) << 23;
    code = bits_of_float(float_of_bits(magnitude) + float_of_bits(anchor)) - anchor;
  }
  return code > greatest ? overflow : code;
}""",
    "widen_float": """\
/* The value of a code (sign removed) of a narrow format that has no infinity below `first_special`. */
static inline float widen_float(uint32_t code, int fraction, int bias) {
  const uint32_t exponent = code >> fraction;
  if (exponent == 0u) return (float)code * float_of_bits((uint32_t)(127 + 1 - bias - fraction) << 23);
  return float_of_bits((code << (23 - fraction)) + ((uint32_t)(127 - bias) << 23));
}""",
    "odd_float": """\
/* double to float, rounded to odd: rounding the result to fewer bits then rounds only once. */
static inline float odd_float(double x) {
  const float near = (float)x;
  uint32_t bits = bits_of_float(near);
  if (x != x || (double)near == x || (bits & 1u)) return near;
  bits += ((double)near < x) == (near > 0.0f || (near == 0.0f && x > 0.0)) ? 1u : 0xffffffffu;
  return float_of_bits(bits);
}""",
}

ASKING = {feature: f"ask_for_{feature}" for feature in NEEDED}
"""By feature, the function that asks the system for its registers."""


def _asking(name: str, permission: Permission) -> str:
    numbers = ", ".join(hex(n) for n in (permission.number, *permission.arguments))
    return f"""\
#ifdef __linux__
#include <unistd.h>
#endif
/* Linux saves these registers for processes that have asked, once. */
static inline void {name}(void) {{
#ifdef __linux__
  static int asked;
  if (!__atomic_load_n(&asked, __ATOMIC_RELAXED)) {{
    syscall({numbers});
    __atomic_store_n(&asked, 1, __ATOMIC_RELAXED);
  }}
#endif
}}"""


_PERMISSIONS = {ASKING[feature]: _asking(ASKING[feature], permission) for feature, permission in NEEDED.items()}
_FIXED = _INDEX | _MACROS | _BITS | _PERMISSIONS | ODD_INT | {"odd_sum": ODD_SUM}


def ordered(used: Iterable[str], known: frozenset[str] = frozenset()) -> dict[str, str]:
    """The texts of all helpers in `used` and of those that they call, by name, callees first; empty for those `known`
    elsewhere, whose callees are not asked for."""
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name in done:
            return
        text = "" if name in known else text_of(name)
        for word in dict.fromkeys(re.findall(r"\b[a-z]\w*(?=\()", text)):
            if word != name and is_helper(word):
                add(word)
        done[name] = text

    for name in sorted(used):
        add(name)
    return done


def is_helper(name: str) -> bool:
    """Whether `text_of` knows the name."""
    try:
        text_of(name)
    except KeyError:
        return False
    return True


def text_of(name: str) -> str:
    """The definition of a helper. KeyError for an unknown name."""
    fixed = _FIXED.get(name)
    if fixed:
        return fixed
    if name.startswith("bits_") and "_of_" in name:
        return _reinterpreting(name)
    stem, _, last = name.rpartition("_")
    if last not in DTYPES:
        raise KeyError(name)
    dtype = DTYPES[last]
    if dtype.small_float:
        return _small_float(stem, dtype)
    if dtype.is_float:
        return float_helper(stem, dtype)
    return integer_helper(stem, dtype)


def _reinterpreting(name: str) -> str:
    """`bits_f32_of_s32`: the same bits."""
    into, of = (DTYPES[part] for part in name.removeprefix("bits_").split("_of_"))
    target, source = compute_type(into), compute_type(of)
    if stored_as_bits(into) or stored_as_bits(of):
        word = f"bits_{of}(x)" if stored_as_bits(of) else f"({storage_type(into)})x"
        if stored_as_bits(into):
            return f"static inline {target} {name}({source} x) {{ return load_{into}({word}); }}"
        signed = f"wrap_{into}({word})" if into.sub_byte else f"({target}){word}"
        return f"static inline {target} {name}({source} x) {{ return {signed}; }}"
    if into.sub_byte:
        return f"static inline {target} {name}({source} x) {{ return wrap_{into}((uint32_t)x); }}"
    return f"""\
static inline {target} {name}({source} x) {{
  {target} y;
  memcpy(&y, &x, sizeof y);
  return y;
}}"""


def _small_float(stem: str, dtype: DType) -> str:
    """`round_f16(float)`, `f16` bits from and to float: `bits_f16`, `load_f16`."""
    name, storage = dtype.name, storage_type(dtype)
    if name == "tf32" and stem == "round":
        return """\
static inline float round_tf32(float x) {
  const uint32_t bits = bits_of_float(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return float_of_bits((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}"""
    if name == "bf16" and stem == "bits":
        return """\
static inline uint16_t bits_bf16(float x) {
  const uint32_t bits = bits_of_float(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16 & 0x8000u) | 0x7fc0u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}"""
    if name == "bf16" and stem == "load":
        return "static inline float load_bf16(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }"
    if stem == "fma":
        return f"""\
static inline float fma_{name}(float a, float b, float c) {{  /* one rounding */
  return round_{name}(odd_float(odd_sum((double)a * b, c)));
}}"""
    if name == "tf32":
        raise KeyError(f"{stem}_{name}")
    if stem == "round":
        return f"static inline float round_{name}(float x) {{ return load_{name}(bits_{name}(x)); }}"
    if dtype.scale and stem in ("bits", "load"):
        return _scale(stem, dtype)
    fraction, bias, sign = dtype.mantissa, dtype.bias, 1 << (dtype.bits - 1)
    greatest, overflow, nan = dtype.codes
    if stem == "bits":
        shift = 32 - dtype.bits
        if dtype.finite:  # nor has the zero that a NaN becomes
            return f"""\
static inline {storage} bits_{name}(float x) {{
  const uint32_t sign = x != x ? 0u : (bits_of_float(x) >> {shift}) & {sign:#x}u;
  return ({storage})(sign | narrow_float(x, {fraction}, {bias}, {greatest:#x}u, {overflow:#x}u, {nan:#x}u));
}}"""
        if dtype.fnuz:  # a zero has no sign: its pattern is the NaN
            return f"""\
static inline {storage} bits_{name}(float x) {{
  const uint32_t code = narrow_float(x, {fraction}, {bias}, {greatest:#x}u, {overflow:#x}u, {nan:#x}u);
  return ({storage})(code == 0u ? 0u : ((bits_of_float(x) >> {shift}) & {sign:#x}u) | code);
}}"""
        return f"""\
static inline {storage} bits_{name}(float x) {{
  const uint32_t sign = (bits_of_float(x) >> {shift}) & {sign:#x}u;
  return ({storage})(sign | narrow_float(x, {fraction}, {bias}, {greatest:#x}u, {overflow:#x}u, {nan:#x}u));
}}"""
    if stem == "load" and dtype.bits <= 8:
        special = "word" if dtype.finite else {
            "ieee": f"size > {overflow:#x}u ? 0x7fc00000u : size == {overflow:#x}u ? 0x7f800000u : word",
            "fn": f"size == {nan:#x}u ? 0x7fc00000u : word",
            "fnuz": f"bits == {nan:#x}u ? 0x7fc00000u : word",
        }[dtype.special]
        return f"""\
static inline float load_{name}({storage} bits) {{  /* no branches and no numbers below float's normal ones: lanes */
  const uint32_t size = bits & {sign - 1:#x}u, sign = (uint32_t)(bits & {sign:#x}u) << {32 - dtype.bits};
  const float least = (float)(int32_t)size * float_of_bits({(127 + 1 - bias - fraction) << 23:#x}u);
  const uint32_t normal = (size << {23 - fraction}) + {(127 - bias) << 23:#x}u;
  const uint32_t word = size < {1 << fraction}u ? bits_of_float(least) : normal;
  return float_of_bits(sign | ({special}));
}}"""
    if stem == "load":
        special = {
            "ieee": f"magnitude > {overflow:#x}u ? NAN : magnitude == {overflow:#x}u ? INFINITY : ",
            "fn": f"magnitude == {nan:#x}u ? NAN : ",
            "fnuz": f"bits == {nan:#x}u ? NAN : ",
        }[dtype.special]
        return f"""\
static inline float load_{name}({storage} bits) {{
  const uint32_t magnitude = bits & {sign - 1:#x}u;
  const float value = {special}widen_float(magnitude, {fraction}, {bias});
  return bits & {sign:#x}u ? -value : value;
}}"""
    raise KeyError(f"{stem}_{name}")


def _scale(stem: str, dtype: DType) -> str:
    """The bits are a float's exponent, but for the least, which is no normal float, and NaN. Only values of the type
    become bits."""
    name, nan = dtype.name, dtype.codes.nan
    if stem == "bits":
        return f"""\
static inline uint8_t bits_{name}(float x) {{  /* of a power of two from 2^-{dtype.bias} to 2^{dtype.bias}, or NaN */
  return (uint8_t)(x != x ? {nan}u : bits_of_float(x) >> 23);
}}"""
    return f"""\
static inline float load_{name}(uint8_t bits) {{  /* 2^(bits - {dtype.bias}) */
  return float_of_bits(bits == {nan}u ? 0x7fc00000u : bits == 0u ? 0x00400000u : (uint32_t)bits << 23);
}}"""
