"""What is measured: programs of the built-in workloads by group, and what is asked of each group.

Names are `group/types/label`, with the layout where there is one: `conv/f32/nhwc/rn50_56_3x3_64`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

GEMM_TYPES = {"f32": {"t": "f32"}, "bf16": {"t": "bf16"}, "u8s8": {"a": "u8", "b": "s8"}, "s8s8": {"t": "s8"}}
CONV_TYPES = {"f32": {"t": "f32"}, "int8": {"a": "u8", "b": "s8"}}
LAYOUTS = ("nhwc", "nchw")


@dataclass(frozen=True)
class Asked:
    """Least geometric means of peer / ours, over a group's shapes of one type (and layout), and the least of any shape;
    `share` is of the nearer physical limit, shape by shape. None: nothing is asked."""

    of_onednn: float | None = None
    of_best: float | None = None
    least: float | None = None
    share: float | None = None


ASKED: dict[str, Asked] = {
    "gemm": Asked(of_onednn=1.00, of_best=0.98, least=0.93),
    "skinny": Asked(of_best=1.15),
    "conv": Asked(of_onednn=1.00, of_best=0.98, least=0.90),
    "fused": Asked(of_best=1.10),
    "rows": Asked(share=0.90),
    "coverage": Asked(),
}
"""Of the tables with packed constants."""


@dataclass(frozen=True)
class Case:
    """`share` overrides what the group asks of one shape. `plain`: also in the table where nothing is packed."""

    group: str
    series: str
    label: str
    workload: str
    sizes: dict[str, Any] = field(hash=False)
    share: float | None = None
    plain: bool = True

    @property
    def name(self) -> str:
        return f"{self.group}/{self.series}/{self.label}"


def _matmul(m: int, n: int, k: int, **more: Any) -> dict[str, Any]:
    return {"m": m, "n": n, "k": k, **more}


def _gemm() -> Iterator[Case]:
    shapes = [(256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)]
    shapes += [(128, 768, 768), (128, 768, 3072), (128, 3072, 768)]  # BERT-base
    for series, types in GEMM_TYPES.items():
        for m, n, k in shapes:
            yield Case("gemm", series, f"{m}x{n}x{k}", "matmul", _matmul(m, n, k, **types))


def _skinny() -> Iterator[Case]:
    for series in ("f32", "bf16", "u8s8"):
        types = GEMM_TYPES[series]
        for m in (1, 4, 16, 33):
            share = 0.90 if m == 1 else None
            yield Case("skinny", series, f"{m}x4096x4096", "matmul", _matmul(m, 4096, 4096, **types), share)
        for m, n, k in ((127, 255, 513), (1000, 1000, 1000)):
            yield Case("skinny", series, f"{m}x{n}x{k}", "matmul", _matmul(m, n, k, **types))
        batched = _matmul(128, 128, 64, batch=12, **types)
        yield Case("skinny", series, "12x128x128x64", "batch_matmul", batched, plain=False)


def _window(size: int, k: int, ci: int, co: int, stride: int = 1) -> dict[str, Any]:
    return {"h": size, "w": size, "ci": ci, "co": co, "kh": k, "kw": k, "stride": stride, "pad": k // 2}


RESNET = {
    "rn50_conv1_7x7s2": _window(224, 7, 3, 64, 2),
    "rn50_56_1x1_64_256": _window(56, 1, 64, 256),
    "rn50_56_3x3_64": _window(56, 3, 64, 64),
    "rn50_28_3x3_128": _window(28, 3, 128, 128),
    "rn50_14_3x3_256": _window(14, 3, 256, 256),
    "rn50_14_1x1_1024_256": _window(14, 1, 1024, 256),
    "rn50_7_3x3_512": _window(7, 3, 512, 512),
}
MOBILENET = {
    "dw_112_3x3_32": {"h": 112, "w": 112, "c": 32},
    "dw_56_3x3_128": {"h": 56, "w": 56, "c": 128},
    "dw_14_3x3_512": {"h": 14, "w": 14, "c": 512},
    "dw_56s2_3x3_144": {"h": 56, "w": 56, "c": 144, "stride": 2},
}


def _conv() -> Iterator[Case]:
    for series, types in CONV_TYPES.items():
        for layout in LAYOUTS:
            for shapes, workload in ((RESNET, "conv2d"), (MOBILENET, "depthwise_conv2d")):
                for label, sizes in shapes.items():
                    yield Case("conv", f"{series}/{layout}", label, workload, {**sizes, **types, "layout": layout})


def _fused() -> Iterator[Case]:
    for gelu in ("erf", "tanh"):
        sizes = _matmul(128, 3072, 768, gelu=gelu)
        yield Case("fused", "gelu", f"128x3072x768_{gelu}", "matmul_bias_gelu", sizes, plain=False)
    for m, n, k in ((512, 512, 512), (128, 768, 768), (128, 768, 3072)):
        yield Case("fused", "requantise", f"{m}x{n}x{k}", "matmul_requant", _matmul(m, n, k), plain=False)
    for layout in LAYOUTS:
        for residual in (0, 1):
            for label in ("rn50_56_3x3_64", "rn50_14_3x3_256"):
                sizes = {**RESNET[label], "layout": layout, "residual": residual}
                name = label + ("_residual" if residual else "")
                yield Case("fused", f"conv_bn_relu/{layout}", name, "conv2d_bias_relu", sizes, plain=False)


def _rows() -> Iterator[Case]:
    for m, n in ((1536, 128), (4096, 1024), (4096, 4096)):
        yield Case("rows", "softmax", f"{m}x{n}", "softmax", {"m": m, "n": n}, plain=False)
    for m, n in ((128, 768), (4096, 1024)):
        yield Case("rows", "layer_norm", f"{m}x{n}", "layer_norm", {"m": m, "n": n}, plain=False)


def _coverage() -> Iterator[Case]:
    """What must tune and run, whatever its speed: every type and operator that no other group has."""
    square = _matmul(256, 256, 256)
    small = {"h": 28, "w": 28, "ci": 64, "co": 64}
    programs: list[tuple[str, str, dict[str, Any]]] = [
        ("f64", "matmul", {**square, "t": "f64"}),
        ("s16", "matmul", {**square, "t": "s16"}),
        ("u8u8", "matmul", {**square, "t": "u8"}),
        ("nt", "matmul", {**square, "tb": 1}),
        ("tn", "matmul", {**square, "ta": 1}),
        ("nt_u8s8", "matmul", {**square, "tb": 1, "a": "u8", "b": "s8"}),
        ("strided", "matmul_strided", {**square, "lda": 320, "ldb": 288}),
        ("gemv", "gemv", {"m": 1024, "k": 1024}),
        ("gemv_int8", "gemv", {"m": 1024, "k": 1024, "a": "s8", "b": "u8"}),
        ("batch_nt", "batch_matmul", {**_matmul(128, 128, 64), "batch": 12, "tb": 1}),
        ("conv1d", "conv1d", {}),
    ]
    for layout in LAYOUTS:
        of = {**small, "layout": layout}
        programs += [
            (f"bf16_{layout}", "conv2d", {**of, "t": "bf16"}),
            (f"dilated_{layout}", "conv2d", {**of, "dilation": 2, "pad": 2}),
            (f"strided_{layout}", "conv2d", {**of, "stride": 2}),
            (f"grouped_{layout}", "conv2d", {**of, "groups": 4}),
            (f"grouped_int8_{layout}", "conv2d", {**of, "groups": 4, "a": "u8", "b": "s8"}),
            (f"transposed_{layout}", "conv2d_transposed", {**of, "h": 14, "w": 14}),
            (f"3d_{layout}", "conv3d", {"d": 8, "h": 14, "w": 14, "layout": layout}),
        ]
    programs += [(f"{o}_{v}", "reduce", {"op": o, "over": v}) for o in ("sum", "max") for v in ("rows", "columns")]
    programs += [(f"each_{o}", "elementwise", {"op": o}) for o in ("add", "bias", "relu", "gelu", "sigmoid")]
    for label, workload, sizes in programs:
        yield Case("coverage", workload, label, workload, sizes, plain=False)


CASES: tuple[Case, ...] = (*_gemm(), *_skinny(), *_conv(), *_fused(), *_rows(), *_coverage())


def quick(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The first two shapes of every series, and all of the coverage."""
    seen: dict[tuple[str, str], int] = {}
    chosen = []
    for case in cases:
        key = (case.group, case.series)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= 2:
            chosen.append(case)
    return tuple(chosen)
