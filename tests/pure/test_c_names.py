"""Names in exported C: what a person calls a tensor is free, unless the language or printed code needs it."""

from __future__ import annotations

import pytest

from autosched.codegen.c.names import Names


@pytest.mark.parametrize("name", ["w3x3", "y1x1", "mm64x64", "acc2x2", "A"])
def test_names_with_sizes_are_kept(name: str) -> None:
    assert Names()(name) == name


@pytest.mark.parametrize("name", ["int", "gemm_t", "f32x16", "bf16x32_operand", "e4m3fnuzx8", "load_s16x32", "boolx8"])
def test_what_printed_code_needs_is_not_taken(name: str) -> None:
    names = Names()
    assert [names.fresh(name), names.fresh(name)] == [f"{name}_", f"{name}__"]
