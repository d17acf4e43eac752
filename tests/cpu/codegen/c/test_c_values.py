"""Every operation, function and cast of the language in exported C against the interpreter, and random expressions."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from support.compiled.c_build import build, call, needs_compiler
from support.match.examples import examples
from support.programs.value_cases import (
    COMPUTED,
    EXACT_FUNCTIONS,
    LIBRARY_FUNCTIONS,
    RANDOM_INPUTS,
    casts,
    corner_arrays,
    corners,
    differing,
    kernel_of,
    operations,
    random_arrays,
    read,
    small_values,
)

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.tree.kernel import Kernel
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Arith, Cast, Comparison, Literal, Select, Unary, Value

pytestmark = [needs_compiler, pytest.mark.compiler]
UNSIGNED = ("u4", "u8", "u16", "u32", "u64")


def compare(
    kernels: list[tuple[Kernel, Kernel, dict[str, Any]]], folder: Path, ulps: int = 0, flags: tuple[str, ...] = ("-O1",)
) -> None:
    """Build all kernels in one go; each output equals what the interpreter makes of the kernel's twin."""
    library = build([print_c(k) for k, _, _ in kernels], folder, *flags)
    wrong = []
    for kernel, twin, arrays in kernels:
        got, want = call(library, kernel, arrays), run_kernel(twin, arrays)
        for name in kernel.program.outputs:
            bad = differing(got[name], want[name], ulps).nonzero()[0]
            if len(bad):
                at = {n: a[bad[0]] for n, a in arrays.items()}
                shown = f"C {got[name][bad[0]]}, interpreter {want[name][bad[0]]}"
                wrong.append(f"{kernel.name}.{name}: {len(bad)} differ, first at {at}: {shown}")
    assert not wrong, "\n".join(wrong)


def twins(name: str, values: dict[str, Value], inputs: dict[str, DType], arrays: dict[str, Any], lanes: int = 1) -> Any:
    """The kernel `lanes` at a time, and one that is quicker to interpret."""
    n = len(arrays["x"])
    return kernel_of(name, values, inputs, n, lanes), kernel_of(name, values, inputs, n, 256), arrays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lanes", "names"), [(1, COMPUTED), (16, COMPUTED)], ids=["1", "16"]
)
def test_operations(lanes: int, names: tuple[DType, ...], tmp_path: Path) -> None:
    kernels = []
    for dtype in names:
        values = operations(dtype, EXACT_FUNCTIONS)
        kernels.append(twins(f"ops_{dtype}", values, dict.fromkeys("xyz", dtype), corner_arrays(dtype), lanes))
    compare(kernels, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 8, 16])
def test_casts(lanes: int, tmp_path: Path) -> None:
    every = DTYPES.values()
    compare([twins(f"casts_{d}", casts(d), {"x": d}, {"x": corners(d)}, lanes) for d in every], tmp_path)


def test_library_functions(tmp_path: Path) -> None:
    """exp and its kind: the C library's, so an ulp or two aside."""
    kernels = []
    for dtype in COMPUTED:
        if dtype.is_float:
            found = operations(dtype, LIBRARY_FUNCTIONS)
            values = {f"{f}_": found[f"{f}_"] for f in LIBRARY_FUNCTIONS}
            kernels.append(twins(f"library_{dtype}", values, {"x": dtype}, {"x": corners(dtype)}))
    compare(kernels, tmp_path, ulps=2)


def test_flipped_bits_are_compared_without_a_warning(tmp_path: Path) -> None:
    """GCC takes `x ^ 65535` of a promoted value for its complement, and warned where one was compared."""
    inputs = {f"{n}_{d}": DTYPES[d] for n in "xy" for d in UNSIGNED}
    values: dict[str, Value] = {}
    for dtype in (DTYPES[d] for d in UNSIGNED):
        x, y, all_ones = read(f"x_{dtype}", dtype), read(f"y_{dtype}", dtype), Literal(dtype.limits[1], dtype)
        clamped = Cast(Literal(8725949, DTYPES["s32"]), dtype, True)
        parts = {"element": x, "clamped": clamped, "product": Arith("*", x, Unary("-", y, dtype), dtype)}
        for name, part in parts.items():
            flipped = Comparison("<=", Arith("^", part, all_ones, dtype), parts["product"])
            values[f"{name}_{dtype}"] = Select(flipped, y, Arith("^", all_ones, part, dtype), dtype)
    arrays = {name: corner_arrays(dtype)[name[0]][:64] for name, dtype in inputs.items()}
    kernel = kernel_of("flipped", values, inputs, 64)
    compare([(kernel, kernel, arrays)], tmp_path)


# Shrinking would build hundreds of libraries; the failing outputs are named one by one instead.
@pytest.mark.slow
@examples(4, phases=[Phase.generate])
@given(st.lists(small_values(), min_size=24, max_size=48), st.sampled_from([1, 8]), st.integers(0, 2**31))
def test_random_expressions(values: list[Value], lanes: int, seed: int) -> None:
    """Many in one library; the values read `x_<dtype>` and use every operator, cast and choice."""
    with TemporaryDirectory() as folder:
        outputs = {f"y{n}": v for n, v in enumerate(values)}
        kernel = kernel_of("random", outputs, dict(RANDOM_INPUTS), 37, lanes)
        compare([(kernel, kernel, random_arrays(37, seed))], Path(folder), flags=("-O1", "-Wno-type-limits"))
