"""`rewrites_of`: every rewrite of a program that applies, with its proof, and those that were tried and refused."""

from __future__ import annotations

from collections.abc import Iterator

from autosched.ir.program import Program
from autosched.ir.rewrites.online.search import BLOCK, online
from autosched.ir.rewrites.verdict import RewriteVerdict

LEVELS = ("bitwise", "special", "reassociated", "rescaled", "real")
"""Numerics levels, from the strictest on. `rescaled` is equal over the reals, with a proved bound on the error."""


def rewrites_of(program: Program, numerics: str = "rescaled", block: int = BLOCK) -> Iterator[RewriteVerdict]:
    """The certificates of a program. One that needs a weaker level than `numerics` says so and is listed all the same:
    its `numerics` is the level to accept."""
    yield from online(program, numerics == "real", block)


def accepted(certificate: RewriteVerdict, numerics: str) -> bool:
    """Whether a certificate is proved, and its level is one that `numerics` accepts."""
    level = certificate.numerics
    return level is not None and certificate.reason is None and LEVELS.index(level) <= LEVELS.index(numerics)
