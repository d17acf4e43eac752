"""An error on an unknown name lists what there is."""

from __future__ import annotations

import pytest

import autosched
from autosched.errors import UnknownNameError
from autosched.ir.workload import FAMILIES, workload_names


@pytest.mark.parametrize("name", workload_names())
def test_sizes_of_workloads_are_listed_whole(name: str) -> None:
    with pytest.raises(UnknownNameError) as told:
        autosched.workload(name, no_such_size=1)
    listed = (told.value.hint or "").partition("known: ")[2].split(", ")
    program = autosched.workload(name)
    assert set(listed) >= {*program.sizes, *program.dtypes, *FAMILIES[name].options}
    assert " more" not in listed[-1]


def test_workloads_are_listed_whole() -> None:
    with pytest.raises(UnknownNameError) as told:
        autosched.workload("no_such_workload")
    assert (told.value.hint or "").partition("known: ")[2] == ", ".join(workload_names())
