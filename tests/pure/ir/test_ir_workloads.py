# ruff: noqa: E501  (programs stand on one line)
"""The built-in workloads compute what numpy computes; options, defaults and einsum strings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import autosched.ir as ir
from autosched.errors import AutoschedError, UnknownNameError, UsageError
from autosched.ir.workload import accumulator

RNG = np.random.default_rng


def computed(program: ir.Program, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    data = ir.random_inputs(program, RNG(seed))
    return {n: a.astype(np.float64) for n, a in data.items()}, ir.run(program, data)


@pytest.mark.parametrize(
    ("a", "b"), [("u8", "s8"), ("f32", "f32"), ("bf16", "bf16"), ("s4", "u4"), ("f64", "f64"), ("f16", "s8")]
)
@pytest.mark.parametrize(("ta", "tb"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_matmul(a: str, b: str, ta: int, tb: int) -> None:
    program = ir.workload("matmul", m=9, n=7, k=13, a=a, b=b, ta=ta, tb=tb)
    data, out = computed(program)
    left, right = data["A"].T if ta else data["A"], data["B"].T if tb else data["B"]
    acc = program.tensors["C"].dtype
    assert acc.name == accumulator(a, b)
    np.testing.assert_allclose(out["C"].astype(np.float64), left @ right, rtol=1e-5, atol=1e-5)
    assert program.tensors["B"].const
    assert program.stages[0].init is not None


def test_matmul_into_another_dtype() -> None:
    program = ir.workload("matmul", m=8, n=8, k=8, a="f16", b="f16", out="bf16")
    data, out = computed(program)
    assert out["C"].dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(out["C"].astype(np.float64), data["A"] @ data["B"], rtol=1e-2, atol=1e-2)
    assert ir.workload("matmul", out="f32").stages[0].name == "C"


def reference_conv2d(x: Any, w: Any, stride: int, pad: int, dilation: int, groups: int) -> Any:
    n, h, wd, _ = x.shape
    kh, kw, cig, co = w.shape
    xp = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    ho, wo = ((e + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for e, k in ((h, kh), (wd, kw)))
    out = np.zeros((n, ho, wo, co))
    cog = co // groups
    for y in range(ho):
        for q in range(wo):
            ys, qs = y * stride, q * stride
            patch = xp[:, ys : ys + dilation * (kh - 1) + 1 : dilation, qs : qs + dilation * (kw - 1) + 1 : dilation]
            for g in range(groups):
                part, weights = patch[..., g * cig : (g + 1) * cig], w[..., g * cog : (g + 1) * cog]
                out[:, y, q, g * cog : (g + 1) * cog] = np.einsum("nrsc,rsco->no", part, weights)
    return out


@pytest.mark.sampled(13)
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("t", ["f32", "u8"])
@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "groups", "k"), [(1, 1, 1, 1, 3), (2, 1, 1, 1, 3), (1, 0, 1, 1, 1), (1, 2, 2, 2, 3), (3, 3, 1, 4, 5)]
)  # fmt: skip
def test_conv2d(layout: str, t: str, stride: int, pad: int, dilation: int, groups: int, k: int) -> None:
    program = ir.workload(
        "conv2d", n=2, h=9, w=7, ci=8, co=4, kh=k, kw=k, stride=stride, pad=pad, dilation=dilation, groups=groups, t=t, layout=layout
    )  # fmt: skip
    data, out = computed(program)
    x, w, y = data["X"], data["W"], out["Y"]
    if layout == "nchw":
        x, w, y = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), y.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(y, reference_conv2d(x, w, stride, pad, dilation, groups), rtol=1e-4, atol=1e-4)
    assert program.outputs == ("Y",)
    assert program.inputs == ("X", "W")


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("groups", [1, 2])
def test_conv2d_rounded_at_the_end(layout: str, groups: int) -> None:
    sizes: dict[str, Any] = {"n": 2, "h": 5, "w": 4, "ci": 4, "co": 4, "groups": groups, "t": "f16", "layout": layout}
    whole, rounded = ir.workload("conv2d", **sizes), ir.workload("conv2d", out="f16", **sizes)
    assert whole.tensors["Y"].dtype.name == "f32"
    assert rounded.tensors["Y"].dtype.name == "f16"
    _, sums = computed(whole)
    _, out = computed(rounded)
    np.testing.assert_array_equal(out["Y"], sums["Y"].astype(np.float16))


SUMS = [
    ("matmul", {"m": 5, "n": 9, "k": 4}),
    ("batch_matmul", {"batch": 3, "m": 5, "n": 9, "k": 4}),
    ("batch_matmul", {"batch": 3, "m": 5, "n": 9, "k": 4, "ta": 1, "tb": 1}),
    ("matmul_strided", {"m": 5, "n": 9, "k": 4, "lda": 7, "ldb": 11}),
    ("matmul_sparse", {"m": 5, "n": 9, "k": 8}),
    ("gemv", {"m": 5, "k": 9}),
    ("conv2d", {"h": 4, "w": 5, "ci": 4, "co": 6, "groups": 2}),
    ("conv2d", {"h": 4, "w": 5, "ci": 4, "co": 6, "groups": 2, "layout": "nchw"}),
    ("conv1d", {"w": 9, "ci": 4, "co": 6}),
    ("conv1d", {"w": 9, "ci": 4, "co": 6, "groups": 2}),
    ("depthwise_conv2d", {"h": 5, "w": 4, "c": 3}),
    ("depthwise_conv2d", {"h": 5, "w": 4, "c": 3, "layout": "nchw"}),
    ("conv2d_transposed", {"h": 3, "w": 4, "ci": 3, "co": 2}),
    ("conv3d", {"d": 3, "h": 4, "w": 3, "ci": 3, "co": 2}),
]


@pytest.mark.parametrize(("name", "sizes"), SUMS)
def test_every_sum_of_products_rounds_into_out(name: str, sizes: dict[str, Any]) -> None:
    whole, rounded = ir.workload(name, t="f16", **sizes), ir.workload(name, t="f16", out="f16", **sizes)
    (result,) = whole.outputs
    assert rounded.outputs == (result,)
    _, sums = computed(whole)
    _, out = computed(rounded)
    np.testing.assert_array_equal(out[result], sums[result].astype(np.float16))


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_depthwise_conv2d(layout: str) -> None:
    program = ir.workload("depthwise_conv2d", n=2, h=9, w=7, c=5, stride=2, dilation=2, layout=layout)
    data, out = computed(program)
    x, w, y = data["X"], data["W"], out["Y"]
    if layout == "nchw":
        x, w, y = x.transpose(0, 2, 3, 1), w.transpose(1, 2, 0), y.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(y, reference_conv2d(x, w[:, :, None, :], 2, 1, 2, 5), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv1d(groups: int) -> None:
    program = ir.workload("conv1d", n=2, w=9, ci=4, co=6, kw=3, stride=2, dilation=2, pad=2, groups=groups)
    data, out = computed(program)
    x, w = data["X"][:, None], data["W"][None]
    xp = np.pad(x, ((0, 0), (2, 2), (0, 0), (0, 0)))  # pad=2 in the other dimension is cropped below
    full = reference_conv2d(xp, w, 2, 2, 2, groups)
    np.testing.assert_allclose(out["Y"], full[:, 2], rtol=1e-4, atol=1e-4)


def test_the_others() -> None:
    data, out = computed(ir.workload("softmax", m=5, n=9))
    e = np.exp(data["X"] - data["X"].max(1, keepdims=True))
    np.testing.assert_allclose(out["Y"], e / e.sum(1, keepdims=True), rtol=1e-5)
    data, out = computed(ir.workload("matmul_bias_relu", m=5, n=9, k=4))
    np.testing.assert_allclose(out["C"], np.maximum(data["A"] @ data["B"] + data["D"], 0), rtol=1e-4, atol=1e-5)
    data, out = computed(ir.workload("matmul_requant", m=5, n=9, k=4))
    exact = np.clip(np.rint((data["A"] @ data["B"]).astype(np.float32) * data["D"].astype(np.float32)), -128, 127)
    np.testing.assert_array_equal(out["C"], exact)
    data, out = computed(ir.workload("batch_matmul", batch=3, m=5, n=9, k=4, t="s8"))
    np.testing.assert_array_equal(out["C"], data["A"] @ data["B"])
    data, out = computed(ir.workload("gemv", m=5, k=40, out="f16"))
    np.testing.assert_allclose(out["C"].astype(np.float64), data["A"] @ data["B"], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("ta", "tb"), [(0, 1), (1, 0), (1, 1)])
def test_batch_matmul_of_transposed_operands(ta: int, tb: int) -> None:
    data, out = computed(ir.workload("batch_matmul", batch=3, m=5, n=9, k=4, t="s8", ta=ta, tb=tb))
    a, b = data["A"].swapaxes(1, 2) if ta else data["A"], data["B"].swapaxes(1, 2) if tb else data["B"]
    np.testing.assert_array_equal(out["C"], a @ b)


def test_matmul_of_parts() -> None:
    data, out = computed(ir.workload("matmul_strided", m=5, n=9, k=4, lda=7, ldb=11, t="s8"))
    np.testing.assert_array_equal(out["C"], data["A"][:, :4] @ data["B"][:, :9])


def test_sparse_matmul() -> None:
    data, out = computed(ir.workload("matmul_sparse", m=5, n=9, k=16, t="s8"))
    rows, columns = np.indices(data["A"].shape)
    dense = np.zeros((5, 16), dtype=np.int64)
    dense[rows, 4 * (columns // 2) + data["E"].astype(np.int64)] = data["A"]
    assert (np.count_nonzero(dense.reshape(5, 4, 4), axis=2) <= 2).all()
    np.testing.assert_array_equal(out["C"], dense @ data["B"].T.astype(np.int64))


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize(("stride", "pad", "k"), [(2, 1, 4), (1, 0, 3), (3, 2, 5)])
def test_conv2d_transposed(layout: str, stride: int, pad: int, k: int) -> None:
    sizes = {"h": 5, "w": 4, "ci": 3, "co": 2, "kh": k, "kw": k, "stride": stride, "pad": pad}
    data, out = computed(ir.workload("conv2d_transposed", t="s8", layout=layout, **sizes))
    x, w, y = data["X"], data["W"], out["Y"]
    if layout == "nchw":
        x, w, y = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 0, 1), y.transpose(0, 2, 3, 1)
    whole = np.zeros((1, (5 - 1) * stride + k, (4 - 1) * stride + k, 2))
    for i in range(5):  # what each input point adds
        for j in range(4):
            rows, columns = slice(i * stride, i * stride + k), slice(j * stride, j * stride + k)
            whole[:, rows, columns] += np.einsum("nc,rsco->nrso", x[:, i, j], w)
    np.testing.assert_array_equal(y, whole[:, pad : whole.shape[1] - pad, pad : whole.shape[2] - pad])


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_conv3d(layout: str) -> None:
    data, out = computed(ir.workload("conv3d", d=5, h=6, w=4, ci=3, co=2, kd=2, stride=2, t="s8", layout=layout))
    x, w, y = data["X"], data["W"], out["Y"]
    if layout == "nchw":
        x, w, y = x.transpose(0, 2, 3, 4, 1), w.transpose(2, 3, 4, 1, 0), y.transpose(0, 2, 3, 4, 1)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3, 3), axis=(1, 2, 3))[:, ::2, ::2, ::2]
    np.testing.assert_array_equal(y, np.einsum("ndhwcqrs,qrsco->ndhwo", windows, w))


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("residual", [0, 1])
def test_conv2d_with_a_folded_norm(layout: str, residual: int) -> None:
    program = ir.workload("conv2d_bias_relu", h=6, w=5, ci=4, co=3, stride=2, layout=layout, residual=residual)
    data, out = computed(program)
    r = data["R"] if residual else np.zeros(out["Y"].shape)
    x, w, y = data["X"], data["W"], out["Y"]
    if layout == "nchw":
        x, w, y, r = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), y.transpose(0, 2, 3, 1), r.transpose(0, 2, 3, 1)
    expected = np.maximum(reference_conv2d(x, w, 2, 1, 1, 1) + data["D"] + r, 0)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("gelu", ["erf", "tanh"])
def test_matmul_bias_gelu(gelu: str) -> None:
    data, out = computed(ir.workload("matmul_bias_gelu", m=5, n=9, k=4, gelu=gelu))
    s = data["A"] @ data["B"] + data["D"]
    # The approximation stays within 5e-4 of the exact form (Hendrycks and Gimpel 2016, where it comes from).
    exact = s / 2 * (1 + np.vectorize(math.erf)(s / math.sqrt(2)))
    np.testing.assert_allclose(out["C"], exact, rtol=1e-4, atol=5e-4 if gelu == "tanh" else 1e-5)


def test_norms_reductions_and_elementwise() -> None:
    data, out = computed(ir.workload("layer_norm", m=5, n=9))
    x = data["X"]
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * data["G"] + data["D"]
    np.testing.assert_allclose(out["Y"], expected, rtol=1e-4, atol=1e-5)
    for op, over, t in (("sum", "rows", "s8"), ("sum", "columns", "s8"), ("max", "rows", "f32"), ("max", "columns", "s8")):
        data, out = computed(ir.workload("reduce", m=5, n=9, op=op, over=over, t=t))
        np.testing.assert_array_equal(out["Y"], getattr(np, op)(data["X"], axis=1 if over == "rows" else 0))
    expectations: dict[str, Any] = {
        "add": lambda d: d["A"] + d["B"],
        "bias": lambda d: d["A"] + d["D"],
        "relu": lambda d: np.maximum(d["A"], 0),
        "gelu": lambda d: d["A"] / 2 * (1 + np.vectorize(math.erf)(d["A"] / math.sqrt(2))),
        "sigmoid": lambda d: 1 / (1 + np.exp(-d["A"])),
    }
    for op, compute in expectations.items():
        data, out = computed(ir.workload("elementwise", m=5, n=9, op=op))
        np.testing.assert_allclose(out["C"], compute(data), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("spec", "types"),
    [("mk,kn->mn", {}), ("km,kn->nm", {"a": "u8", "b": "s8"}), ("bij,bjk->bik", {}), ("ij->ji", {}), ("ij->", {}), ("ij,jk", {}),
     ("i,j->ij", {"a": "s8", "b": "s8"}), ("ij,jk,kl->il", {}), ("ii->i", {}), ("ab,bc->ac", {"a": 4, "acc": "f64", "out": "f16"}), ("ijk,ik->", {})],
)  # fmt: skip
def test_einsum(spec: str, types: dict[str, Any]) -> None:
    letters = {c: 3 + k for k, c in enumerate(sorted({c for c in spec if c.isalpha()}))}
    program = ir.einsum(spec, **{**letters, **types})
    data, out = computed(program)
    expected = np.einsum(spec, *data.values())
    exact = not program.tensors["C"].dtype.is_float
    np.testing.assert_allclose(
        out["C"].astype(np.float64).reshape(expected.shape), expected, rtol=0 if exact else 2e-3, atol=2e-3
    )


@pytest.mark.parametrize(
    "spec", ["", "->", "mk,kn->mq", "mk,kn->mm", "...k,kn->n", "m1,1n->mn", "mk;kn->mn", "C,b->", "a" * 300]
)
def test_bad_einsums(spec: str) -> None:
    with pytest.raises(UsageError):
        ir.einsum(spec)


@pytest.mark.parametrize(
    ("name", "defines", "hint"),
    [("matmull", {}, "did you mean 'matmul'?"), ("matmul", {"mm": 4}, "known:"), ("matmul", {"ta": 2}, "0, 1"), ("conv2d", {"layout": "nhcw"}, "nhwc, nchw"),
     ("matmul", {"acc": "f31"}, "did you mean"), ("conv2d", {"groups": 3}, ""), ("conv2d", {"kh": 99}, ""), ("softmax", {"k": 3}, "known:"), ("matmul", {"t": "q"}, "")],
)  # fmt: skip
def test_bad_workloads(name: str, defines: dict[str, Any], hint: str) -> None:
    with pytest.raises(AutoschedError) as caught:
        ir.workload(name, **defines)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("name", "defines", "said", "hint"),
    [
        ("attention_rounded", {"t": "s8"}, "t=s8: -inf is no literal", "t is one of e2m1, e2m3, e3m2, e4m3"),
        ("attention_rounded", {"t": "s8"}, "t=s8: -inf is no literal", "; or add acc=f32 (it is s32 now)"),
        ("attention_rounded", {"n": 8, "t": "f16", "acc": "s32"}, "acc=s32: -inf", "acc is one of e2m1, e2m3, e3m2, e5m2, e3m4, f16"),
        ("matmul_requant", {"out": "f16"}, "out=f16: sat_ takes an integer dtype", "out is one of b1, u4, s4, u8, s8"),
    ],
)
def test_a_dtype_that_a_workload_cannot_have(name: str, defines: dict[str, Any], said: str, hint: str) -> None:
    """The error is of the value that was given, with those that are possible, and not of our own text."""
    with pytest.raises(UsageError) as caught:
        ir.workload(name, **defines)
    assert caught.value.message.startswith(f"{name} cannot have {said}")
    assert hint in (caught.value.hint or "")
    assert caught.value.location is None


def test_resolve(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text("def f(C: f32[m], *, m=2):\n    C[0] = 0\n\n\ndef g(C: f32[m], *, m=2):\n    C[0] = 1\n")
    assert ir.resolve(f"{path}:g", {"m": "5"}).tensors["C"].extents == (5,)
    with pytest.raises(UsageError, match="several functions"):
        ir.resolve(str(path), {})
    with pytest.raises(UnknownNameError):
        ir.resolve(f"{path}:h", {})
    assert ir.resolve("matmul", {"m": 4}).sizes["m"] == 4
    assert ir.resolve(" mk , kn -> mn ", {"m": 4}).sizes["m"] == 4
    for bad in ("", "matmu", "nowhere.py", "nowhere.py:f", "a/b", "mk,kn->"):
        if bad != "mk,kn->":
            with pytest.raises(UsageError):
                ir.resolve(bad, {})


def test_every_workload_at_its_defaults_is_well_formed() -> None:
    for name in ir.workload_names():
        program = ir.workload(name)
        assert not program.inouts
        assert any(not program.tensors[i].const for i in program.inputs)
        assert program.doc
