"""Built-in workloads: language files in `workloads/` and `workloads/fused/`, chosen by name and by a few options.

An option (`ta=1`, `layout=nchw`) chooses among functions of a file; everything else is a size or dtype of the function.
The accumulator's dtype follows from the operands' where it is not given.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import cast

from autosched.errors import AutoschedError, ProgramError, UnknownNameError, UsageError
from autosched.given import checked
from autosched.ir.dtypes import DTYPES
from autosched.ir.parser import Define, parse
from autosched.ir.program import Program

Chosen = Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """Functions of one file under one name. `options` maps an option to its values, the first being the default;
    `function` names the function for chosen options. `groups`: a grouped form exists. `converts`: it takes an output
    dtype, which defaults to the accumulator's; with another the function is its `rounded` form."""

    file: str
    function: Callable[[Chosen], str]
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: bool = False
    converts: bool = False


def _transposes(name: str) -> Callable[[Chosen], str]:
    return lambda chosen: name + {"00": "", "01": "_nt", "10": "_tn", "11": "_tt"}[chosen["ta"] + chosen["tb"]]


def _plain(name: str) -> Callable[[Chosen], str]:
    return lambda chosen: name


def _layout(name: str) -> Callable[[Chosen], str]:
    return lambda chosen: name + ("_nchw" if chosen["layout"] == "nchw" else "")


def _folded(chosen: Chosen) -> str:
    return _layout("conv2d_bias_relu")(chosen) + ("_residual" if chosen["residual"] == "1" else "")


def _gelu(chosen: Chosen) -> str:
    return "matmul_bias_gelu" + ("_tanh" if chosen["gelu"] == "tanh" else "")


def _named(pattern: str) -> Callable[[Chosen], str]:
    return lambda chosen: pattern.format(**chosen)


def _masked(name: str) -> Callable[[Chosen], str]:
    return lambda chosen: name + ("" if chosen["mask"] == "full" else f"_{chosen['mask']}")


_BITS = {"ta": ("0", "1"), "tb": ("0", "1")}
_LAYOUTS = {"layout": ("nhwc", "nchw")}
_ELEMENTWISE = ("add", "bias", "relu", "gelu", "sigmoid")
_FUSED = {
    "attention_scores": ("attention_alibi", "attention_softcap"),
    "attention_offsets": ("attention_offsets",),
    "decode": ("attention_decode", "mla_decode"),
    "mlp": ("mlp", "swiglu", "geglu"),
    "norm_product": ("rms_norm_product", "layer_norm_product"),
    "quantized": (
        "matmul_int4", "matmul_int8", "matmul_fp8", "matmul_fp4", "matmul_fp4_packed", "matmul_fp8_blocks",
        "matmul_fp8_blocks_nt",
    ),
    "cross_entropy": ("cross_entropy", "log_softmax"),
    "mean_variance": ("mean_variance",),
    "separable": ("depthwise_pointwise", "conv2d_pointwise", "inverted_residual"),
    "scans": ("prefix_sum", "prefix_max", "linear_scan"),
}
"""Files of chains, and their functions of one form."""
FAMILIES: dict[str, Family] = {
    "matmul": Family("matmul", _transposes("matmul"), _BITS, converts=True),
    "matmul_nt": Family("matmul", _plain("matmul_nt"), converts=True),
    "matmul_tn": Family("matmul", _plain("matmul_tn"), converts=True),
    "matmul_tt": Family("matmul", _plain("matmul_tt"), converts=True),
    "batch_matmul": Family("batch_matmul", _transposes("batch_matmul"), _BITS, converts=True),
    "matmul_strided": Family("matmul_strided", _plain("matmul_strided"), converts=True),
    "matmul_sparse": Family("matmul_sparse", _plain("matmul_sparse"), converts=True),
    "gemv": Family("gemv", _plain("gemv"), converts=True),
    "conv1d": Family("conv1d", _plain("conv1d"), groups=True, converts=True),
    "conv2d": Family("conv2d", _layout("conv2d"), _LAYOUTS, groups=True, converts=True),
    "conv2d_nchw": Family("conv2d", _plain("conv2d_nchw"), groups=True, converts=True),
    "depthwise_conv2d": Family("depthwise_conv2d", _layout("depthwise_conv2d"), _LAYOUTS, converts=True),
    "conv2d_transposed": Family("conv2d_transposed", _layout("conv2d_transposed"), _LAYOUTS, converts=True),
    "conv3d": Family("conv3d", _layout("conv3d"), _LAYOUTS, converts=True),
    "softmax": Family("softmax", _plain("softmax")),
    "layer_norm": Family("layer_norm", _plain("layer_norm")),
    "reduce": Family("reduce", _named("{op}_{over}"), {"op": ("sum", "max"), "over": ("rows", "columns")}),
    "elementwise": Family("elementwise", _named("elementwise_{op}"), {"op": _ELEMENTWISE}),
    "matmul_bias_relu": Family("matmul_bias_relu", _plain("matmul_bias_relu")),
    "matmul_bias_gelu": Family("matmul_bias_gelu", _gelu, {"gelu": ("erf", "tanh")}),
    "conv2d_bias_relu": Family("conv2d_bias_relu", _folded, {**_LAYOUTS, "residual": ("0", "1")}),
    "matmul_requant": Family("matmul_requant", _plain("matmul_requant")),
    "attention": Family("fused/attention", _masked("attention"), {"mask": ("full", "causal", "window")}),
    "attention_rounded": Family("fused/attention_rounded", _masked("attention_rounded"), {"mask": ("full", "causal")}),
    "linear_attention": Family("fused/linear_attention", _masked("linear_attention"), {"mask": ("full", "causal")}),
    "matmul_experts": Family("fused/experts", _named("matmul_experts_{rows}"), {"rows": ("contiguous", "masked")}),
    **{name: Family(f"fused/{file}", _plain(name)) for file, names in _FUSED.items() for name in names},
}


