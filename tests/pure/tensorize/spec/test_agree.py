"""A target and the catalogue: names in one that the other lacks are refused, with the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from autosched import api
from autosched.cli.inputs import intrinsic_paths
from autosched.errors import SpecError
from autosched.machine.agree import refuse_misspelt
from autosched.machine.catalogue import load_target, target_names
from autosched.machine.spec import target_from_yaml
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

OCTO = """\
isa: octo
requires: [{feature}]
intrinsics:
  - name: mma
    scope: core
    semantics: |
      def mma(a: s8[8, 8], b: s8[8, 8], c: s32[8, 8]):
          for i, j, k in grid(8, 8, 8):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
    timing: {{latency: 9, interval: 8}}
"""
CHIP = """\
name: octo-chip
isa: octo
features: [{feature}]
units:
  cores: 1
  clock: 1 GHz
  rates: {{{rate}: 0.125 issue/cycle}}
memories:
{memories}
  - {{name: DRAM, bytes: 1 GiB, bandwidth: 8 B/cycle, latency: 90 cycles, shared_by: device}}
"""
PAD = "  - {name: pad, bytes: 64 KiB, bandwidth: 64 B/cycle, latency: 2 cycles, holds: [inputs]}"
SUMS = "  - {name: sums, bytes: 16 KiB, bandwidth: 128 B/cycle, latency: 1 cycles, holds: [accumulators]}"


def _chip(feature: str = "octo_mma", rate: str = "octo/mma", memories: str = f"{SUMS}\n{PAD}") -> str:
    return CHIP.format(feature=feature, rate=rate, memories=memories)


def _known(feature: str = "octo_mma") -> Catalogue:
    return Catalogue.builtin().with_intrinsics(load_text(OCTO.format(feature=feature), "octo.yaml"))


def test_what_agrees_is_accepted() -> None:
    refuse_misspelt(target_from_yaml(_chip(), "chip.yaml"), _known())
    refuse_misspelt(target_from_yaml(_chip("octo_mma, debug_port"), "chip.yaml"), _known())


@pytest.mark.parametrize("name", target_names())
def test_built_in_targets_agree(name: str) -> None:
    refuse_misspelt(load_target(name), Catalogue.builtin())


def test_features_of_older_cpus_are_no_misspellings() -> None:
    avx = target_from_yaml(_chip("avx, fma4, avx512_vbmi", "load").replace("isa: octo", "isa: x86"), "x")
    refuse_misspelt(avx, Catalogue.builtin())


@pytest.mark.parametrize(("target", "intrinsic"), [("octo_mm", "octo_mma"), ("octo_mma", "octo_mm")])
def test_a_misspelt_feature_is_refused_on_either_side(target: str, intrinsic: str) -> None:
    with pytest.raises(SpecError, match=f"requires the feature '{target}'") as caught:
        refuse_misspelt(target_from_yaml(_chip(target), "chip.yaml"), _known(intrinsic))
    assert caught.value.hint is not None
    assert f"did you mean '{intrinsic}', which octo/mma requires?" in caught.value.hint


@pytest.mark.parametrize(("rate", "near"), [("octo/mmma", "octo/mma"), ("x86/vpdpbusd.zm", "x86/vpdpbusd.zmm")])
def test_a_rate_of_no_instruction_is_refused(rate: str, near: str) -> None:
    with pytest.raises(SpecError, match=rf"units\.rates: no instruction is called '{rate}'") as caught:
        refuse_misspelt(target_from_yaml(_chip(rate=rate), "chip.yaml"), _known())
    assert f"did you mean '{near}'?" in str(caught.value.hint)


def test_scratchpads_stand_in_any_order() -> None:
    one = target_from_yaml(_chip(memories=f"{SUMS}\n{PAD}"), "a")
    other = target_from_yaml(_chip(memories=f"{PAD}\n{SUMS}"), "b")
    assert sorted(m.name for m in one.memories) == sorted(m.name for m in other.memories)
    small = _chip(memories=f"{PAD}\n{SUMS}").replace("1 GiB", "32 KiB")
    with pytest.raises(SpecError, match=r"DRAM .* is smaller than pad"):
        target_from_yaml(small, "c")
    quick = _chip(memories=f"{PAD}\n{SUMS}").replace("90 cycles", "1 cycles")
    with pytest.raises(SpecError, match="DRAM answers sooner than pad"):
        target_from_yaml(quick, "d")


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "octo.yaml"
    file.write_text(OCTO.format(feature="octo_mma"))
    (tmp_path / "link.yaml").symlink_to(file)
    monkeypatch.setenv("AUTOSCHED_INTRINSICS", str(file))
    assert intrinsic_paths([str(file)]) == (str(file),)
    both = Catalogue.builtin().with_paths([*intrinsic_paths([str(file)]), tmp_path, tmp_path / "link.yaml"])
    assert len([n for n in both if n.startswith("octo/")]) == 1


def test_a_device_takes_a_target_s_name_and_file(tmp_path: Path) -> None:
    chip = tmp_path / "chip.yaml"
    chip.write_text(_chip())
    gemm = api.workload("matmul", m=8, n=8, k=8, a="s8", b="s8")
    for target in (chip, str(chip), "gemmini"):
        api.device("simulator", gemm, target)
