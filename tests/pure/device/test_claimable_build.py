"""A build that two may begin: whoever comes first prints the candidate, and what goes wrong there is told."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest
from conformance.synthetic import make_plan
from support.cards.gpu_plans import plans

from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.device.cpu.build_server import BuildServer
from autosched.device.cpu.compiled import Compiled
from autosched.device.cpu.remote_build import BuildRequest
from autosched.device.processes.claimable_build import ClaimableBuild, PickledPlans
from autosched.device.protocol import Build
from autosched.errors import MissingError
from autosched.machine.catalogue import load_target
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan

NOWHERE = Candidate(make_plan("nowhere"), 0)


def drafted(here: Any = lambda: "text") -> ClaimableBuild[str]:
    def built(how: str) -> Build:
        return Build(NOWHERE, how)

    return ClaimableBuild(here, lambda text: built(f"compiled {text}"), lambda: built("there"))


def test_the_first_one_prints_it() -> None:
    ahead, late = drafted(), drafted()
    ahead.ahead()
    assert ahead().payload == "compiled text"
    assert late().payload == "there"
    late.ahead()  # too late: nothing is printed twice


def test_a_build_waits_for_what_is_being_printed() -> None:
    begun, go = threading.Event(), threading.Event()

    def slowly() -> str:
        begun.set()
        assert go.wait(20)
        return "late text"

    draft, found = drafted(slowly), []
    printing = threading.Thread(target=draft.ahead)
    printing.start()
    assert begun.wait(20)
    building = threading.Thread(target=lambda: found.append(draft().payload))
    building.start()
    go.set()
    printing.join(20)
    building.join(20)
    assert found == ["compiled late text"]


def test_what_cannot_print_yet_is_waited_for_like_who_can() -> None:
    """The build is made by whoever comes first: the caller, who prints at last, or the process that has loaded."""
    for who in ("caller", "process"):
        asked, able, found = threading.Event(), threading.Event(), list[str]()

        def ready(asked: threading.Event = asked, able: threading.Event = able) -> bool:
            asked.set()
            return able.is_set()

        there = Build(NOWHERE, "there")
        draft = ClaimableBuild(lambda: "text", lambda text: Build(NOWHERE, text), lambda there=there: there, ready)
        building = threading.Thread(target=lambda found=found, draft=draft: found.append(draft().payload))
        building.start()
        assert asked.wait(20)
        assert not found
        if who == "caller":
            draft.ahead()
        else:
            able.set()
        building.join(20)
        assert found == ["text" if who == "caller" else "there"]


def test_a_mistake_is_told_where_it_is_built() -> None:
    def broken() -> str:
        raise ValueError("a mistake")

    draft = drafted(broken)
    draft.ahead()
    with pytest.raises(ValueError, match="a mistake"):
        draft()


def test_an_interruption_is_told_at_once() -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    draft = drafted(interrupted)
    with pytest.raises(KeyboardInterrupt):
        draft.ahead()
    with pytest.raises(KeyboardInterrupt):  # whoever waits for it does not wait for ever
        draft()


def plans_of(name: str, **sizes: Any) -> list[Plan]:
    _, found = plans(name, "*fmadd*", load_target("x86-avx512"), **sizes)
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "sizes"), [("matmul", {"m": 40, "n": 48, "k": 24}), ("conv2d", {"h": 9, "w": 9, "ci": 8, "co": 16})]
)
def test_a_pickled_plan_prints_the_same_kernels(name: str, sizes: dict[str, int]) -> None:
    pickled = PickledPlans()
    for plan in plans_of(name, **sizes, t="f32"):
        kept = pickled.of(plan)
        assert pickled.of(plan) is kept
        other, row = pickle.loads(kept), int(plan.space.sample(1, np.random.default_rng(3))[0])
        assert print_llvm(lower(other, other.space.schedule(row))) == print_llvm(lower(plan, plan.space.schedule(row)))


def test_what_the_other_process_lacks_it_leaves_to_who_asked() -> None:
    def lacks(*_: object) -> Any:
        raise MissingError("no such package here")

    request = BuildRequest(pickle.dumps(None), 0, {}, (), None, None)
    assert BuildServer(Compiled(), lacks).build(request) is None
