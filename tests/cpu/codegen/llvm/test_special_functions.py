"""`scalb` and `lookup` in any number of lanes: compiled code and exported C against the interpreter, the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compiled.c_build import build, needs_compiler
from support.compiled.c_build import call as call_c
from support.compiled.llvm_kernels import needs, run, same
from support.programs.value_cases import kernel_of, read

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.llvm.machine.compile import assembly
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import Kernel
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Call, Literal, Value
from autosched.tensorize.spec.catalogue import Catalogue

N = 288
FORMULAS = {i.formula.name: i.formula for i in Catalogue.builtin().of_isa("x86", kind="function") if i.formula}
LANES = (1, 4, 8, 16, 32, 48)


def inputs(dtype: DType) -> Any:
    """Special values beside ordinary ones; integers of all kinds."""
    rng = np.random.default_rng(2)
    if dtype.is_integer:
        return rng.integers(*dtype.limits, N, dtype=dtype.numpy)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 88.8, -103.9, 1e-45, 0.5, -149.5, 128.0, 3e9]
    both = [(a, b) for a in special for b in special]
    drawn = np.concatenate([np.array(both).ravel()[:N], rng.normal(0, 40, max(0, N - 2 * len(both)))])
    return drawn[:N].astype(dtype.numpy)


def of_lanes(values: dict[str, Value], dtypes: dict[str, DType], lanes: int) -> Kernel:
    """A kernel that stores each value of its lanes."""
    called = {v.function for v in values.values() if isinstance(v, Call)}
    formulas = {n: f for n, f in FORMULAS.items() if n in called}
    return replace(kernel_of("k", values, dtypes, N, lanes), isa="x86", formulas=formulas)


def cases() -> tuple[dict[str, Value], dict[str, DType]]:
    dtypes = {n: DTYPES[d] for n, d in (("x", "f32"), ("y", "f32"), ("z", "f64"), ("w", "f64"), ("p", "s32"))}
    x, y, z, w, p = (read(n, d) for n, d in dtypes.items())
    many = tuple(Literal(n / 7, DTYPES["f32"]) for n in range(32))
    return {
        "scaled": Call("scalb", (x, y), x.dtype),
        "scaled_wide": Call("scalb", (z, w), z.dtype),
        "few": Call("lookup", (p, *many[:4]), x.dtype),
        "all": Call("lookup", (p, *many), x.dtype),
    }, dtypes


def differing(got: dict[str, Any], want: dict[str, Any]) -> list[str]:
    return [n for n in want if not same(got[n], want[n]).all()]


@pytest.mark.parametrize("lanes", LANES)
def test_on_any_machine(lanes: int) -> None:
    values, dtypes = cases()
    k, arrays = of_lanes(values, dtypes, lanes), {n: inputs(d) for n, d in dtypes.items()}
    arrays["y"], arrays["w"] = arrays["y"][::-1].copy(), arrays["w"][::-1].copy()
    assert differing(run(k, arrays), run_kernel(k, arrays)) == []


def functions(lanes: int) -> Kernel:
    x = read("x", DTYPES["f32"])
    return of_lanes({f.function: Call(n, (x,), x.dtype) for n, f in FORMULAS.items()}, {"x": x.dtype}, lanes)


@needs("avx512f", "fma")
@pytest.mark.parametrize("lanes", LANES)
def test_functions_of_avx512(lanes: int) -> None:
    k, arrays = functions(lanes), {"x": inputs(DTYPES["f32"])}
    assert differing(run(k, arrays), run_kernel(k, arrays)) == []


@needs("avx512f", "fma")
def test_they_are_two_instructions() -> None:
    text = assembly(print_llvm(functions(16)))
    assert "vscalefps" in text
    assert "vpermt2ps" in text or "vpermi2ps" in text
    assert "ldexp" not in text


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
@needs("avx512f", "fma")
@pytest.mark.parametrize(
    ("flags", "widths"),
    [(("-O1", "-mno-avx512f", "-Wno-psabi"), (1, 16)), (("-O1",), (8, 16, 32))],
    ids=["plain", "avx512"],
)
def test_exported_c(flags: tuple[str, ...], widths: tuple[int, ...], tmp_path: Path) -> None:
    kernels = []
    for lanes in widths:
        kernels.append(replace(functions(lanes), name=f"functions_{lanes}"))
        kernels.append(replace(of_lanes(*cases(), lanes), name=f"words_{lanes}"))
    library = build([print_c(k) for k in kernels], tmp_path, *flags)
    for k in kernels:
        arrays = {n: inputs(k.buffers[n].dtype) for n in k.main.buffers if n not in k.program.outputs}
        assert differing(call_c(library, k, arrays), run_kernel(k, arrays)) == [], k.name


@needs_compiler
@pytest.mark.compiler
def test_what_stands_in_for_an_instruction_may_be_unused(tmp_path: Path) -> None:
    """Clang warns of functions in a file that it does not use; so does GCC of those that are not `inline`."""
    made = replace(of_lanes(*cases(), 16), name="unused")
    build([print_c(made)], tmp_path, "-O1", "-Dinline=", "-Wno-attributes")
