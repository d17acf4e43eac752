"""Adapters: proved rewrites of a program after which an instruction fits one of its stages.

Each is a file that states what it does and proves: `widen` (narrower elements staged in the instruction's type),
`staged` (functions of one element), `integers.ring` (sums of integers: offset-binary, zero points, negation, scales,
truncation, splits), `promotion` (partial sums of floats), `masks` (conditions on data), `supplied` (constants for
instructions that overwrite their target), `inlined` (stages before one, for those of several steps), `apart` (a
function within a longer expression, for those that approximate it).
Read `proposal` (what they answer with), then `widen`; `registry` lists them. The matcher knows no more of them, and
nothing here knows an operator or an instruction by name.
"""

from autosched.tensorize.adapters.adapt import Adapters
from autosched.tensorize.adapters.proposal import Adapted, Adapter

__all__ = ["Adapted", "Adapter", "Adapters"]
