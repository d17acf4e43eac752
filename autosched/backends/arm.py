"""AArch64 CPUs, through LLVM."""

from __future__ import annotations

import sys

from autosched.backends.backend import Backend
from autosched.backends.c_flags import CFlags
from autosched.backends.emulation import Emulation
from autosched.backends.language import C

_FEATURES = """
aes altnzcv asimd asimddp asimdhp asimdrdm bf16 bti ccdp ccidx ccpp clrbhb complxnum cpa crc crypto cssc d128 dit ecv
f16f32dot f16f32mm f16mm f32mm f64mm f8f16mm f8f32mm faminmax fcma flagm fp16fml fp8 fp8dot2 fp8dot4 fp8fma fp_armv8
fpac fprcvt fptoint hbc i8mm jscvt jsconv ls64 lor lse lse128 lse2 lut mops mte pan pauth pauth_lr perfmon predres
rand ras rasv2 rcpc rcpc_immo rcpc3 sb sha2 sha3 sm4 sme sme_b16b16 sme_f16f16 sme_f64f64 sme_f8f16 sme_f8f32 sme_fa64
sme_i16i64 sme_lutv2 sme_mop4 sme_tmop sme2 sme2p1 sme2p2 sme2p3 spe ssbs ssve_aes ssve_bitperm ssve_fexpa
ssve_fp8dot2 ssve_fp8dot4 ssve_fp8fma sve sve_128 sve_256 sve_512 sve_aes sve_aes2 sve_b16b16 sve_b16mm sve_bfscale
sve_bitperm sve_f16f32mm sve_sha3 sve_sm4 sve2 sve2_aes sve2_bitperm sve2_sha3 sve2_sm4 sve2p1 sve2p2 sve2p3 svebf16
svei8mm the wfxt xs
"""
EXTENSIONS = {"asimdhp": "fp16", "asimddp": "dotprod", "asimdrdm": "rdma"}
"""Extensions of `-march` that are spelt unlike the feature in /proc/cpuinfo."""


def _extensions(features: list[str]) -> str:
    """`-march=armv8.2-a+dotprod`: extensions of the architecture that all of them may be added to; none for what every
    AArch64 core has."""
    added = [EXTENSIONS.get(f, f) for f in features if f != "asimd"]
    return "+".join(["-march=armv8.2-a", *added]) if added else ""


_ZIG = ("cc", "-target", "aarch64-linux-musl", "-mcpu=neoverse_v1")
_QEMU = Emulation(
    ("qemu-aarch64", "-cpu", "max"),
    frozenset({"asimd", "asimdhp", "asimddp", "asimdrdm", "i8mm", "bf16"}),
    (
        ("aarch64-linux-gnu-gcc", "-march=armv8.2-a+fp16+dotprod+i8mm+bf16"),
        ("zig", *_ZIG),
        (sys.executable, "-m", "ziglang", *_ZIG),
    ),
)
ARM = Backend(
    "arm",
    "cpu",
    language=C,
    device="cpu",
    compiles="llvm",
    features=frozenset(_FEATURES.split()),  # LLVM's under our names (`machine.features`), and lengths of SVE vectors
    machines=("aarch64", "arm64"),
    vectors=(("", 16, 32),),
    core=("aarch64-unknown-linux-gnu", "neoverse-v3"),
    emulation=_QEMU,
    c=CFlags(_extensions, registers=(("", 32),)),
    pause=("declare void @llvm.aarch64.hint(i32 immarg)", "call void @llvm.aarch64.hint(i32 1)"),
    notable=("asimd", "asimddp", "asimdhp", "i8mm", "bf16", "sve", "sve2", "sme"),
)
