"""Names in exported C: what a person calls a tensor is free, unless the language or printed code needs it."""

from __future__ import annotations

import pytest

from autosched.codegen.c_like.names import Names
from autosched.codegen.cuda.export.reserved_names import declared


@pytest.mark.parametrize("name", ["w3x3", "y1x1", "mm64x64", "acc2x2", "A"])
def test_names_with_sizes_are_kept(name: str) -> None:
    assert Names()(name) == name


@pytest.mark.parametrize("name", ["M_PI", "FLT_MAX", "INT_MAX", "SIZE_MAX", "UINT8_MAX", "int", "gemm_t"])
def test_macros_and_keywords_are_not_taken(name: str) -> None:
    assert Names().fresh(name) == f"{name}_"


@pytest.mark.parametrize("name", ["int", "gemm_t", "f32x16", "bf16x32_operand", "e4m3fnuzx8", "load_s16x32", "boolx8"])
def test_what_printed_code_needs_is_not_taken(name: str) -> None:
    names = Names()
    assert [names.fresh(name), names.fresh(name)] == [f"{name}_", f"{name}__"]


@pytest.mark.parametrize("name", ["printf", "environ", "sinf", "pthread_create", "assert", "int", "class", "co_await"])
def test_a_function_takes_the_place_of_none_of_the_library(name: str) -> None:
    assert Names().function(name) == f"{name}_"


@pytest.mark.parametrize("name", ["rsqrt", "rsqrtf", "float4", "make_int2", "dim3", "cudaMalloc", "atomicAdd", "tex2D"])
def test_nor_of_cuda_s(name: str) -> None:
    assert Names().function(name) == name
    assert Names().function(name, declared) == f"{name}_"


@pytest.mark.parametrize("name", ["gemm", "printer", "curve", "texture", "float4x", "customer", "atomics", "row_sums"])
def test_other_names_of_functions_are_kept(name: str) -> None:
    assert Names().function(name, declared) == name
