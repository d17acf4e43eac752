"""Constants of a formula that need no register: an instruction takes them from memory as its second operand.

A polynomial or two have more constants than x86 has registers before AVX-512, beside what a loop carries. Compilers
hold or repeat each in one all the same, and then keep sums on the stack.
"""

from __future__ import annotations

from collections import Counter

from autosched.backends import backend_of
from autosched.codegen.tree.kernel import Kernel
from autosched.ir.formula import Formula
from autosched.ir.value import Arith, Call, Comparison, Literal, Value, children, walk


def scarce(kernel: Kernel) -> bool:
    """Whether vectors have sixteen registers and no broadcasting operands: x86 before AVX-512."""
    return backend_of(kernel.isa).memory_operands and kernel.vector_bytes <= 32


def memory_constants(formula: Formula) -> tuple[Literal, ...]:
    """The constants of the formula's own dtype that it names once, as an addend or a side of a comparison. Factors of
    a fused product stay: the other factor is mostly needed again, so that the constant's register takes the result."""
    found: list[Literal] = []
    named: Counter[Literal] = Counter()
    for value in (*(step for _, step in formula.steps), formula.result):
        for node in walk(value):
            named.update(child for child in children(node) if isinstance(child, Literal))
            found += [c for c in _second(node) if isinstance(c, Literal) and c.dtype == formula.dtype and c.value != 0]
    return tuple(c for c in found if named[c] == 1)


def _second(node: Value) -> tuple[Value, ...]:
    """The operands that may be an instruction's second one, but not both at once."""
    match node:
        case Call("fma", (_, _, addend), _):
            return (addend,)
        case Arith("-", left, right, _):
            return () if isinstance(left, Literal) else (right,)
        case Arith("+", left, right, _) | Comparison(_, left, right, _):
            return () if isinstance(left, Literal) and isinstance(right, Literal) else (left, right)
        case _:
            return ()
