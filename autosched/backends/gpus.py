"""GPUs: NVIDIA's, whose kernels are printed and run; AMD's and MetaX's, whose kernels are simulated."""

from __future__ import annotations

from autosched.backends.backend import Backend
from autosched.backends.language import Language

# Not all architectures are listed: others match `numbered`.
_CUDA = "sm_61 sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_100a sm_103 sm_103a sm_120 sm_120a"
_HIP = "gfx906 gfx908 gfx90a gfx940 gfx942 gfx950 gfx1100 gfx1200 gfx1201"

CUDA_C = Language(
    "cuda",
    "CUDA",
    "NVIDIA GPU",
    ".cu",
    functions="autosched.codegen.cuda.export.functions:FUNCTIONS",
    check="autosched.device.cuda.own_texts:check_texts",
    texts=("cuda_registers",),
    descriptors=True,
)
CUDA = Backend(
    "cuda",
    "gpu",
    language=CUDA_C,
    device="cuda",
    emits="cuda",
    features=frozenset(_CUDA.split()),
    numbered=r"sm_\d+[af]?",
    async_copies=frozenset({"sm_80", "async_copy"}),
    bulk_copies=frozenset({"sm_90", "bulk_copy"}),
    fuses=True,
)
HIP = Backend("hip", "gpu", emits="hip", features=frozenset(_HIP.split()), numbered=r"gfx\d+[0-9a-f]*", warp=64)
MACA = Backend("maca", "gpu", features=frozenset({"xcore1000"}), numbered=r"xcore\d+")
