"""What a good intrinsic file becomes: families, operand orders, defaults, catalogue, schema."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import ROOT

from autosched.backends import backend_of
from autosched.errors import SpecError, UnknownNameError
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import deferred_text, load_text
from autosched.tensorize.spec.schema import schema_text
from autosched.tiling.planner.plan_program import float_policy_of

FAMILY = """\
isa: npu
intrinsics:
  - name: mac.{x}.v{n}
    for: [{x: u8, n: [1, 4]}, {x: s8, n: 8}]
    requires: ["has_{x}"]
    summary: "{n} lanes of {x}; literal {{n}} stays"
    semantics: |
      def mac(a: {x}[{n}], b: {x}[{n}], c: s32[{n}]):
          for i in range({n}):
              c[i] += s32(a[i]) * s32(b[i])
    timing: {latency: "{n}", interval: "{n}.5"}
"""


def test_a_family_has_a_member_for_each_combination():
    made = {i.name: i for i in load_text(FAMILY)}
    assert list(made) == ["npu/mac.u8.v1", "npu/mac.u8.v4", "npu/mac.s8.v8"]
    eight = made["npu/mac.s8.v8"]
    assert (eight.operands["a"].dtype.name, eight.operands["a"].shape) == ("s8", (8,))
    assert eight.requires == {"has_s8"}
    assert eight.timing == {"latency": 8.0, "interval": 8.5}
    assert eight.chain_cycles(4.0) == 8.0
    assert eight.summary == "8 lanes of s8; literal {{n}} stays"
    assert len({i.version for i in made.values()}) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (".v{n}", "", "described twice"),
        ("n: 8}", "m: 8}", "different fields"),
        ("[{x: u8, n: [1, 4]}, {x: s8, n: 8}]", "[]", "no members"),
        ("[{x: u8, n: [1, 4]}, {x: s8, n: 8}]", "{x: [u8], n: []}", "no members"),
        ("n: 8}", "n: {m: 8}}", "'n' is not a rule"),
        ("n: 8}", "n: true}", "not a text, a number or a rule"),
        ("n: 8}", "n: [1, [2]]}", "not a text, a number or a rule"),
        ("n: 8}", "n: {from: 1, to: 4}}", "'n' is not a rule"),
        ("n: 8}", "n: {from: 1, to: 4, by: 1.5}}", "'n' is not a rule"),
        ("n: 8}", "n: {from: 8, to: 1, by: 1}}", "does not count from 8 to 1 by 1"),
        ("n: 8}", "n: {from: 1, to: 8, by: 4}}", "does not count from 1 to 8 by 4"),
        ("n: 8}", "n: {from: 1, to: 4, by: 0}}", "does not count"),
        ("n: 8}", "n: {from: 1, to: 1000000000000, by: 1}}", "more than 1,024 members"),
        ("n: 8}", "n: [2, {from: 1, to: 4, by: 1}]}", "has a value twice"),
        ("n: 8}", "n: {is: m + 1}}", "unknown name 'm'"),
        ("n: 8}", "n: {is: x + 1}}", "unknown name 'x'"),
        ("n: 8}", "n: {is: 8 / 2}}", "not accepted here"),
        ("[{x: u8, n: [1, 4]}", "[{a: u8, n: [1, 4]}", "different fields"),
        ("x: s8", "x: s9", "s9"),
        ('latency: "{n}"', 'latency: "{m}"', "latency"),
        ("timing:", "operands: {x: {}}\n    timing:", "field of the family and an operand"),
    ],
)
def test_a_wrong_family(old, new, message):
    assert old in FAMILY
    with pytest.raises(SpecError) as caught:
        load_text(FAMILY.replace(old, new), "family.yaml")
    assert message in caught.value.message
    assert caught.value.location is not None


def test_values_by_a_rule():
    family = "{x: u8, n: [1, {from: 8, to: 24, by: 8}], double: {is: 2 * n}, more: {is: 100}}"
    text = FAMILY.replace("[{x: u8, n: [1, 4]}, {x: s8, n: 8}]", family).replace('"{n}"', '"{double}"')
    made = load_text(text)
    assert [i.name for i in made] == [f"npu/mac.u8.v{n}" for n in (1, 8, 16, 24)]
    assert [i.timing["latency"] for i in made] == [2.0, 16.0, 32.0, 48.0]
    assert {i.family for i in made} == {"npu/mac.*.v*"}


def test_a_list_shows_the_same_whether_or_not_intrinsics_are_built():
    text = FAMILY.replace("    timing", "    source: a manual\n    timing")
    made = load_text(text)
    assert [e.outline() for e in deferred_text(text, "f.yaml").values()] == [i.outline for i in made]
    catalogue = Catalogue.builtin().with_intrinsics(made)
    shown = {o.name: o for o in catalogue.outlines()}
    assert list(shown) == list(catalogue)
    assert all(shown[n] == catalogue[n].outline for n in list(catalogue)[::23])


def test_an_error_in_one_member_names_the_member():
    with pytest.raises(SpecError, match=r"with x=s 8, n=8") as caught:
        load_text(FAMILY.replace("x: s8", "x: s 8"), "f.yaml")
    assert caught.value.location.line == 3


def _order(packed: str) -> list[tuple[int, ...]]:
    (made,) = load_text(f"""\