def workload_names() -> tuple[str, ...]:
    """The names that `workload` knows."""
    return tuple(sorted(FAMILIES))


@checked()
def workload(name: str, /, **defines: Define) -> Program:
    """The built-in workload `name`, as `workload("matmul", m=1024, a="u8", b="s8", tb=1)`.

    `t` is short for both operands' dtypes. The accumulator `acc` follows from them, and the output's `out` from it,
    where they are not given. UnknownNameError for a workload, size, dtype or option that does not exist, UsageError for
    a dtype that the program cannot have.
    """
    try:
        return _made(name, defines)
    except ProgramError as error:  # the text is ours: what is wrong is a value that was given
        for wrong in (n for n, value in defines.items() if str(value) in DTYPES):
            if possible := [t for t in DTYPES if _parses(name, {**defines, wrong: t})]:
                said = f"{name} cannot have {wrong}={defines[wrong]}: {error.message}"
                summed = "acc" not in defines and _parses(name, {**defines, "acc": "f32"})
                beside = f"; or add acc=f32 (it is {accumulator(str(defines[wrong]))} now)" if summed else ""
                raise UsageError(said, hint=f"{wrong} is one of {', '.join(possible)}{beside}") from None
        raise


def _parses(name: str, defines: Mapping[str, Define]) -> bool:
    try:
        _made(name, defines)
    except AutoschedError:
        return False
    return True


