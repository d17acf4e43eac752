"""Names of plans in lines: nothing is lost, and what is inside of loops stands further in."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from autosched.report.plan_text import brief_plan, plan_lines

PARTS = st.sampled_from(["S: x86/fma.zmm(i←j)", "A: x86/dp(i←j, k←p) +H", "scalar", "B: fma(i←j) X in the load (2)"])
LOOPS = st.sampled_from(["b", "b, i_tile", "j_rest"])
BODIES = st.recursive(
    PARTS,
    lambda body: st.tuples(LOOPS, st.lists(body, min_size=1, max_size=3)).map(
        lambda of: f"loops over {of[0]} ({'; '.join(of[1])})"
    ),
    max_leaves=6,
)
REWRITES = st.sampled_from(["", " [online 64x128]", " [factor X_factor[i, p], factor W_factor[p, j]]"])
NAMES = st.tuples(st.lists(BODIES, min_size=1, max_size=3).map("; ".join), REWRITES).map("".join)


@given(NAMES)
def test_lines_have_all_of_the_name(name: str) -> None:
    lines = plan_lines(name, width=0)

    def words(text: str) -> list[str]:
        return re.findall(r"[\w./←\[\]+,]+", re.sub(r"loops over ([^():]+)[:(]", r"loops over \1 ", text))

    assert words(" ".join(lines)) == words(name)
    assert not any("loops over" in line and not line.endswith(":") for line in lines)
    assert plan_lines(name, width=len(name)) == [name]


@given(NAMES, st.integers(60, 90))
def test_a_brief_name_fits(name: str, width: int) -> None:
    brief = brief_plan(name, width)
    assert len(brief) <= width
    beginning = brief.split("…")[0]
    assert beginning
    assert name.startswith(beginning)
