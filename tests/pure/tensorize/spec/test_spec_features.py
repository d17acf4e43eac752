"""A feature that nothing has, and that is nearly one that exists, is refused where its file is loaded."""

from __future__ import annotations

import platform

import pytest

from autosched import api
from autosched.backends import BACKENDS
from autosched.errors import SpecError
from autosched.machine.catalogue import load_target, target_names
from autosched.machine.features import our_name
from autosched.machine.host import llvm_features
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.features import misspelt
from autosched.tensorize.spec.load import load_text

TEXT = """\
isa: x86
requires: [{file}]
intrinsics:
  - name: one
    requires: [{entry}]
    semantics: |
      def one(a: f32[8], b: f32[8], c: f32[8]):
          for i in range(8):
              c[i] += a[i] * b[i]
    numerics: {{accumulate: sequential, fused: true, targets: [{{when: [{when}], accumulate: sequential}}]}}
"""
GOOD = {"file": "avx512_vnni", "entry": "avx2", "when": "avx512f"}


@pytest.mark.parametrize(
    ("place", "name", "line", "meant"),
    [
        ("file", "avx512vnni", 2, "avx512_vnni"),
        ("entry", "AVX2", 5, "avx2"),
        ("entry", "vnni", 5, "avx512_vnni"),
        ("file", "axv2", 2, "avx2"),
        ("when", "avz2", 10, "avx2"),
        ("when", "avx512", 10, "avx512f"),
    ],
)
def test_a_misspelt_feature_is_refused_where_it_stands(place: str, name: str, line: int, meant: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_text(TEXT.format(**{**GOOD, place: name}), "own.yaml")
    assert caught.value.location is not None
    assert (caught.value.location.file, caught.value.location.line) == ("own.yaml", line)
    assert f"feature {name!r}" in caught.value.message
    assert f"did you mean {meant!r}" in (caught.value.hint or "")


@pytest.mark.parametrize("isa", [b.isa for b in BACKENDS.values() if b.features])
def test_one_slip_is_refused_in_every_dialect(isa: str) -> None:
    """Two letters in the other order, one too few, one too many, another one."""
    known = BACKENDS[isa].features
    for name in (f for f in known if len(f) > 4):
        letters = [k for k in range(1, len(name) - 1) if name[k : k + 2].isalpha() and name[k] != name[k + 1]]
        for k in letters[:1]:
            slips = (
                f"{name[:k]}{name[k + 1]}{name[k]}{name[k + 2 :]}", name[:k] + name[k + 1 :], f"{name[:k]}q{name[k:]}"
            )  # fmt: skip
            assert all(s in known or misspelt(s, isa) in known for s in slips), name


def test_features_of_one_s_own_and_of_other_machines_are_no_mistake() -> None:
    (made,) = load_text(TEXT.format(**{**GOOD, "entry": "matrix_engine"}), "own.yaml")
    assert made.requires == {"avx512_vnni", "matrix_engine"}
    assert load_text(TEXT.format(**GOOD).replace("x86", "npu").replace("avx2", "avx22"), "own.yaml")
    assert misspelt("sm_130", "cuda") is None
    assert misspelt("xcore1500", "maca") is None
    assert misspelt("sm90", "cuda") == "sm_90"


def test_what_exists_is_known() -> None:
    for intrinsic in Catalogue.builtin().outlines():
        for feature in intrinsic.requires:
            assert misspelt(feature, intrinsic.isa) is None, intrinsic.name
    for name in target_names():
        target = load_target(name)
        assert not [f for f in target.features if misspelt(f, target.isa)], name
    for isa, features in ((b.isa, b.features) for b in BACKENDS.values()):
        assert not [f for f in features if misspelt(f, isa)]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="features of an x86 CPU")
def test_what_llvm_knows_is_known() -> None:
    assert not [f for f in map(our_name, llvm_features()) if misspelt(f, "x86")]


def test_in_python_too() -> None:
    with pytest.raises(SpecError, match="avx512vnni"):
        api.load_intrinsics(TEXT.format(**{**GOOD, "file": "avx512vnni"}))
