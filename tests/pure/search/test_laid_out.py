"""What is listed of a plan: all of its legal rows, or a sample, also where nobody can say how many there are."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.synthetic import make_plan

from autosched.search.space.plan_rows import lay_out
from autosched.tiling.space.counting import counted, row_count


@pytest.mark.parametrize("known", [True, False])
def test_all_rows_up_to_the_limit_and_a_sample_above(known: bool) -> None:
    plan = make_plan("a", tiles=4)
    every = plan.space.enumerate().ids
    if not known:
        plan.space.cache[row_count] = None
    whole = lay_out(plan, len(every), np.random.default_rng(0), few=10)
    assert (whole.complete, whole.legal) == (True, len(every))
    assert np.array_equal(whole.ids, every)
    some = lay_out(plan, len(every) - 1, np.random.default_rng(0), few=10)
    assert (some.complete, len(some.ids)) == (False, len(every) - 1)
    assert some.legal == (len(every) if known else len(some.ids))
    assert np.isin(some.ids, every).all()
    assert (np.diff(some.ids) > 0).all()


def test_what_takes_too_many_steps_is_not_counted() -> None:
    space = make_plan("a", tiles=4).space
    assert counted(space, most=3) is None
    found = counted(space)
    assert found is not None
    assert found.legal == len(space.enumerate().ids)
