"""Instructions against their descriptions, on the machine that has them."""

from importlib import resources

import numpy as np
import pytest

from autosched.machine.host import host_features
from autosched.tensorize.check.native import NativeError, NativeRunner
from autosched.tensorize.check.verify import check, check_all
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

FEATURES = host_features()
FILES = resources.files("autosched.intrinsics")


def _file(name: str) -> str:
    return FILES.joinpath(name).read_text(encoding="utf-8")


def _need(*features: str) -> None:
    if missing := [f for f in features if f not in FEATURES]:
        pytest.skip(f"this machine lacks {', '.join(missing)}")


def _runs_here(intrinsic: Intrinsic) -> bool:
    return "llvm" in intrinsic.emit and intrinsic.requires <= FEATURES


def _some_of_each_family() -> list[Intrinsic]:
    """All that run here; of the others the first, the middle and the last of each family."""
    families: dict[str, list[Intrinsic]] = {}
    for made in Catalogue.builtin().values():
        families.setdefault(made.family, []).append(made)
    chosen = []
    for members in families.values():
        last = len(members) - 1
        spread = {0, last // 2, last}
        chosen += [m for n, m in enumerate(members) if n in spread or _runs_here(m)]
    return chosen


@pytest.mark.slow
def test_every_builtin_intrinsic_is_what_it_says():
    reports = list(check_all(_some_of_each_family(), FEATURES))
    assert not [str(r) for r in reports if not r.ok]
    ran = {r.intrinsic for r in reports if r.ran}
    here = {n for n, i in Catalogue.builtin().items() if _runs_here(i)}
    inexact = {r.intrinsic for r in reports if "leaves the bits open" in str(r)}  # there is nothing to compare with
    assert ran == here - inexact
    assert len([n for n in ran if n.startswith("portable/")]) == 52
    fragments = {(r.intrinsic, p.what) for r in reports for p in r.parts if p.status == "proved"}
    assert ("cuda/mma.m16n8k32.e4m3.e5m2.f32", "fragment of a") in fragments


FMA = "fma(a[i], b[i], c[i])"
BF16 = "fma(f32(a[i, 0]), f32(b[i, 0]), fma(f32(a[i, 1]), f32(b[i, 1]), c[i]))"
# (file, features, right text, wrong text): descriptions that are nearly true
PLANTED = [
    ("x86/avx512_vnni.yaml", ["avx512_vnni"], "@llvm.x86.avx512.vpdpbusd.", "@llvm.x86.avx512.vpdpbusds."),
    ("x86/avx512_vnni.yaml", ["avx512_vnni"], "{n}, 4], b: s8[{n}, 4]", "{n}, 4], b: u8[{n}, 4]"),
    ("x86/avx512_vnni.yaml", ["avx512_vnni"], "packed: [i, k]}\n", "packed: [k, i]}\n"),
    (
        "x86/avx512_vnni.yaml",
        ["avx512_vnni"],
        "<{bytes} x i8> {a}, <{bytes} x i8> {b}",
        "<{bytes} x i8> {b}, <{bytes} x i8> {a}",
    ),
    ("x86/avx512_bf16.yaml", ["avx512_bf16"], ", subnormals: flushed", ""),
    ("x86/avx512_bf16.yaml", ["avx512_bf16"], BF16, BF16.replace("0]", "2]").replace("1]", "0]").replace("2]", "1]")),
    ("x86/avx512_bf16.yaml", ["avx512_bf16"], BF16, "c[i] + f32(a[i, 1]) * f32(b[i, 1]) + f32(a[i, 0]) * f32(b[i, 0])"),
    ("x86/fma.yaml", ["avx512f"], FMA, "fma(a[i], c[i], b[i])"),
    ("x86/fma.yaml", ["avx512f"], "fused: true}", "fused: true, subnormals: flushed}"),
    ("portable/mac_float.yaml", [], "c[i] += a[i] * b[i]", "c[i] = fma(a[i], b[i], c[i])"),
    ("portable/mac_float8.yaml", [], "splat (i16 32256)", "%{ah}"),  # e4m3's NaN forgotten
    ("portable/mac_integer.yaml", [], "ye: sext", "ye: zext"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("file", "features", "right", "wrong"), PLANTED)
def test_a_wrong_description_is_found(file, features, right, wrong):
    _need(*features)
    text = _file(file)
    assert right in text
    planted = load_text(text.replace(right, wrong), "planted.yaml")
    reports = list(check_all(planted, FEATURES))
    failed = [r for r in reports if not r.ok]
    assert failed
    assert "the instruction gives" in str(failed[0])


def test_the_saturating_form_described_as_wrapping():
    _need("avx512_vnni")
    text = _file("x86/avx512_vnni.yaml").replace("sat_s32(", "s32(")
    wrapping = next(i for i in load_text(text) if i.name == "x86/vpdpbusds.zmm")
    report = check(wrapping, FEATURES)
    assert not report.ok
    assert "2147483647" in str(report) or "-2147483648" in str(report)


def test_what_cannot_run_here_is_skipped_with_a_reason():
    (made,) = load_text(
        _file("x86/avx_vnni.yaml").split("\n  - name: vpdpbusds")[0].replace("avx_vnni", "from_next_year")
    )
    report = check(made, FEATURES)
    assert report.ok
    assert not report.ran
    assert "lacks from_next_year" in str(report)
    wrong = (
        _file("x86/avx_vnni.yaml").replace("avx_vnni]", "from_next_year]").replace("call <8 x i32>", "call <9 x i32>")
    )
    assert not check(load_text(wrong)[0], FEATURES).ok  # the text is parsed all the same
    warp = check(Catalogue.builtin()["cuda/dp4a.s8.u8"], FEATURES)
    assert warp.ok
    assert "no emit.llvm" in str(warp)


@pytest.mark.parametrize(
    "text",
    [
        "cal <4 x i32> @llvm.x({a}, {b}, {c})",  # no such opcode
        "add <4 x i32> {a}, {b}, {c}",  # too many operands
        "call <4 x i32> @llvm.npu.none(<4 x i32> {a}, <4 x i32> {b}, <4 x i32> {c})",  # no code for it
        "select <4 x i1> {a}, <4 x i32> {b}, <4 x i32> {c}",  # ill-typed
    ],
)
def test_text_that_llvm_refuses_fails_the_check_and_nothing_else(text):
    made = load_text(f"""\
isa: npu
intrinsics:
  - name: bad
    semantics: |
      def bad(a: s32[4], b: s32[4], c: s32[4]):
          for i in range(4):
              c[i] += a[i] * b[i]
    emit:
      llvm: "{text}"
  - name: good
    semantics: |
      def good(a: s32[4], c: s32[4]):
          for i in range(4):
              c[i] += a[i]
    emit:
      llvm: "add <4 x i32> {{a}}, {{c}}"
""")
    bad, good = check_all(made, FEATURES)
    assert not bad.ok
    assert good.ok
    assert good.ran


def test_a_worker_that_hangs_is_ended():
    portable = Catalogue.builtin()["portable/mac.s8.s8.s32.v1"]
    many = {n: np.zeros((400_000, 1), o.dtype.numpy) for n, o in portable.operands.items()}
    with NativeRunner(deadline_s=0.01) as runner, pytest.raises(NativeError, match="ended the worker"):
        runner.issue(portable, many)
