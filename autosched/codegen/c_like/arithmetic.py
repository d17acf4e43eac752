"""Texts of the arithmetic helpers, one function a (name, dtype): `add_s32`, `shl_u8`, `min_f32`, `sat_s8_of_s32`.

Conversions to a narrower signed type rely on the modular conversion that GCC, Clang and MSVC define.
"""

from __future__ import annotations

from autosched.codegen import workarounds
from autosched.codegen.c_like.ctypes import compute_type, literal
from autosched.ir.dtypes import DTYPES, DType


def integer_helper(stem: str, dtype: DType) -> str:
    """The helper `stem` of an integer dtype. KeyError for an unknown one."""
    name, t, bits = f"{stem}_{dtype.name}", compute_type(dtype), dtype.bits
    u = f"uint{max(32, bits)}_t"  # unsigned arithmetic wraps; narrower operands would be promoted to a signed int
    signed = dtype.kind == "int"
    least = literal(dtype.limits[0], dtype)
    one = f"static inline {t} {name}({t} a)"
    two = f"static inline {t} {name}({t} a, {t} b)"
    match stem:
        case "add" | "sub" | "mul":
            sign = {"add": "+", "sub": "-", "mul": "*"}[stem]
            return f"{two} {{ return {_wrapped(f'({u})a {sign} ({u})b', dtype)}; }}"
        case "neg":
            return f"{one} {{ return {_wrapped(f'0u - ({u})a', dtype)}; }}"
        case "inv":
            return f"{one} {{ return ({t})~a; }}"
        case "xor":
            return f"{two} {{ return ({t})(a ^ b); }}"
        case "abs":
            return f"{one} {{ return a < 0 ? {_wrapped(f'0u - ({u})a', dtype)} : a; }}"
        case "wrap":
            if dtype.sub_byte and signed:
                top = 1 << (bits - 1)
                value = f"(int8_t)((int8_t)((bits & {2**bits - 1}u) ^ {top}u) - {top})"
                return f"static inline int8_t {name}(uint32_t bits) {{ return {value}; }}"
            return f"static inline {t} {name}(uint32_t bits) {{ return ({t})(bits & {2**bits - 1}u); }}"
        case "min" | "max":
            return f"{two} {{ return a {'<' if stem == 'min' else '>'} b ? a : b; }}"
        case "div":
            if not signed:
                return f"{two} {{ return b == 0 ? 0 : a / b; }}"
            return f"""\
{two} {{  /* rounds down; the least value by -1 wraps, by 0 gives 0 */
  if (b == 0) return 0;
  if (b == -1) return {_wrapped(f"0u - ({u})a", dtype)};
  return ({t})(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}}"""
        case "mod":
            if not signed:
                return f"{two} {{ return b == 0 ? 0 : a % b; }}"
            return f"""\
{two} {{  /* has the sign of b */
  if (b == 0 || b == -1) return 0;
  const {t} r = ({t})(a % b);
  return ({t})(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}}"""
        case "shl":
            return f"{two} {{ return {_within('b', dtype)} ? {_wrapped(f'({u})a << b', dtype)} : 0; }}"
        case "shr":
            rest = "(a < 0 ? -1 : 0)" if signed else "0"
            return f"{two} {{ return ({t})({_within('b', dtype)} ? a >> b : {rest}); }}"
        case "popcount":
            mask = "" if bits >= 32 else f" & {2**bits - 1}u"
            function = "__builtin_popcountll" if bits == 64 else "__builtin_popcount"
            return f"{one} {{ return {_wrapped(f'({u}){function}(({u})a{mask})', dtype)}; }}"
        case "rint":
            return f"""\
static inline {t} {name}(double x) {{  /* to nearest even, modulo 2^{bits}; NaN and infinities give 0 */
  double r = rint(x);
  if (!(fabs(r) <= DBL_MAX)) return 0;
  r = fmod(r, 0x1p64);
  if (r >= 0x1p63) r -= 0x1p64;
  if (r < -0x1p63) r += 0x1p64;
  return {_wrapped("(uint64_t)(int64_t)r", dtype)};
}}"""
        case "satrint":
            low, high = dtype.limits
            return f"""\
static inline {t} {name}(double x) {{  /* to nearest even, clamped; NaN gives 0 */
  const double r = rint(x);
  if (r != r) return 0;
  if (r < {float(low)!r}) return {least};
  return r >= {float(high + 1)!r} ? {literal(high, dtype)} : ({t})r;
}}"""
    if stem.startswith("sat_") and stem.endswith("_of"):
        return _saturating(name, DTYPES[stem[4:-3]], dtype)
    raise KeyError(name)


