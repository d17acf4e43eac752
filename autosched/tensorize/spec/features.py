"""The features that exist, by isa: a `requires` that names none of them, and nearly names one, is a misspelling.

An instruction of one's own may require a feature of one's own, which a target's file then lists. So a name is refused
only where a feature that exists is spelt nearly the same, or has it as one of its words. Isas that are not listed here
have the features that their files say.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

ALIKE = 0.8
"""Similarity (difflib's) from which an unknown name is a misspelling."""

_X86 = """
adx aes amx_avx512 amx_bf16 amx_complex amx_fp16 amx_fp8 amx_int8 amx_movrs amx_tf32 amx_tile avx avx10_1 avx10_1_512
avx10_2 avx10_2_512 avx2 avx512_bf16 avx512_bitalg avx512_fp16 avx512_vbmi2 avx512_vnni avx512_vp2intersect
avx512_vpopcntdq avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vl avx_ifma avx_ne_convert avx_vnni
avx_vnni_int16 avx_vnni_int8 bmi bmi2 branch_hint ccmp cf cldemote clflushopt clwb clzero cmov cmpccxadd crc32 cx16
cx8 egpr enqcmd ermsb evex512 f16c fma fma4 fsgsbase fsrm fxsr gfni hreset invpcid kl lwp lzcnt mmx movbe movdir64b
movdiri movrs mwaitx ndd nf nopl pclmulqdq pconfig pku popcnt ppx prefetchi prfchw ptwrite push2pop2 raoint rdpid
rdpru rdrnd rdseed rtm sahf serialize sgx sha sha512 shstk sm3 sm4 sse sse2 sse3 sse4_1 sse4_2 sse4a ssse3 tbm
tsxldtrk uintr usermsr vaes vpclmulqdq waitpkg wbnoinvd widekl xop xsave xsavec xsaveopt xsaves zu
"""
_ARM = """
aes altnzcv asimd asimddp asimdhp bf16 bti ccdp ccidx ccpp clrbhb complxnum cpa crc crypto cssc d128 dit ecv f16f32dot
f16f32mm f16mm f32mm f64mm f8f16mm f8f32mm faminmax fcma flagm fp16fml fp8 fp8dot2 fp8dot4 fp8fma fp_armv8 fpac fprcvt
fptoint hbc i8mm jscvt jsconv ls64 lor lse lse128 lse2 lut mops mte pan pauth pauth_lr perfmon predres rand ras rasv2
rcpc rcpc_immo rcpc3 rdm sb sha2 sha3 sm4 sme sme_b16b16 sme_f16f16 sme_f64f64 sme_f8f16 sme_f8f32 sme_fa64 sme_i16i64
sme_lutv2 sme_mop4 sme_tmop sme2 sme2p1 sme2p2 sme2p3 spe ssbs ssve_aes ssve_bitperm ssve_fexpa ssve_fp8dot2
ssve_fp8dot4 ssve_fp8fma sve sve_128 sve_256 sve_512 sve_aes sve_aes2 sve_b16b16 sve_b16mm sve_bfscale sve_bitperm
sve_f16f32mm sve_sha3 sve_sm4 sve2 sve2_aes sve2_bitperm sve2_sha3 sve2_sm4 sve2p1 sve2p2 sve2p3 svebf16 svei8mm the
wfxt xs
"""
_CUDA = "sm_61 sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_100a sm_103 sm_103a sm_120 sm_120a"
_HIP = "gfx906 gfx908 gfx90a gfx940 gfx942 gfx950 gfx1100 gfx1200 gfx1201"
KNOWN = {
    isa: frozenset(names.split()) for isa, names in (("x86", _X86), ("arm", _ARM), ("cuda", _CUDA), ("hip", _HIP))
}
"""Of CPUs LLVM's features under our names (`machine.features`), and lengths of SVE vectors. Not all of a GPU's."""
_NUMBERED = {"cuda": re.compile(r"sm_\d+[af]?"), "hip": re.compile(r"gfx\d+[0-9a-f]*")}


def misspelt(feature: str, isa: str) -> str | None:
    """The feature of this isa that must be meant; None where `feature` is one, or may be one of the user's own.

    >>> misspelt("avx512vnni", "x86"), misspelt("avx2", "x86"), misspelt("matrix_engine", "x86")
    ('avx512_vnni', None, None)
    """
    known = KNOWN.get(isa, frozenset())
    if feature in known or (isa in _NUMBERED and _NUMBERED[isa].fullmatch(feature)):
        return None
    plain = {name.replace("_", ""): name for name in sorted(known)}
    close = get_close_matches(re.sub("[-_.]", "", feature.lower()), plain, n=1, cutoff=ALIKE)
    if close:
        return plain[close[0]]
    return next((name for name in sorted(known) if feature.lower() in name.split("_")[1:]), None)
