"""Feature names: LLVM's to ours, which are those of /proc/cpuinfo and of the intrinsic files (`avx512_vnni`)."""

from __future__ import annotations

_RENAMED = {
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512bitalg": "avx512_bitalg",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avxvnni": "avx_vnni",
    "avxvnniint8": "avx_vnni_int8",
    "avxvnniint16": "avx_vnni_int16",
    "avxifma": "avx_ifma",
    "avxneconvert": "avx_ne_convert",
    "pclmul": "pclmulqdq",
    "amx-tile": "amx_tile",
    "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
    "amx-fp16": "amx_fp16",
    "neon": "asimd",
    "fullfp16": "asimdhp",
    "dotprod": "asimddp",
    "rdm": "asimdrdm",
}


def our_name(llvm_name: str) -> str:
    """Our name of an LLVM feature.

    >>> our_name("avx512vnni"), our_name("fma")
    ('avx512_vnni', 'fma')
    """
    return _RENAMED.get(llvm_name, llvm_name.replace("-", "_").replace(".", "_"))


def llvm_name(name: str) -> str:
    """LLVM's name of one of our features."""
    return next((k for k, v in _RENAMED.items() if v == name), name)