isa: npu
intrinsics:
  - name: dot
    semantics: |
      def dot(a: s8[2, 3, 4], c: s32[2]):
          for i, j in grid(2, 3):
              c[i] += s32(a[i, j, 0]) + s32(a[i, j, 1]) + s32(a[i, j, 2]) + s32(a[i, j, 3])
    operands: {{a: {{{packed}}}}}
""")
    image, _ = made.operands["a"].order.points()
    return [tuple(int(c) for c in point) for point in image.T]


@given(st.permutations([0, 1, 2]), st.permutations(range(3)))
def test_packed_is_numpys_transposition(order, spelling):
    """Element e of the register is the e-th of the operand transposed to the packed order, however it is spelt."""
    names = (["i", "j", "a.2"], ["a.0", "a.1", "a.2"], [0, 1, 2])[spelling[0]]
    words = ", ".join(str(names[d]) for d in order)
    numbers = np.arange(24).reshape(2, 3, 4).transpose(order).reshape(-1)
    expected = [tuple(int(n) for n in np.unravel_index(v, (2, 3, 4))) for v in numbers]
    assert _order(f"packed: [{words}]") == expected


def test_order_expressions_say_what_packed_says():
    assert _order('order: ["e // 4 % 2", "e >> 3", "e & 3"]') == _order("packed: [j, i, a.2]")
    assert _order("") == _order("packed: [i, j, a.2]")


def test_numerics_default_to_the_accumulators_type():
    text = FAMILY.replace("s32(", "f32(").replace("c: s32", "c: f32")
    assert [i.numerics.accumulate for i in (*load_text(FAMILY)[:1], *load_text(text)[:1])] == ["exact", "sequential"]


@pytest.mark.slow
def test_builtin_catalogue():
    catalogue = Catalogue.builtin()
    assert {"x86/vpdpbusd.zmm", "x86/vpdpbusds.ymm", "x86/vfmadd.f64.zmm", "x86/vdpbf16ps.zmm"} <= set(catalogue)
    assert {"portable/mac.u8.s8.s32.v1", "portable/mac.f32.f32.f32.v16", "portable/mac.e4m3.e5m2.f32.v8"} <= set(
        catalogue
    )
    assert {"cuda/wmma.m16n16k16.f16.f32", "cuda/dp4a.s8.u8", "cuda/mma.m16n8k32.e4m3.e5m2.f32"} <= set(catalogue)
    for name, made in catalogue.items():
        assert made.name == name
        assert made.summary, name
        if made.kind == "function":
            continue
        untold = {"latency"} if made.stage.assign.op == "=" else set()  # no sum waits for it
        assert {"interval"} <= made.timing.keys() - {"chain"} | untold == {"latency", "interval"} | untold, name
        assert bool(made.interval_by_rows) == (made.matrices is not None), name
        assert made.accumulator.written, name
        assert made.accumulator.name == ("c" if made.kind == "compute" or made.isa == "gemmini" else "y"), name
        fixed = not any(f.startswith("sve") for f in made.requires)  # vectors of a length that LLVM knows
        assert ("llvm" in made.emit) == (backend_of(made.isa).is_cpu and made.scope == "thread" and fixed), name
        assert made.timing_source, name
        assert made.source or made.isa == "portable", name
    assert Catalogue.builtin() is catalogue
    assert pickle.loads(pickle.dumps(catalogue)) == catalogue
    with pytest.raises(TypeError):
        catalogue["x86/vpdpbusd.zmm"] = None


def test_select_by_glob():
    catalogue = Catalogue.builtin()
    assert [i.name for i in catalogue.select(["vpdpbusd.*"])] == [n for n in catalogue if "/vpdpbusd." in n]
    assert [i.name for i in catalogue.select(["x86/vfmadd.f32.zmm", "x86/vfmadd.f32.*"])] == [
        "x86/vfmadd.f32.zmm",
        "x86/vfmadd.f32.ymm",
    ]
    with pytest.raises(UnknownNameError, match="did you mean 'x86/vpdpbusd"):
        catalogue.select(["x86/vpdpbsd.zmm"])
    with pytest.raises(UnknownNameError):
        catalogue.find("vpdpbusd")
    assert catalogue.find("x86/vpdpbusd.zmm").operations == 128


def test_user_paths_add_and_never_replace(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "family.yaml").write_text(FAMILY)
    grown = Catalogue.builtin().with_paths([tmp_path])
    assert len(grown) == len(Catalogue.builtin()) + 3
    assert hash(grown) != hash(Catalogue.builtin())
    with pytest.raises(SpecError, match="described twice"):
        grown.with_paths([tmp_path / "mine" / "family.yaml"])


def test_the_schema_file_is_up_to_date():
    written = (ROOT / "intrinsics" / "schema.json").read_text(encoding="utf-8")
    assert json.loads(written) == json.loads(schema_text()), "run python -m autosched.tensorize.spec.schema > …"


def test_fields_of_every_builtin_file_are_in_the_schema():
    known = json.loads(schema_text())["$defs"]["IntrinsicKeys"]["properties"]
    assert {"name", "semantics", "for", "async", "operands", "emit", "timing"} <= set(known)
    assert not [k for k in known if k.endswith("_") or k == "family"]


def test_of_an_isa_those_with_other_features_are_not_built():
    catalogue = Catalogue.builtin().with_intrinsics([])  # its own, in which nothing is built
    features = frozenset(["avx2", "fma"])
    found = catalogue.of_isa("x86", "portable", features=features)
    built = catalogue.entries._built.keys()
    assert built == {i.name for i in found} < {n for n in catalogue.entries if n.split("/")[0] in ("x86", "portable")}
    assert found == tuple(i for i in catalogue.of_isa("x86", "portable") if i.requires <= features)


def test_of_a_kind_no_others_are_built():
    catalogue = Catalogue.builtin().with_intrinsics([])
    found = catalogue.of_isa(kind="function")
    assert catalogue.entries._built.keys() == {i.name for i in found}
    assert found == tuple(i for i in catalogue.of_isa(*{n.split("/")[0] for n in catalogue}) if i.kind == "function")


def test_functions_are_built_for_programs_that_call_some():
    target = load_target("x86-avx2")
    for name, called in (("matmul", False), ("softmax", True)):
        catalogue = Catalogue.builtin().with_intrinsics([])
        assert {i.kind for i in usable(catalogue, target, "cpu")} == {"compute"}
        assert bool(float_policy_of(workload(name), target, catalogue, "reassociated").formulas) is called
        kinds = {catalogue.entries.outline(n).kind for n in catalogue.entries._built}
        assert ("function" in kinds) is called


def test_whether_a_call_says_that_it_starts_from_zero():
    known = {name: i.overwrite_flag for name, i in Catalogue.builtin().items() if i.overwrite is not None}
    assert {name.split("/")[0] for name, flag in known.items() if flag} == {"cuda"}, "wgmma has the operand `keep`"
    assert {name.split("/")[0] for name, flag in known.items() if not flag} == {"gemmini"}, "an address bit"
