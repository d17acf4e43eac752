"""x86 CPUs, through LLVM."""

from __future__ import annotations

from autosched.backends.backend import Backend
from autosched.backends.c_flags import CFlags, each
from autosched.backends.language import C

_FEATURES = """
adx aes amx_avx512 amx_bf16 amx_complex amx_fp16 amx_fp8 amx_int8 amx_movrs amx_tf32 amx_tile avx avx10_1 avx10_1_512
avx10_2 avx10_2_512 avx2 avx512_bf16 avx512_bitalg avx512_fp16 avx512_vbmi2 avx512_vnni avx512_vp2intersect
avx512_vpopcntdq avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vl avx_ifma avx_ne_convert avx_vnni
avx_vnni_int16 avx_vnni_int8 bmi bmi2 branch_hint ccmp cf cldemote clflushopt clwb clzero cmov cmpccxadd crc32 cx16
cx8 egpr enqcmd ermsb evex512 f16c fma fma4 fsgsbase fsrm fxsr gfni hreset invpcid kl lwp lzcnt mmx movbe movdir64b
movdiri movrs mwaitx ndd nf nopl pclmulqdq pconfig pku popcnt ppx prefetchi prfchw ptwrite push2pop2 raoint rdpid
rdpru rdrnd rdseed rtm sahf serialize sgx sha sha512 shstk sm3 sm4 sse sse2 sse3 sse4_1 sse4_2 sse4a ssse3 tbm
tsxldtrk uintr usermsr vaes vpclmulqdq waitpkg wbnoinvd widekl xop xsave xsavec xsaveopt xsaves zu
"""
X86 = Backend(
    "x86",
    "cpu",
    language=C,
    device="cpu",
    compiles="llvm",
    features=frozenset(_FEATURES.split()),  # LLVM's under our names (`machine.features`)
    machines=("x86_64", "amd64"),
    vectors=(("avx512f", 64, 32), ("avx2", 32, 16), ("", 16, 16)),
    permutes=(("avx512f", 16), ("", 8)),
    to_bf16=(("avx512_bf16", 16),),
    core=("x86_64-unknown-linux-gnu", "diamondrapids"),
    c=CFlags(
        each,
        vectors=((32, "avx512f"), (16, "avx2")),
        tails=("avx512vl", "avx512bw"),
        fused="fma",
        registers=(("avx512", 32), ("avx10", 32), ("", 16)),
    ),
    memory_operands=True,
    stack_bytes=16,
    store_fence="llvm.x86.sse.sfence",  # x86 orders all other stores by itself
    pause=("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    measured_rates=True,
    notable=("avx2", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8"),
)
