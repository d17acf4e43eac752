"""What tuning may use: mappings whose conditions the program discharges, and no others."""

from __future__ import annotations

import pytest
from pure.tensorize.conditions.test_match_conditions import gemm

from autosched import api
from autosched.search.tuning.tune import usable
from autosched.tensorize import match
from autosched.tiling.variants.conditional import candidates_of

NAME = "x86/vpmaddubsw.vpmaddwd.ymm"


@pytest.mark.parametrize(("assume", "used"), [("", False), ("-64 <= B <= 64", True), ("-65 <= B <= 64", False)])
def test_saturating_pairs_are_used_where_they_are_right(assume: str, used: bool) -> None:
    """On AVX2 the sequence is the only 8-bit dot product; without the assumption it is matched and not planned."""
    target = api.target("x86-avx2")
    offered = usable(api.catalogue(), target, "simulator")
    assert NAME in {i.name for i in offered}
    matches = match(gemm(assume), offered)
    assert {m.verdict for m in matches if m.intrinsic.name == NAME} == {"match" if used else "conditional"}
    planned = {m.intrinsic.name for mappings in candidates_of(matches).values() for m in mappings}
    assert (NAME in planned) is used
