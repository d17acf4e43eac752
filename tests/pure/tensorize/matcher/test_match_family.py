"""Kin get one answer, and it is the one that each would get by itself."""

from dataclasses import replace

import pytest

import autosched
from autosched.tensorize import Catalogue, Match, match
from autosched.tensorize.matcher.family_answer import carried, kinship
from autosched.tensorize.spec.load import load_text

CATALOGUE = Catalogue.builtin()
KIN = [
    ["cuda/wgmma.m64n8k32.u8.s8.s32", "cuda/wgmma.m64n24k32.u8.s8.s32", "cuda/wgmma.m64n256k32.u8.s8.s32"],
    ["cuda/wgmma.m64n16k16.f16.f32", "cuda/wgmma.m64n200k16.f16.f32"],
    ["arm/usdot", "arm/usdot.sve512"],
    ["x86/vpdpbusd.zmm", "x86/vpdpbusd.ymm"],
    ["portable/mac.s8.s8.s32.v4", "portable/mac.s8.s8.s32.v16"],
    # of several machines
    ["arm/usdot", "x86/vpdpbusd.zmm"],
    ["hip/wmma.f32.16x16x16.f16", "maca/wmma.m16n16k16.f16.f32"],
    ["cuda/mma.m8n8k16.s8.s8.s32", "gemmini/matmul.preload.compute"],
    ["arm/fmla.f32.sve128", "x86/masked.vfmadd.f32.zmm"],
]
PROGRAMS = [("matmul", {"a": "u8", "b": "s8", "m": 100}), ("conv2d", {"a": "f16", "b": "f16"}), ("gemv", {})]


def _untimed(found: Match) -> Match:
    def without(certificate):
        return replace(certificate, obligations=tuple(replace(o, seconds=0.0) for o in certificate.obligations))

    mappings = tuple(replace(m, certificate=without(m.certificate)) for m in found.mappings)
    return replace(found, seconds=0.0, mappings=mappings)


@pytest.mark.parametrize(("name", "sizes"), PROGRAMS, ids=[n for n, _ in PROGRAMS])
def test_the_answer_is_the_members_own(name, sizes):
    program = autosched.workload(name, **sizes)
    for first, *others in KIN:
        (known,) = match(program, [CATALOGUE[first]])
        for other in others:
            assert kinship(CATALOGUE[other]) == kinship(CATALOGUE[first]) is not None
            (alone,) = match(program, [CATALOGUE[other]])
            assert _untimed(carried(known, CATALOGUE[other])) == _untimed(alone)
    together = match(program, [CATALOGUE[n] for names in KIN for n in names])
    assert [m.intrinsic.name for m in together] == [n for names in KIN for n in names]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cuda/wmma.m16n16k16.f16.f32", "cuda/wmma.m8n32k16.f16.f32"),  # a square tile may be transposed
        ("cuda/mma.m16n8k16.s8.s8.s32", "cuda/mma.m16n8k32.s8.s8.s32"),  # the depth is another
        ("cuda/mma.m16n8k32.e4m3.e4m3.f32", "cuda/wgmma.m64n8k32.e4m3.e4m3.f32"),  # the accumulator is another
        ("x86/vpdpbusd.ymm", "cuda/dp4a.u8.s8"),
        ("portable/mac.s8.s8.s32.v1", "portable/mac.s8.s8.s32.v4"),  # one lane is no axis
    ],
)
def test_no_kin(one, other):
    assert kinship(CATALOGUE[one]) is None or kinship(CATALOGUE[one]) != kinship(CATALOGUE[other])


def test_addresses_that_are_no_plain_axes_have_no_kin():
    text = """\
isa: npu
intrinsics:
  - name: window
    semantics: |
      def window(a: u8[6], b: u8[3], c: s32[4]):
          for i, k in grid(4, 3):
              c[i] += s32(a[i + k]) * s32(b[k])
"""
    (made,) = load_text(text)
    assert kinship(made) is None
