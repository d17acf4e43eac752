"""Emission text: fields, temporaries, declarations, register bytes."""

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosched.codegen.cuda.fragments.lane_registers import registers_of
from autosched.errors import SpecError
from autosched.ir.dtypes import DTYPES, dtype
from autosched.ir.map import identity
from autosched.tensorize.check.native import from_register_bytes, issue_ir, register_bytes
from autosched.tensorize.check.values import any_bits, cases, corners
from autosched.tensorize.intrinsic import Operand
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.emit import c_bits, fault_of_template, llvm_bits, llvm_declarations, render_c, render_llvm
from autosched.tensorize.spec.load import load_text

NPU = """\
isa: npu
intrinsics:
  - name: dot
    semantics: |
      def dot(a: {t}[2, 4], c: {acc}[2]):
          for i, k in grid(2, 4):
              c[i] += {acc}(a[i, k])
    operands: {{a: {{packed: [k, i]}}}}
    emit:
      llvm: |
        %{{x}} = call {{{{<2 x i32>, i1}}}} @llvm.npu.v8{t}({{{{i32, i32}}}} zeroinitializer, <8 x {ll}> {{a}}) ; why
        %{{sum}} = extractvalue {{{{<2 x i32>, i1}}}} %{{x}}, 0

        add <2 x i32> %{{sum}}, {{c}}
"""


def test_a_block_is_rendered_with_fresh_names():
    (dot,) = load_text(NPU.format(t="s8", acc="s32", ll="i8"))
    numbers = count(7)
    lines, result = render_llvm(dot, {"a": "%x", "c": "%y"}, lambda: f"%v{next(numbers)}")
    assert lines == [
        "%v7 = call {<2 x i32>, i1} @llvm.npu.v8s8({i32, i32} zeroinitializer, <8 x i8> %x)",
        "%v8 = extractvalue {<2 x i32>, i1} %v7, 0",
        "%v9 = add <2 x i32> %v8, %y",
    ]
    assert result == "%v9"
    assert llvm_declarations(dot) == ["declare {<2 x i32>, i1} @llvm.npu.v8s8({i32, i32}, <8 x i8>)"]
    assert dot.operands["a"].registers == {"llvm": "<8 x i8>"}  # the natural type, where none is given
    with pytest.raises(SpecError, match=r"has no emit\.c"):
        render_c(dot, {"a": "x", "c": "y"})


def test_builtin_declarations_and_c():
    catalogue = Catalogue.builtin()
    assert llvm_declarations(catalogue["x86/vpdpbusd.zmm"]) == [
        "declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <64 x i8>, <64 x i8>)"
    ]
    assert llvm_declarations(catalogue["portable/mac.u8.s8.s32.v4"]) == []
    values = {"a": "a0", "b": "b1", "c": "acc"}
    assert render_c(catalogue["x86/vfmadd.f64.ymm"], values) == "_mm256_fmadd_pd(a0, b1, acc)"


def test_every_builtin_llvm_text_is_a_function_that_llvm_accepts():
    binding = pytest.importorskip("llvmlite.binding")
    known = Catalogue.builtin()
    for outline in known.outlines():
        if "llvm" in outline.printers:
            binding.parse_assembly(issue_ir(known[outline.name])).verify()


@pytest.mark.parametrize(
    ("text", "bits"),
    [("<16 x i32>", 512), ("< 4 x bfloat >", 64), ("i128", 128), ("double", 64), ("<3 x i1>", 3), ("<0 x i8>", None)],
)
def test_llvm_widths(text, bits):
    assert llvm_bits(text) == bits


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("__m512i", 512),
        ("__m256bh", 256),
        ("uint8_t", 8),
        ("vec_t", None),
        ("float __attribute__((vector_size(4 * 16)))", 512),
        ("int __attribute__((vector_size(8)))", 64),
    ],
)
def test_c_widths(text, bits):
    assert c_bits(text) == bits