def _within(amount: str, dtype: DType) -> str:
    """Whether a shift amount is below the width; negative ones count as large."""
    return f"{amount} < {dtype.bits}" if dtype.kind == "uint" else f"({amount} >= 0 && {amount} < {dtype.bits})"


def _wrapped(expression: str, dtype: DType) -> str:
    """An unsigned C expression modulo 2^bits as a value of `dtype`."""
    if dtype.sub_byte:
        return f"wrap_{dtype.name}((uint32_t)({expression}))"
    return f"({compute_type(dtype)})({expression})"


def _saturating(name: str, target: DType, source: DType) -> str:
    """`sat_s8_of_s32`: clamp by the limits that the source can exceed."""
    t, s = compute_type(target), compute_type(source)
    (low, high), (least, greatest) = target.limits, source.limits
    text = f"({t})a"
    if high < greatest:
        text = f"a > {literal(high, source)} ? {literal(high, target)} : {text}"
    if low > least:
        text = f"a < {literal(low, source)} ? {literal(low, target)} : {text}"
    return f"static inline {t} {name}({s} a) {{ return {text}; }}"


def float_helper(stem: str, dtype: DType) -> str:
    """The helper `stem` of f32 or f64 (small floats use f32's). KeyError for an unknown one."""
    name, t = f"{stem}_{dtype.name}", compute_type(dtype)
    match stem:
        case "min" | "max":
            sign = "<" if stem == "min" else ">"
            return f"static inline {t} {name}({t} a, {t} b) {{ return a {sign} b || a != a ? a : b; }}  /* NaN wins */"
        case "scalb":
            f, most = ("f", "FLT_MAX") if dtype.name == "f32" else ("", "DBL_MAX")
            return f"""\
/* x times two to the power floor(k); an infinite power has the last word over a NaN. */
static inline {workarounds.UNUSED.text} {t} {name}({t} x, {t} k) {{
  const {t} end = k > 0 ? INFINITY : 0;
  if (k != k) return k;
  if (fabs{f}(k) > {most}) return x != x ? end : x * end;
  return scalbn{f}(x, (int)floor{f}(k < -5000 ? -5000 : k > 5000 ? 5000 : k));
}}"""
        case "rsqrt" if dtype.name == "f64":
            return f"static inline double {name}(double x) {{ return 1.0 / sqrt(x); }}"
        case "sigmoid" if dtype.name == "f64":
            return f"static inline double {name}(double x) {{ return 1.0 / (1.0 + exp(-x)); }}"
    raise KeyError(name)


ODD_SUM = """\
/* a + b rounded to odd: rounding the result to fewer bits then rounds only once. */
static inline double odd_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  const double lost = (a - (sum - part)) + (b - part);
  uint64_t bits;
  if (!(fabs(sum) <= DBL_MAX) || lost == 0.0) return sum;
  memcpy(&bits, &sum, sizeof bits);
  if (bits & 1u) return sum;
  bits += (lost > 0.0) == (sum > 0.0) ? 1u : ~(uint64_t)0;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return odd;
}"""
ODD_INT = {
    "odd_s64": """\
/* int64_t to double, rounded to odd. */
static inline double odd_s64(int64_t x) {
  if (x > -((int64_t)1 << 53) && x < (int64_t)1 << 53) return (double)x;
  return (double)((x & ~INT64_C(0x7ff)) | (x & 0x7ff ? 0x800 : 0));
}""",
    "odd_u64": """\
/* uint64_t to double, rounded to odd. */
static inline double odd_u64(uint64_t x) {
  if (x < UINT64_C(1) << 53) return (double)x;
  return (double)((x & ~UINT64_C(0x7ff)) | (x & 0x7ff ? 0x800u : 0u));
}""",
}
