"""Intrinsics and matching: which instruction can compute which part of a program, decided by proof and explained.

Holds no tile sizes. Read `intrinsic`, `match_types`, then `matcher`; `explain` says the answers in words and JSON.
"""

from autosched.tensorize.explanation.as_json import to_json
from autosched.tensorize.explanation.text import explain
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Certificate, Condition, Mapping, Match, Obligation, Reason
from autosched.tensorize.matcher.match import match, match_stage
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
    "match_stage",
    "to_json",
]