@given(st.sampled_from(["u4", "s4", "b1", "s8", "e2m1", "e4m3", "bf16", "f32", "s64"]), st.integers(0, 2**32))
def test_register_bytes_go_and_come_back(name, seed):
    acc = "f32" if name in ("e2m1", "e4m3", "bf16") else name
    (dot,) = load_text(NPU.split("    emit:")[0].format(t=name, acc=acc))
    a = dot.operands["a"]
    values = any_bits(a.dtype, (3, 2, 4), np.random.default_rng(seed))
    raw = register_bytes(a, values)
    assert raw.shape == (3, 8 * a.dtype.bits // 8)
    back = from_register_bytes(a, raw)
    assert back.tobytes() == values.tobytes()
    if name == "s8":  # packed [k, i]: element e = 2 k + i
        assert raw.view(np.int8).tolist() == values.transpose(0, 2, 1).reshape(3, 8).tolist()


def test_low_elements_of_small_types_are_in_the_low_bits():
    (dot,) = load_text(NPU.split("    emit:")[0].format(t="u4", acc="u4"))
    a = dot.operands["a"]
    values = np.arange(8).reshape(1, 4, 2).transpose(0, 2, 1).astype(a.dtype.numpy)
    assert register_bytes(a, values).tolist() == [[0x10, 0x32, 0x54, 0x76]]


def test_corners_of_64_bits_are_whole_numbers():
    """As floats the largest would be no number of the type."""
    assert {2**64 - 1, 2**64 - 2, 2**63 - 1} <= {int(v) for v in corners(DTYPES["u64"])}


def test_corners_hold_what_tells_instructions_apart():
    operands = Catalogue.builtin()["x86/vdpbf16ps.zmm"].operands
    values = corners(operands["c"].dtype)
    as_double = values.astype(np.float64)
    tiny = np.finfo(np.float32).tiny
    assert np.isnan(values).any()
    assert set(as_double[np.isinf(values)]) == {np.inf, -np.inf}
    assert {tiny, -tiny, 1.0, np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal} <= set(as_double)
    assert {bool(s) for s in np.signbit(values[values == 0])} == {True, False}
    eight = corners(Catalogue.builtin()["portable/mac.e4m3.e4m3.f32.v4"].operands["a"].dtype).astype(np.float64)
    assert 448 in eight
    assert 2**-9 in eight  # the least subnormal
    assert np.isnan(eight).any()


def test_cases_cover_all_pairs_of_bytes():
    made = Catalogue.builtin()["portable/mac.u8.s8.s32.v16"]
    arrays = cases(made, np.random.default_rng(0))
    pairs = {(int(x), int(y)) for x, y in zip(arrays["a"].reshape(-1), arrays["b"].reshape(-1), strict=True)}
    assert len(pairs) == 65536


HIDDEN = "{a} /* ( */ ); abort(); ( /* ) */ {b}"
ESCAPED = r"""f({a}, "\\")); abort(); (({b}, "x")"""


@pytest.mark.parametrize("text", ["{a}); abort(); ({b}", "f({a}, {b}", "{a})) + (({b}", HIDDEN, ESCAPED])
def test_c_that_leaves_its_brackets_is_no_expression(text):
    operands = {name: Operand(name, dtype("f32"), (1,), identity(("i",), (1,))) for name in "ab"}
    assert "bracket" in fault_of_template("c", text, operands, "a")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{c} + {a}; abort()", "`;` ends it"),
        ("{c}; c = {c} + {a}", "`;` ends it"),
        ("{c} }} void evil(void) {{ {a}", "closed that was not opened"),
        ("f({a}[0)]", "closed that was not opened"),
        ("({c} + {a}", "( is not closed"),
        ("{c} + {a} /*", "a comment has no end"),
        ("{c} + {a} // all", "// hides what follows"),
        ("{c} + {a} /* x */ // y", "// hides what follows"),
        ("{c} + {a}\n#define x", "# is no operator"),
        ("{c} + {a} \\", "\\ is no operator"),
        ("{c} + {a} + '", "a quote has no end"),
        ('{c} + {a} + "x', "a quote has no end"),
    ],
)
def test_c_that_hides_or_ends_what_follows_is_no_expression(text, why):
    operands = {name: Operand(name, dtype("f32"), (1,), identity(("i",), (1,))) for name in "ac"}
    assert why in (fault_of_template("c", text, operands, "c") or "")


IN_BRACKETS = ["({{ int x = {a}; x + {c}; }})", "f({a}, (T){{0}}) /* ; */ + {c}", """{c} + {a} + '"'"""]


@pytest.mark.parametrize("text", IN_BRACKETS)
def test_statements_in_brackets_are_an_expression(text):
    operands = {name: Operand(name, dtype("f32"), (1,), identity(("i",), (1,))) for name in "ac"}
    assert fault_of_template("c", text, operands, "c") is None


IN_STRINGS = r"""f({a}, ")", {b}, ')', "\\")"""


@pytest.mark.parametrize("text", [IN_STRINGS, r"""f({a}, "\")", {b})""", "f({a} /* :) */, {b})"])
def test_brackets_in_strings_and_comments_do_not_count(text):
    operands = {name: Operand(name, dtype("f32"), (1,), identity(("i",), (1,))) for name in "ab"}
    assert fault_of_template("c", text, operands, "a") is None


@pytest.mark.parametrize("printer", ["cuda", "cuda_registers"])
def test_texts_of_a_language_with_descriptors_have_fields_for_them(printer):
    operands = {name: Operand(name, dtype("f32"), (1,), identity(("i",), (1,))) for name in "ab"}
    assert fault_of_template(printer, "f {a}, {b.across}, {keep};", operands, "a") is None
    keep = operands | {"keep": operands["a"]}
    assert "the field {keep}" in (fault_of_template(printer, "f {a}, {keep};", keep, "a") or "")


@pytest.mark.parametrize("printer", ["c", "llvm", "hip", "cuda_of_another_kind", "cuda2"])
def test_no_others_have(printer):
    operands = {name: Operand(name, dtype("f32"), (1,), identity(("i",), (1,))) for name in "ab"}
    assert "descriptors belong" in (fault_of_template(printer, "f({a}, {b.across})", operands, "a") or "")
    assert "{keep} is no operand" in (fault_of_template(printer, "f({a}, {b}, {keep})", operands, "a") or "")
    keep = operands | {"keep": operands["a"]}
    assert fault_of_template(printer, "%{t} = add {a}, {b}\nadd %{t}, {keep}", keep, "a") is None or printer != "llvm"


@pytest.mark.parametrize("registers", ["8 x b", "8 x q32", "8 x b12"])
def test_registers_that_cuda_does_not_have_are_refused(registers):
    operand = Operand("a", dtype("f32"), (1,), identity(("i",), (1,)), registers={"cuda": registers})
    with pytest.raises(SpecError, match=f"operand a: '{registers}' names no registers of CUDA"):
        registers_of(operand, 32)
