"""Mappings with conditions in plans and kernels: the check, the body that relies on it, and the fallback."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.plans import covering_rows
from support.programs.guarded import CLAMPING, GEMM, data_sets, guarded, planned, plans, programs

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Buffer, GuardedDispatch, Kernel, KernelError
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.ir.oracle.interpreter import run
from autosched.search.request import TuneRequest
from autosched.search.tuning.fallbacks import fastest_row, with_fallbacks
from autosched.tensorize import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.plans.fallback import exchangeable
from autosched.tiling.plans.plan import Plan

PROGRAMS = programs()
LARGER = {"m": 24, "n": 48, "k": 64}


def first_rows(plan, count: int = 2) -> list[int]:
    return list(islice(covering_rows(plan, seed=2), count))


def without_check(kernel: Kernel, branch: str) -> Kernel:
    """The kernel with one branch of its choice in place of both."""
    body = tuple(
        s
        for stmt in kernel.main.body
        for s in (getattr(stmt, branch) if isinstance(stmt, GuardedDispatch) else (stmt,))
    )
    return replace(kernel, main=replace(kernel.main, body=body))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_branches_compute_the_program(name: str) -> None:
    """Within the conditions, and past each bound by one."""
    program = PROGRAMS[name]
    found = guarded(program)
    assert found
    for plan in found[:1] if name == "conv" else found[:2]:
        for row in first_rows(plan):
            kernel = lower(plan, plan.space.schedule(row))
            check_kernel(kernel)
            names = []
            for data, arrays, scalars in data_sets(program, plan):
                got = run_kernel(kernel, arrays, scalars)
                for output, want in run(program, arrays, scalars).items():
                    np.testing.assert_array_equal(got[output], want, err_msg=f"{plan.name} {data}")
                names.append(data)
            assert len(names) >= 2, "some data must break the condition"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["weights", "data", "signed", "requant"])
def test_the_violations_would_be_noticed(name: str) -> None:
    """A kernel that takes the fast way whatever the data computes something else where they break the condition, and
    the fallback alone is right everywhere."""
    program = PROGRAMS[name]
    plan = guarded(program)[0]
    kernel = lower(plan, plan.space.schedule(first_rows(plan, 1)[0]))
    careless, careful = without_check(kernel, "body"), without_check(kernel, "fallback")
    differs = []
    for data, arrays, scalars in data_sets(program, plan):
        (output, want), *_ = run(program, arrays, scalars).items()
        np.testing.assert_array_equal(run_kernel(careful, arrays, scalars)[output], want)
        if (run_kernel(careless, arrays, scalars)[output] != want).any():
            differs.append(data)
        else:
            assert data == "within" or name == "signed"
    assert "within" not in differs
    assert differs


def test_constant_data_are_checked_once_and_other_data_in_every_call() -> None:
    for name, prepared in (("weights", True), ("data", False)):
        plan = guarded(PROGRAMS[name])[0]
        kernel = lower(plan, plan.space.schedule(first_rows(plan, 1)[0]))
        assert any(f.name.endswith("_check") for f in kernel.prepare) == prepared
        (choice,) = (s for s in kernel.main.body if isinstance(s, GuardedDispatch))
        (check,) = choice.checks
        assert kernel.buffers[check].scope == ("packed" if prepared else "workspace")
        assert f"if {check}[0] == 0:" in print_kernel(kernel)
        assert (kernel.main.body[0] is choice) == prepared


def test_a_constant_group_is_looked_at_exactly() -> None:
    """Weights beyond the range of the condition, no two neighbours of which are too large: the fast way is taken."""
    program = PROGRAMS["weights"]
    plan = guarded(program)[0]
    kernel = lower(plan, plan.space.schedule(first_rows(plan, 1)[0]))
    careless = without_check(kernel, "body")
    broken = replace(without_check(kernel, "fallback"), name="broken")
    a = np.full((3, 11), 255, np.uint8)
    for high, right in ((1, True), (2, False)):  # 255 * (127 + 1) is 32,640; one more leaves 16 bits
        b = np.empty((11, 19), np.int8)
        b[0::2], b[1::2] = 127, high
        want = run(program, {"A": a, "B": b})["C"]
        np.testing.assert_array_equal(run_kernel(kernel, {"A": a, "B": b})["C"], want)
        np.testing.assert_array_equal(run_kernel(broken, {"A": a, "B": b})["C"], want)
        assert (run_kernel(careless, {"A": a, "B": b})["C"] == want).all() == right


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "spare", "instead"),
    [
        ("weights", ("portable/mac*",), "portable/mac.u8.s8.s32.v16"),
        ("weights", ("x86/vpmaddwd.ymm",), "x86/vpmaddwd.ymm"),  # of a program that widens both operands first
        ("signed", ("x86/vpmaddwd.ymm",), "x86/vpmaddwd.ymm"),
        ("weights", (), None),
        ("requant", (), None),
    ],
)
def test_the_fallback_is_an_unconditional_plan_else_scalar_code(
    name: str, spare: tuple[str, ...], instead: str | None
) -> None:
    program = PROGRAMS[name]
    if instead == "x86/vpmaddwd.ymm":  # large enough to be worth the copies
        program = parse(GEMM.format(name=name, a=program.tensors["A"].dtype, b="const[s8[k, n]]"), sizes=LARGER)
    plan = guarded(program, spare=spare)[0]
    kernel = lower(plan, plan.space.schedule(first_rows(plan, 1)[0]))
    check_kernel(kernel)
    used = {i.name for i in without_check(kernel, "fallback").intrinsics} - {CLAMPING}
    assert used == ({instead} if instead else set())
    for data, arrays, scalars in data_sets(program, plan):
        got = run_kernel(kernel, arrays, scalars)
        for output, want in run(program, arrays, scalars).items():
            np.testing.assert_array_equal(got[output], want, err_msg=data)


def test_the_modes() -> None:
    """Without an assumption the clamping sequence is used with a check, on trust, or not at all."""
    program = PROGRAMS["weights"]
    used = {mode: [p for p in plans(program, mode=mode) if CLAMPING in p.intrinsics] for mode in
            ("refuse", "guard", "assume")}  # fmt: skip
    assert not used["refuse"]
    assert all(p.guards and " if -64 <= B <= 64" in p.name for p in used["guard"])
    trusted = used["assume"][0]
    assert not trusted.guards
    assert trusted.relies == ("-64 <= B <= 64",)
    assert any("assumed: -64 <= B <= 64" in m.certificate.assumptions for m in trusted.mappings)
    kernel = lower(trusted, trusted.space.schedule(first_rows(trusted, 1)[0]))
    assert not any(isinstance(s, GuardedDispatch) for s in kernel.main.body)
    assert "relies on: -64 <= B <= 64" in print_kernel(kernel)
    with pytest.raises(UsageError, match="--conditions hope"):
        TuneRequest(program, trusted.target, conditions="hope")


def test_checks_that_admit_one_sign_only_go_where_another_admits_both() -> None:
    """-128 <= B <= 0 lets the instruction be turned around for s8·s8, and holds of hardly any weights."""
    found = [p for p in plans(PROGRAMS["signed"]) if CLAMPING in p.intrinsics]
    assert {(c.subject, c.low, c.high) for p in found for c in p.guards} == {("B", -64, 64)}


def test_an_assumption_of_the_program_needs_no_check() -> None:
    text = str(PROGRAMS["weights"]).replace("    for i", "    assume(-64 <= B <= 64)\n    for i", 1)
    for mode in ("refuse", "guard"):
        found = [p for p in plans(parse(text), mode=mode) if CLAMPING in p.intrinsics]
        assert found
        assert not any(p.guards or p.relies for p in found)


@pytest.mark.slow
def test_conditions_parse_back_as_assumptions() -> None:
    """Stated in the program, each condition discharges itself; also those of adapted mappings."""
    known = Catalogue.builtin()
    for name in ("weights", "data", "signed", "unsigned"):
        program = PROGRAMS[name]
        (found,) = match(program, [known.find(CLAMPING)])
        assert found.verdict == "conditional"
        for text in {c.text for m in found.mappings for c in m.conditions}:
            stated = str(program).replace("    for i", f"    assume({text})\n    for i", 1)
            (again,) = match(parse(stated), [known.find(CLAMPING)])
            assert again.verdict == "match", (name, text)


@pytest.mark.slow
def test_checks_cost_time_in_the_clock() -> None:
    """Of data; those of weights run once."""
    seconds = {}
    for name in ("weights", "data"):
        plan = guarded(PROGRAMS[name])[0]
        bare = replace(plan, parts=tuple(replace(p, fallback=None) for p in plan.tensor_parts))
        values = plan.space.values(np.array(first_rows(plan)))
        seconds[name] = clock(plan, values)["total"] - clock(bare, values)["total"]
    assert (seconds["weights"] == 0).all()
    assert (seconds["data"] > 0).all()


def test_a_check_is_one_number() -> None:
    plan = guarded(PROGRAMS["weights"])[0]
    kernel = lower(plan, plan.space.schedule(first_rows(plan, 1)[0]))
    wide = replace(kernel.buffers["B_check"], shape=(2,))
    assert isinstance(wide, Buffer)
    with pytest.raises(KernelError, match="not one s32"):
        check_kernel(replace(kernel, buffers={**kernel.buffers, "B_check": wide}))


@pytest.mark.sampled("data")
@pytest.mark.parametrize("name", ["data", "weights"])
def test_the_fastest_plan_of_all_stands_by(name: str) -> None:
    """Plans that a lower bound rules out are not sampled, and would not have been chosen."""
    sampled: list[Plan] = []

    def noted(plan: Plan) -> tuple[float, dict[str, int]] | None:
        sampled.append(plan)
        return fastest_row(plan)

    found = planned(PROGRAMS[name])
    plan = next(p for p in with_fallbacks(found.plans, found.every, noted) if p.guards)
    fitting = [p for p in found.every if not p.guards and not p.granted and exchangeable(plan, p)]
    assert plan.otherwise is not None
    assert plan.otherwise.plan.name == min(fitting, key=lambda p: (fastest_row(p) or (np.inf, {}))[0]).name
    assert 0 < len(sampled) < len(fitting)