def _made(name: str, defines: Mapping[str, Define]) -> Program:
    family = FAMILIES.get(name)
    if family is None:
        raise UnknownNameError("workload", name, FAMILIES, most=len(FAMILIES))
    given = dict(defines)
    chosen = {o: _option(o, given.pop(o, values[0]), values) for o, values in family.options.items()}
    function = family.function(chosen)
    if family.groups:
        if str(given.get("groups", 1)) == "1":
            given.pop("groups", None)
        else:
            function += "_grouped"
    text = resources.files("autosched.ir.workloads").joinpath(f"{family.file}.py").read_text(encoding="utf-8")
    types = _dtypes(text, function)
    if "t" in given and "a" in types:
        both = given.pop("t")
        given = {"a": both, "b": both, **given}
    operands = [str(given.get(o, types[o])) for o in ("a", "b", "t") if o in types]
    if "acc" in types:
        given.setdefault("acc", accumulator(*operands))
    if family.converts:
        if given.setdefault("out", given["acc"]) == given["acc"]:
            del given["out"]
        else:
            text, function = rounded(text, function), f"{function}_to"
    elif "out" in types and types["out"] == types["acc"]:
        given.setdefault("out", given["acc"])
    try:
        return parse(text, f"{family.file}.py", function, given)
    except UnknownNameError as e:
        wrong = [n for n in defines if e.message == f"unknown size or dtype {n!r}"]
        if not wrong:
            raise
        extra = [*family.options, *(["groups"] if family.groups else []), *(["out"] if family.converts else [])]
        raise UnknownNameError(
            f"size, dtype or option of {name}", wrong[0], [*_known(text, function), *extra]
        ) from None


def _dtypes(text: str, function: str) -> dict[str, str]:
    return parse(text, function=function).dtypes


def _known(text: str, function: str) -> list[str]:
    program = parse(text, function=function)
    return [*program.sizes, *program.dtypes]


def _option(name: str, given: Define, values: tuple[str, ...]) -> str:
    text = str(given).lower()
    if text not in values:
        raise UsageError(f"{name}={given} is not an option", hint=f"{name} is one of {', '.join(values)}")
    return text


def accumulator(*operands: str) -> str:
    """The default accumulator of products: s32 for integers (s64 for 64-bit ones), f32 for floats, f64 for f64.

    >>> accumulator("u8", "s8"), accumulator("f16", "f16"), accumulator("f64", "f32")
    ('s32', 'f32', 'f64')
    """
    types = [DTYPES[o] for o in operands if o in DTYPES]
    if any(t.name == "f64" for t in types):
        return "f64"
    if any(t.is_float for t in types) or not types:
        return "f32"
    return "s64" if any(t.bits == 64 for t in types) else "s32"


SUM = "S"


def rounded(text: str, function: str) -> str:
    """The text of `{function}_to`: `function`, whose last parameter is of type `acc` and filled by its one nest, with
    sums in an intermediate `S` and a nest behind it that converts them to the new dtype `out`.

    def f(…, C: acc[m], *, …):          def f_to(…, C: out[m], *, …, out="f16"):
        for i in range(m):                  S: acc[m]
            C[i] = 0                        for i in range(m):
            …                                   S[i] = 0
                                                …
                                            for i in range(m):
                                                C[i] = out(S[i])
    """
    found = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == function)
    result = found.args.args[-1]
    held = ast.parse(f"{SUM}: {ast.unparse(cast(ast.expr, result.annotation))}").body[0]
    result.annotation = ast.parse(f"out[{ast.unparse(cast(ast.Subscript, result.annotation).slice)}]", mode="eval").body
    found.args.kwonlyargs.append(ast.arg("out"))
    found.args.kw_defaults.append(ast.Constant("f16"))
    nest = found.body[-1]
    assert isinstance(nest, ast.For)
    first = nest.body[0]
    assert isinstance(first, ast.Assign)
    element = ast.unparse(first.targets[0])
    for node in ast.walk(nest):
        if isinstance(node, ast.Name) and node.id == result.arg:
            node.id = SUM
    stored = ast.parse(f"{element} = out({ast.unparse(first.targets[0])})").body
    found.body[-1:] = [held, nest, ast.For(nest.target, nest.iter, stored, [])]
    doc = cast(str, ast.get_docstring(found))
    found.body[0] = ast.Expr(ast.Constant(f"{doc.removesuffix('.')}, summed in `acc` and converted to `out`."))
    found.name += "_to"
    return ast.unparse(ast.fix_missing_locations(found))
