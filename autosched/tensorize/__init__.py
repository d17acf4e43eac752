"""Intrinsics and matching: which instruction can compute which part of a program, decided by proof and explained.

Holds no tile sizes. Read `intrinsic` and `match_types`, then `matcher.match`, which puts the three proofs together:

    spec          YAML to intrinsics                 check         are descriptions true?
    addresses     proof 1: axes and addresses        numerics      the executable model of accumulators
    body          proof 2: the scalar code           conditions    preconditions on values
    reduction     proof 3: the combination           adapters      proved rewrites that make more programs fit
    matcher       the search over mappings           explanation   answers in words and as JSON
"""

from autosched.tensorize.explanation.as_json import to_json
from autosched.tensorize.explanation.text import explain
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Certificate, Condition, Mapping, Match, Obligation, Reason
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue

__all__ = [
    "Catalogue",
    "Certificate",
    "Condition",
    "Intrinsic",
    "Mapping",
    "Match",
    "Obligation",
    "Reason",
    "explain",
    "match",
    "to_json",
]
