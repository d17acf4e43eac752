"""Einsum strings as programs: `"mk,kn->mn"` becomes text of the language, which is then parsed as any other."""

from __future__ import annotations

import re
from collections.abc import Mapping

from autosched.errors import UnknownNameError, UsageError
from autosched.given import checked
from autosched.ir.dtypes import DTYPES
from autosched.ir.parser import Define, parse
from autosched.ir.program import Program
from autosched.ir.workload import accumulator

_NAMES = "ABDEFGH"
"""Operands in order; the output is C."""
_DEFAULT = {True: 512, False: 32}
"""Default size of a letter: a matrix product of 512, and smaller where four or more letters multiply up."""


@checked()
def einsum(spec: str, /, **defines: Define) -> Program:
    """The program of an einsum string: `einsum("mk,kn->mn", m=64, n=64, k=64, a="u8", b="s8")`.

    Letters are sizes (`m=64`); lower-case operand names with a dtype (`a="u8"`) set the operands' types, `acc` the
    accumulator's and `out` the output's. Operands are A B D E …, the output is C; the axis of letter m is `i_m`.
    UsageError for a string that is no einsum, UnknownNameError for a define that is neither.
    """
    operands, output = _parsed(spec)
    letters = list(dict.fromkeys("".join(operands)))
    names = "".join(c for c in _NAMES if c not in letters)[: len(operands)]
    if len(names) < len(operands) or "C" in letters:
        raise UsageError(f"the letters of {spec!r} leave no names for its tensors", hint="use lower-case letters")
    types, sizes = _sorted_defines(defines, letters, names)
    inputs = {n: types.get(n.lower(), "f32") for n in names}
    acc = types.get("acc", accumulator(*inputs.values()))
    return parse(_text(spec, operands, output, letters, inputs, acc, types.get("out", acc)), f"<{spec}>", sizes=sizes)


def _parsed(spec: str) -> tuple[list[str], str]:
    text = re.sub(r"\s", "", spec)
    if len(text) > 200 or not re.fullmatch(r"[A-Za-z]+(,[A-Za-z]+)*(->[A-Za-z]*)?", text):
        raise UsageError(f"{spec[:80]!r} is no einsum string", hint='write letters for axes, as "mk,kn->mn"')
    left, arrow, output = text.partition("->")
    operands = left.split(",")
    if len(operands) > len(_NAMES):
        raise UsageError(f"an einsum has at most {len(_NAMES)} operands, and {spec!r} has {len(operands)}")
    letters = "".join(operands)
    if not arrow:
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    for c in output:
        if c not in letters:
            said = f"the output letter {c!r} of {spec!r} is in no operand"
            raise UsageError(said, hint=f"the operands have {', '.join(dict.fromkeys(letters))}")
        if output.count(c) > 1:
            raise UsageError(f"the output letter {c!r} of {spec!r} is repeated", hint="name each letter once behind ->")
    return operands, output


def _sorted_defines(
    defines: Mapping[str, Define], letters: list[str], names: str
) -> tuple[dict[str, str], dict[str, Define]]:
    """Dtypes and sizes apart. A name may be both a letter and an operand (`"ab,bc->ac"`); the value's kind decides."""
    types: dict[str, str] = {}
    sizes: dict[str, Define] = {}
    operands = [*(n.lower() for n in names), "acc", "out"]
    for name, given in defines.items():
        if isinstance(given, str) and given in DTYPES and name in operands:
            types[name] = given
        elif name in letters:
            sizes[name] = given
        elif name in operands:
            raise UnknownNameError("dtype", str(given), DTYPES)
        else:
            raise UnknownNameError("size or dtype", name, [*letters, *operands])
    return types, sizes


def _text(
    spec: str, operands: list[str], output: str, letters: list[str], inputs: Mapping[str, str], acc: str, out: str
) -> str:
    def index(word: str) -> str:
        return ", ".join(f"i_{c}" for c in word) or "0"

    size = _DEFAULT[len(letters) <= 3]
    tensors = [f"{n}: {t}[{', '.join(word)}]" for (n, t), word in zip(inputs.items(), operands, strict=True)]
    shape = ", ".join(output) or "1"
    signature = ", ".join([*tensors, f"C: {out}[{shape}]", "*", *(f"{c}={size}" for c in letters)])
    factors = [f"{acc}({n}[{index(word)}])" for n, word in zip(inputs, operands, strict=True)]
    term = " * ".join(factors)
    summed = [c for c in letters if c not in output]
    lines = [f"def einsum({signature}):", f'    """{spec}"""']
    if not summed:
        return "\n".join([*lines, *_loop(output, [f"C[{index(output)}] = {out}({term})"])]) + "\n"
    target = "C" if out == acc else "S"
    if target == "S":
        lines.append(f"    S: {acc}[{shape}]")
    update = _loop("".join(summed), [f"{target}[{index(output)}] += {term}"], 0)
    lines += _loop(output, [f"{target}[{index(output)}] = 0", *update])
    if target == "S":
        lines += _loop(output, [f"C[{index(output)}] = {out}(S[{index(output)}])"])
    return "\n".join(lines) + "\n"


def _loop(letters: str, body: list[str], depth: int = 1) -> list[str]:
    pad = "    " * depth
    if not letters:
        return [pad + line for line in body]
    names, extents = ", ".join(f"i_{c}" for c in letters), ", ".join(letters)
    domain = f"range({extents})" if len(letters) == 1 else f"grid({extents})"
    return [f"{pad}for {names} in {domain}:", *(pad + "    " + line for line in body)]
