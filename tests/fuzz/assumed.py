"""Pairs that agree, if at all, on the data that the program assumes: terms of bytes, clamped or wrapped on the way.
Some programs write a tensor of which they assume a range, and read it afterwards."""

from __future__ import annotations

from random import Random

from .pairs import Pair

SIZE = 6
_LIMITS = {"u8": (0, 255), "s8": (-128, 127)}


def assumed(rng: Random) -> Pair:
    """An instruction that overwrites its target, or adds pairs that it clamps."""
    return _added(rng) if rng.random() < 0.3 else _overwritten(rng)


def _overwritten(rng: Random) -> Pair:
    types = {n: rng.choice(("u8", "s8")) for n in "ab"}
    term = rng.choice(
        (
            f"s32({{a}}) * {rng.randint(-3, 64)} + s32({{b}}) * {rng.randint(-64, 64)}",
            "s32({a}) * s32({b})",
            f"s32({{a}}) * {rng.choice((3, 127, 200))}",
            f"s32({{a}}) * ({rng.choice((16, 64, 128))} - s32({{b}}))",
            "s32({a}) - s32({b})",
        )
    )
    term += rng.choice(("", f" + {rng.choice((1, 16, 32, 128))}"))
    shift = rng.choice((0, 0, 1, 4, 6, 8))
    narrow = rng.choice(("sat_s16", "s16", "u16", "sat_u8", "s8"))
    packed = rng.choice(("u8", "s8", "s16"))
    clamped, kept = rng.choice(("sat_", "")), rng.random() < 0.5
    said = f"{clamped}{packed}(s32({narrow}({term})) >> {shift})"
    written = f"{clamped if kept else ''}{packed}(({term}) >> {shift})"
    read = [n for n in "ab" if f"{{{n}}}" in term]
    semantics = _function("up", {n: types[n] for n in read}, packed, said, 4)
    return Pair(semantics, "{}", _assuming(rng, types, read, packed, written), "reassociated")


def _added(rng: Random) -> Pair:
    """Sums of pairs of products of bytes, which are clamped before they are added."""
    types = {"a": "u8", "b": rng.choice(("s8", "u8"))}
    products = [f"s32(a[i, {k}]) * s32(b[i, {k}])" for k in range(2)]
    semantics = f"def up(a: u8[4, 2], b: {types['b']}[4, 2], c: s32[4]):\n for i in range(4):\n"
    semantics += f"  c[i] = c[i] + s32(sat_s16({' + '.join(products)}))\n"
    tensors = [f"{n.upper()}: {t}[{SIZE}, 4]" for n, t in types.items()]
    lines = ["for i, k in grid(6, 4):", "  C[i] += s32(A[i, k]) * s32(B[i, k])"]
    before = _before(rng, types, ["a", "b"], "i, k", f"{SIZE}, 4", tensors)
    text = "\n ".join([f"def f({', '.join(tensors)}, C: s32[{SIZE}]):", *before, *lines])
    return Pair(semantics, "{accumulate: exact}", text + "\n", "reassociated")


def _function(name: str, types: dict[str, str], packed: str, value: str, n: int) -> str:
    tensors = [f"{operand}: {t}[{n}]" for operand, t in types.items()]
    value = value.format(a="a[i]", b="b[i]")
    return f"def {name}({', '.join(tensors)}, c: {packed}[{n}]):\n for i in range({n}):\n  c[i] = {value}\n"


def _assuming(rng: Random, types: dict[str, str], read: list[str], packed: str, value: str) -> str:
    tensors = [f"{n.upper()}: {types[n]}[{SIZE}]" for n in read]
    before = _before(rng, types, read, "i", str(SIZE), tensors)
    lines = [f"for i in range({SIZE}):", f"  C[i] = {value.format(a='A[i]', b='B[i]')}"]
    return "\n ".join([f"def f({', '.join(tensors)}, C: {packed}[{SIZE}]):", *before, *lines]) + "\n"


def _before(
    rng: Random, types: dict[str, str], read: list[str], at: str, extents: str, tensors: list[str]
) -> list[str]:
    """What stands in front: assumptions, and now and then a loop that writes a tensor, whole or in part."""
    found = []
    for name in read:
        low, high = _LIMITS[types[name]]
        if rng.random() < 0.8:
            ends = sorted((rng.randint(low, high), rng.choice((0, 1, 16, 63, 64, 65, 127, high))))
            found.append(f"assume({ends[0]} <= {name.upper()} <= {ends[1]})")
    if rng.random() < 0.3:
        name = rng.choice(read)
        tensors.append(f"X: {types[name]}[{extents}]")
        found.append(f"for {at} in grid({extents}):" if "," in at else f"for {at} in range({extents}):")
        inner = f"{name.upper()}[{at}] = X[{at}]"
        found += [f"  {inner}"] if rng.random() < 0.5 else ["  if i < 3:", f"   {inner}"]
    return found
