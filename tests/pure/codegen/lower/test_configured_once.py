"""Registers that hold matrices are configured outside of the loops around their nests."""

from __future__ import annotations

from dataclasses import replace

from fuzz.digits import plans_of_summands, summed
from support.match.agreement import disagreement

from autosched import ir
from autosched.codegen.lower import lower
from autosched.codegen.passes.configured_once import configure_once
from autosched.codegen.tree.kernel import Configure, For, Kernel, statements


def kernel_of() -> Kernel:
    program = ir.workload("attention", mask="causal", h=1, n=64, l=96, d=32, t="bf16")
    plan = next(p for p in plans_of_summands(program) if summed(p.parts))
    assert disagreement(plan, [0]) is None
    return lower(plan, plan.space.schedule(0))


def test_two_products_in_loops_share_a_configuration() -> None:
    kernel = kernel_of()
    found = [s for s in statements(kernel.main.body) if isinstance(s, Configure)]
    assert [s.on for s in found] == [True, False]
    assert isinstance(kernel.main.body[0], Configure)
    assert isinstance(kernel.main.body[-1], Configure)
    assert configure_once(kernel) == kernel


def test_configurations_that_differ_stay_apart() -> None:
    """Two loops with one each, of registers of other rows: each is configured around its own loop."""
    kernel = kernel_of()
    matrices = next(s.matrices for s in statements(kernel.main.body) if isinstance(s, Configure))
    fewer = matrices.with_rows({0: 8})

    def loop(which: object, name: str) -> For:
        on, off = Configure(which, on=True), Configure(which, on=False)  # type: ignore[arg-type]
        inner = next(s for s in kernel.main.body if isinstance(s, For))
        return For(name, inner.lower, inner.upper, (on, off, on, off))

    mixed = replace(kernel, main=replace(kernel.main, body=(loop(matrices, "x"), loop(fewer, "y"))))
    body = configure_once(mixed).main.body
    assert [(s.on, s.matrices) for s in body if isinstance(s, Configure)] == [
        (True, matrices), (False, matrices), (True, fewer), (False, fewer),
    ]  # fmt: skip
    assert [s.body for s in body if isinstance(s, For)] == [(), ()]
