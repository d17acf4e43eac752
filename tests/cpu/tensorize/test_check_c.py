"""`check` compiles and runs an intrinsic's C text, and passes on what the compiler says."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from support.own_instruction import OWN, RIGHT

from autosched.backends import X86
from autosched.codegen.c.export.shared_library import compiler
from autosched.errors import MissingError, ScratchError
from autosched.machine.host import host_features
from autosched.tensorize.check.c_text import CTools
from autosched.tensorize.check.verify import CheckReport, check
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

FEATURES = host_features()
pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def tools() -> CTools:
    try:
        return CTools(tuple(compiler()))
    except MissingError as error:
        pytest.skip(str(error))


def _report(tools: CTools, text: str, isa: str = "portable", header: str = "") -> CheckReport:
    (made,) = load_text(OWN.format(isa=isa, more=f"header: {header}" if header else "", text=text))
    return check(made, FEATURES, tools=tools)


def test_right_text_passes(tools: CTools) -> None:
    report = _report(tools, RIGHT)
    assert report.ok
    assert [p.status for p in report.parts if p.what == "C text"] == ["passed"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("text", "header", "said"),
    [
        ("{c} - {a} * {b}", "", "the C text gives"),
        (f"{RIGHT} +", "", "error: expected expression"),
        ("_mm_axpyy({a}, {b}, {c})", "", "_mm_axpyy"),
        (RIGHT, "imintrin.h", "imintrin.h"),
        ("{c} + {a} * {b} + (__builtin_trap(), 0)", "", "signal"),
        ("({{ extern void _exit(int); _exit(0); {c} + {a} * {b}; }})", "", "ended the process"),
        ("{c} + {a} * {b} + 0 * puts(\\\"x\\\")", "stdio.h", "wrote to its output"),
        ("{c} + {a} * b + 0 * {b}", "", "error: "),
    ],
)
def test_wrong_text_fails_with_what_the_compiler_says(tools: CTools, text: str, header: str, said: str) -> None:
    report = _report(tools, text, header=header)
    assert not report.ok
    assert said in str(report)


def test_a_text_that_never_ends_is_stopped(tools: CTools) -> None:
    report = _report(replace(tools, here_s=1.0), "({{ volatile int z = 1; while (z); {c} + {a} * {b}; }})")
    assert [p.detail for p in report.parts if p.status == "failed"] == ["the code did not end within 1 s"]


def test_an_accelerator_s_header_is_its_own(tools: CTools) -> None:
    report = _report(tools, RIGHT, "npu", "npu_vendor.h")
    assert report.ok
    assert "npu_vendor.h is not on this machine" in str(report)
    assert not _report(tools, f"{RIGHT} +", "npu").ok


def test_a_feature_that_no_backend_describes_gets_no_switch(tools: CTools) -> None:
    """What compiles without one is compiled; what does not may need the switch that nobody names."""
    (right, wrong) = (
        check(load_text(OWN.format(isa="npu", more="requires: [npu_dot]", text=text))[0], FEATURES, tools=tools)
        for text in (RIGHT, "npu_axpy({a}, {b}, {c})")
    )
    assert "this machine lacks npu_dot; it compiles" in str(right)
    assert wrong.ok
    assert "not compiled: no backend says how a compiler is told of npu_dot" in str(wrong)


def test_a_temporary_folder_that_cannot_be_written_is_said(
    tools: CTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(ScratchError, match="temporary folder"):
        _report(tools, RIGHT)


def test_a_misspelt_llvm_intrinsic_is_named(tools: CTools) -> None:
    text = OWN.format(isa="portable", more="", text=RIGHT)
    call = "call <4 x i32> @llvm.x86.avx512.vpdpbusdd.512(<4 x i32> %{t}, <4 x i32> {c})"
    wrong = text.replace("add <4 x i32> %{t}, {c}", call)
    (made,) = load_text(wrong)
    said = str(check(made, FEATURES))
    assert "LLVM has no llvm.x86.avx512.vpdpbusdd.512; did you mean llvm.x86.avx512.vpdpbusd.512?" in said
    assert "worker" not in said


@pytest.mark.slow
def test_built_in_texts_pass(tools: CTools) -> None:
    """One of each form; `test_spec_c` runs all."""
    chosen = ["portable/mac.s8.s8.s32.v1", "x86/vfmadd.f32.ymm", "x86/vpdpbusd.zmm", "x86/tdpbssd", "arm/bfdot"]
    reports = [check(Catalogue.builtin()[n], FEATURES, tools=tools) for n in chosen]
    assert not [str(r) for r in reports if not r.ok]


def test_switches_are_spelt_as_compilers_do() -> None:
    assert X86.c_flags({"avx_vnni_int8", "avx512_vnni", "amx_int8"}) == "-mamx-int8 -mavx512vnni -mavxvnniint8"
