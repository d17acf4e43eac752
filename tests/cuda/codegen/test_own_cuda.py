"""CUDA texts of one's own instructions are compiled before they are exported, where NVRTC is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.compile.nvrtc import Cubin
from autosched.device.cuda.compile.toolkit import toolkits
from autosched.device.cuda.own_texts import check_texts
from autosched.errors import MissingError, SpecError
from autosched.ir import resolve
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tensorize.spec.catalogue import Catalogue

A100 = load_target("nvidia-a100")
OWN = """\
isa: cuda
requires: [sm_61]
intrinsics:
  - name: own4
    semantics: |
      def own4(a: s8[4], b: s8[4], c: s32[1]):
          for k in range(4):
              c[0] += s32(a[k]) * s32(b[k])
    numerics: {{accumulate: exact}}
    operands:
      a: {{registers: 1 x b32}}
      b: {{registers: 1 x b32}}
      c: {{registers: 1 x b32}}
    rules: ["a and b: 4 consecutive bytes along k in one aligned 32-bit word"]
    emit: "{text}"
"""
RIGHT = "dp4a.s32.s32 {c}, {a}, {b}, {c};"


def _kernel(folder: Path, text: str) -> Kernel:
    (folder / "own.yaml").write_text(OWN.format(text=text))
    known = Catalogue.builtin().with_paths([folder / "own.yaml"])
    program = resolve("matmul", {"m": 32, "n": 32, "k": 32, "a": "s8", "b": "s8", "acc": "s32"})
    request = TuneRequest(program, A100, device="simulator", catalogue=known, only=("cuda/own4",))
    plan = next(p for p in plans_of(request)[1] if p.tensor_parts)
    return lower(plan, plan.space.schedule(int(plan.space.enumerate(limit=1).ids[0])))


@pytest.mark.skipif(not toolkits(), reason="no NVRTC")
def test_a_text_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"own.yaml: the kernel with cuda/own4 does not compile"):
        list(check_texts(_kernel(tmp_path, RIGHT.replace("dp4a", "dp4b")), A100, measured=False))


@pytest.mark.skipif(not toolkits(), reason="no NVRTC")
def test_a_text_that_no_card_ran_is_said(tmp_path: Path) -> None:
    kernel = _kernel(tmp_path, RIGHT)
    assert list(check_texts(kernel, A100, measured=True)) == []
    (said,) = check_texts(kernel, A100, measured=False)
    assert said.endswith("the CUDA text of cuda/own4 was not checked: it compiles, and no GPU has run it")


def test_without_a_compiler_it_is_said(tmp_path: Path) -> None:
    class Without(CudaBuilder):
        def build(self, unit: TranslationUnit) -> Cubin:
            raise MissingError("no NVRTC for sm_80")

    (said,) = check_texts(_kernel(tmp_path, RIGHT), A100, measured=False, builder=Without)
    assert "it was not compiled: no NVRTC for sm_80" in said
