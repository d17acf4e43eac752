"""What is measured: programs by name and sizes, and how each peer computes the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autosched import workload
from autosched.ir.program import Program
from benchmarks import peers

Call = Callable[[], Any]
Peer = Callable[[Mapping[str, Any], int], Call | None]
"""Takes the input arrays and the number of threads; answers a call to time, or None where it is not installed."""


@dataclass(frozen=True)
class Case:
    """`target_share` and `limit_s` are what issue texts ask of it: the share of the peak, the wall time of tuning."""

    name: str
    workload: str
    sizes: dict[str, Any]
    peers: dict[str, Peer] = field(default_factory=dict)
    target_share: float = 0.0
    limit_s: float = 0.0

    def program(self) -> Program:
        return workload(self.workload, **self.sizes)


def _square(n: int, **dtypes: str) -> dict[str, Any]:
    return {"m": n, "n": n, "k": n, **dtypes}


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("matmul_u8s8", "matmul", _square(512, a="u8", b="s8", acc="s32"),
             {"torch._int_mm (s8·s8)": peers.torch_int_mm}, 0.85, 20.0),
        Case("matmul_f32", "matmul", _square(512, a="f32", b="f32"),
             {"numpy (OpenBLAS)": peers.numpy_matmul, "torch packed (oneDNN)": peers.torch_linear,
              "torch mkldnn_linear (oneDNN)": peers.torch_mkldnn_linear}, 0.85, 20.0),
        Case("conv2d_f32", "conv2d",
             {"n": 1, "h": 56, "w": 56, "ci": 64, "co": 64, "kh": 3, "kw": 3, "pad": 1, "t": "f32", "acc": "f32"},
             {"torch NHWC packed (oneDNN)": peers.torch_conv2d}, 0.60, 60.0),
    )
}  # fmt: skip
