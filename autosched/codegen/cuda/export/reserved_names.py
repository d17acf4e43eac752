"""Names that CUDA has: of the language, of its runtime, and of functions that its headers declare for everybody."""

from __future__ import annotations

import re

TAKEN = """
autosched threadIdx blockIdx blockDim gridDim warpSize row shared half namespace min max
"""
"""What printed code itself uses, beside C's and C++'s keywords."""

_DECLARED = frozenset(
    """
    all any ballot clock64 cospi cyl_bessel_i0 cyl_bessel_i1 dadd dmul dsub dim3 double2int double2ll double2uint
    double2ull erfcinv erfcx erfinv fdivide float2double int2double ll2double llmax llmin norm norm3d norm4d normcdf
    normcdfinv rcbrt rhypot rnorm rnorm3d rnorm4d rsqrt sincospi sinpi syncthreads_and syncthreads_count syncthreads_or
    uint2double ull2double ullmax ullmin umax umin
    """.split()  # noqa: SIM905
)
_FAMILIES = re.compile(
    r"(cuda|cu|CU|nv|atomic|surf|tex)[A-Z0-9](\w*[^\W_])?"  # none ends in _
    r"|(make_)?(u?(char|short|int|long|longlong)|float|double)[1-4](_\d+a)?"
    r"|\w+f(32|64|128)x?",
    re.ASCII,
)


def declared(name: str) -> bool:
    """Whether a function of this name would be one of CUDA's (CUDA 13), or an overload of one."""
    return name in _DECLARED or name.removesuffix("f") in _DECLARED or _FAMILIES.fullmatch(name) is not None
