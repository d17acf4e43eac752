"""Operands of four bits, eight to a word of an instruction's register, as the emulator's models read them."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from autosched.codegen.cuda.emulation.models import ROWS, OperandStorage
from autosched.ir.dtypes import DTYPES
from autosched.tensorize.spec.catalogue import Catalogue


@pytest.mark.parametrize("name", ["e2m1", "u4", "s4"])
def test_every_pattern_is_read(name: str) -> None:
    operand = Catalogue.builtin()["cuda/mma.m16n8k64.s4.s4.s32"].operands["a"]
    operand = replace(operand, dtype=DTYPES[name])
    codes = np.arange(operand.elements).astype(np.uint8) & np.uint8(15)
    raw = codes[::2] | codes[1::2] << 4
    storage = OperandStorage(operand, ROWS, (1, len(raw)), np.arange(operand.elements)[None])
    found = storage.elements(raw).reshape(-1)
    wanted = {
        "e2m1": codes.view(ml_dtypes.float4_e2m1fn).astype(float),
        "u4": codes.astype(float),
        "s4": codes - 16.0 * (codes > 7),
    }
    assert np.array_equal(found.astype(float), wanted[name])
    assert np.array_equal(np.signbit(found.astype(float)), np.signbit(wanted[name]))
