"""Golden texts: the loop tree and the exported C of hand-made kernels. AUTOSCHED_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from support.paths import TESTS
from support.programs.kernel_cases import CASES, literal, loop

from autosched.codegen.c import print_c
from autosched.codegen.tree.kernel import Assign, Comment, For, If, Lane, Prefetch
from autosched.codegen.tree.text import print_kernel, print_statement
from autosched.errors import SpecError
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Read, Select
from autosched.logic import FALSE, Const, Var

GOLDEN = TESTS / "golden"
F32 = DTYPES["f32"]
i, e = Var("i"), Var("e")


def check_golden(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get("AUTOSCHED_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("name", ["matmul_fma", "matmul_dot_relu", "stencil"])
def test_golden(name: str) -> None:
    kernel, _ = CASES[name]()
    check_golden(f"kernel_{name}.txt", print_kernel(kernel))
    c = print_c(kernel)
    check_golden(f"kernel_{name}.h", c.header)
    check_golden(f"kernel_{name}.c", c.source)


@pytest.mark.parametrize(
    ("stmt", "text"),
    [
        (Assign("Y", (i,), literal(0.0, "f32")), "Y[i] = 0.0"),
        (Assign("t", (e,), literal(0.0, "f32"), Lane("e", 16)), "t[:16] = 0.0"),
        (Assign("t", (e,), Read("X", (i + e,), F32), Lane("e", 4)), "t[:4] = X[i + e]  for e in 0..4"),
        (
            Assign("t", (e,), Read("X", (i,), F32), Lane("e", 4), i + e < 7),
            "t[:4] = X[i]  for e in 0..4  where i + e < 7",
        ),
        (Assign("Y", (e * 2,), literal(1.0, "f32"), Lane("e", 4)), "Y[e * 2] = 1.0  for e in 0..4"),
        (Assign("Y", (i,), literal(1.0, "f32"), valid=FALSE), "Y[i] = 1.0  where False"),
        (Prefetch("X", (i + 8,), write=True), "prefetch X[i + 8] for writing"),
        (Comment("two\nlines"), "# two\n# lines"),
        (If(i < 3, ()), "if i < 3:\n  pass"),
        (
            For("i", Const(0), Const(9), (Comment("x"),), "parallel", 3, "rows"),
            "parallel for i in 0..9 step 3:  # rows\n  # x",
        ),
        (
            Assign("Y", (i,), Select(i < 3, literal(1.0, "f32"), literal(2.0, "f32"), F32)),
            "Y[i] = f32(1.0) if i < 3 else 2.0",
        ),
    ],
)
def test_statements(stmt: object, text: str) -> None:
    assert print_statement(stmt) == text  # type: ignore[arg-type]


def test_an_intrinsic_without_c_text_is_a_clear_error() -> None:
    kernel, _ = CASES["matmul_fma"]()

    def strip(body: tuple[object, ...]) -> tuple[object, ...]:
        found: list[object] = []
        for stmt in body:
            if hasattr(stmt, "intrinsic"):
                stmt = replace(stmt, intrinsic=replace(stmt.intrinsic, emit={}))  # type: ignore[type-var]
            elif hasattr(stmt, "body"):
                stmt = replace(stmt, body=strip(stmt.body))  # type: ignore[type-var]
            found.append(stmt)
        return tuple(found)

    broken = replace(kernel, main=replace(kernel.main, body=strip(kernel.main.body)))  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=r"x86/vfmadd.f32.zmm has no emit.c"):
        print_c(broken)


def test_names_that_c_reserves() -> None:
    """A program may call its tensors `double` or `B_at`; the C compiles all the same (see tests/cpu)."""
    kernel, _ = CASES["stencil"]()
    renamed = replace(kernel, main=replace(kernel.main, body=(loop("double", 2, Comment("*/ x")),)))
    source = print_c(renamed).source
    assert "for (ptrdiff_t double_ = 0;" in source
    assert "/* * / x */" in source
