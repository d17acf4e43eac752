"""Functions that printed values call: those of exported C, as device functions, and our own for indices.

Conversions that the machine has instructions for are in the header `convert`; C's texts carry the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from autosched.codegen.c_like.helpers import ordered
from autosched.codegen.cuda.headers import device_headers

_OWN = {
    "floor_div": """\
template <class A, class B>
__device__ __forceinline__ auto floor_div(A a, B b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }""",
    "floor_mod": """\
template <class A, class B>
__device__ __forceinline__ auto floor_mod(A a, B b) {
    const auto r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}""",
    **{
        f"{which}_f32": f"""\
__device__ __forceinline__ float {which}_f32(float a, float b) {{  /* NaN wins */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float c;
    asm("{which}.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a {sign} b || a != a ? a : b;
#endif
}}"""
        for which, sign in (("max", ">"), ("min", "<"))
    },
}
"""On `int`, or on `int64_t` where one side is; extremes by the instruction that GPUs have from compute capability 8.0
on (PTX ISA, max)."""
_WORDS = {"__builtin_popcountll": "__popcll", "__builtin_popcount": "__popc"}
_DEFINED = re.compile(r"^__device__ __forceinline__ [\w ]+?(\w+)\(", re.MULTILINE)
CONVERT = "convert"
EIGHT_BITS = frozenset({"bits_e4m3", "load_e4m3", "bits_e5m2", "load_e5m2"})
"""Functions that the header has for compute capability 8.9 and newer; older GPUs, and a host, get C's texts."""
_OLDER = "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 890"


def helper_texts(used: Iterable[str]) -> list[str]:
    """The definitions of helpers and of those that they call, callees first, without those of the header `convert`."""
    found = {name: device(text) for name, text in _closed(used).items() if text}
    older = {name: f"{_OLDER}\n{found[name]}\n#endif" for name in EIGHT_BITS & found.keys()}
    return [*(_OWN[n] for n in sorted(_OWN.keys() & set(used))), *(found | older).values()]


def converts(used: Iterable[str]) -> bool:
    """Whether helpers, or those that they call, are in the header `convert`."""
    return not converted().isdisjoint(_closed(used))


def _closed(used: Iterable[str]) -> dict[str, str]:
    return ordered(set(used) - _OWN.keys(), converted() - EIGHT_BITS)


@cache
def converted() -> frozenset[str]:
    """Functions of the header `convert`."""
    return frozenset(_DEFINED.findall(device_headers()[f"autosched/{CONVERT}.cuh"]))


def device(text: str) -> str:
    """A C helper as a device function."""
    text = text.replace("static inline ", "__device__ __forceinline__ ")
    for word, instead in _WORDS.items():
        text = re.sub(rf"\b{word}\b", instead, text)
    return text
