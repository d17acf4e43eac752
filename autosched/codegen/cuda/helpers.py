"""Functions that printed values call: those of exported C, as device functions, and our own for indices.

Conversions that the machine has instructions for are in the header `convert`; C's texts carry the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from autosched.codegen.c.helpers import ordered

_OWN = {
    "floor_div": "__device__ __forceinline__ int floor_div(int a, int b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }",
    "floor_mod": "__device__ __forceinline__ int floor_mod(int a, int b) { return a - (a / b - (a % b != 0 && (a < 0) != (b < 0))) * b; }",
}
_WORDS = {"__builtin_popcountll": "__popcll", "__builtin_popcount": "__popc"}


def helper_texts(used: Iterable[str]) -> list[str]:
    """The definitions of helpers, callees first."""
    names = set(used)
    return [_OWN[n] for n in sorted(names & _OWN.keys())] + [device(t) for t in ordered(names - _OWN.keys())]


def device(text: str) -> str:
    """A C helper as a device function."""
    text = text.replace("static inline ", "__device__ __forceinline__ ")
    for word, instead in _WORDS.items():
        text = re.sub(rf"\b{word}\b", instead, text)
    return re.sub(r"/\* (.*?) \*/", lambda m: f"/* {m[1]} */", text, flags=re.DOTALL)
