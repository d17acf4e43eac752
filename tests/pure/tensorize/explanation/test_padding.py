"""Useful work and padding are said, with the shape of an instruction that would waste less."""

from __future__ import annotations

from functools import partial

import pytest

from autosched import api
from autosched.tensorize.explanation.padding import fitting, padding_lines
from autosched.tensorize.match_types import Mapping
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

MMA = """\
isa: npu
intrinsics:
  - name: {name}
    scope: core
    semantics: |
      def mma(a: s8[{m}, 16], b: s8[16, 16], c: s32[{m}, 16]):
          for i, j, k in grid({m}, 16, 16):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
"""


def _mapping(rows: int, m: int, n: int = 64, k: int = 64, name: str = "mma") -> Mapping:
    (made,) = load_text(MMA.format(m=rows, name=name))
    program = api.workload("matmul", m=m, n=n, k=k, a="s8", b="s8")
    (found,) = [x for x in api.match(program, made).mappings if x.axes == {"i": ("i",), "j": ("j",), "k": ("p",)}]
    return found


def test_one_row_of_sixteen() -> None:
    few = _mapping(4, 1, name="few")
    assert padding_lines(_mapping(16, 1), [few, _mapping(16, 1)]) == [
        "6% of the work of npu/mma is useful, 94% padding (i: 1 of 16)",
        "an instruction of 1 along i (16 here) would do 100% useful work",
        "npu/few, in this space too, does 25% useful work",
    ]


def test_two_axes() -> None:
    said = padding_lines(_mapping(16, 20, 68))
    assert said == [
        "53% of the work of npu/mma is useful, 47% padding (i: 20 of 32, j: 68 of 80)",
        "an instruction of 4 along i (16 here) and 8 along j (16 here) would do 94% useful work",
    ]


def test_no_shape_is_told_that_a_machine_does_not_have() -> None:
    catalogue = Catalogue.builtin()
    known = partial(catalogue.of_isa, "cuda", kind="compute")

    def lines(name: str, **sizes: int) -> list[str]:
        program = api.workload("matmul", a="f16", b="f16", acc="f32", **sizes)
        mappings = api.match(program, catalogue.get(name)).mappings
        first = next(m for m in mappings if m.axes == {"i": ("i",), "j": ("j",), "k": ("p",)})
        return padding_lines(first, (), known)

    assert len(lines("cuda/wgmma.m64n64k16.f16.f32", m=32, n=64, k=64)) == 1  # none has 32 rows
    assert lines("cuda/wgmma.m64n64k16.f16.f32", m=64, n=32, k=64)[1:] == [
        "cuda/wgmma.m64n32k16.f16.f32, of 32 along j (64 here), would do 100% useful work"
    ]


def test_nothing_is_said_of_what_fits() -> None:
    assert padding_lines(_mapping(16, 64)) == []
    assert padding_lines(_mapping(16, 1000, 64)) == []


@pytest.mark.parametrize(("extent", "size", "best"), [(1, 16, 1), (20, 16, 4), (100, 16, 8), (64, 16, 16), (17, 16, 2)])
def test_fitting(extent: int, size: int, best: int) -> None:
    assert fitting(extent, size) == best
