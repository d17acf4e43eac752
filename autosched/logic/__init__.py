"""Small integer expressions with three readings: numpy arrays, z3 formulas, sentences.

Shapes, loop bounds, addresses, schedule rules and derived quantities are all of this one kind, so whatever is
evaluated over a million rows can also be proved and also be said. Read `expr` first, then `readings`.
"""

from autosched.logic.affine import Affine, affine, below_zero, bounds_of, form_or_bounds, interval
from autosched.logic.expr import (
    FALSE,
    TRUE,
    And,
    Binary,
    Bool,
    Compare,
    Const,
    Expr,
    Int,
    IntLike,
    Not,
    Or,
    Truth,
    Var,
    Where,
    all_of,
    any_of,
    ceil_div,
    conjuncts,
    const,
    maximum,
    minimum,
    to_int,
    where,
)
from autosched.logic.merge import merge_dimensions, row_major
from autosched.logic.readings import evaluate, sentence, to_z3
from autosched.logic.walk import free_vars

__all__ = [
    "FALSE",
    "TRUE",
    "Affine",
    "And",
    "Binary",
    "Bool",
    "Compare",
    "Const",
    "Expr",
    "Int",
    "IntLike",
    "Not",
    "Or",
    "Truth",
    "Var",
    "Where",
    "affine",
    "all_of",
    "any_of",
    "below_zero",
    "bounds_of",
    "ceil_div",
    "conjuncts",
    "const",
    "evaluate",
    "form_or_bounds",
    "free_vars",
    "interval",
    "maximum",
    "merge_dimensions",
    "minimum",
    "row_major",
    "sentence",
    "to_int",
    "to_z3",
    "where",
]
