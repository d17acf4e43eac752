"""Arm kernels without an Arm machine: rows that compute the program in the interpreter, LLVM's code for AArch64 with
the instruction in it, and, where an emulator and a compiler for it are installed, the same bits from that code and from
the exported C.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from support.cards.emulated import emulator, run_c, run_object
from support.match.agreement import disagreement, expect
from support.plans import covering_rows, plans_of

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.llvm.machine.compile import assembly, compile_object
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock
from autosched.device.simulator.cpu.cpu_model import cpu_estimate
from autosched.device.simulator.walk.walk import facts
from autosched.errors import MissingError
from autosched.ir import workload
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.tensorize.check.emulator import EmulatedCalls, installed
from autosched.tensorize.check.verify import check
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan

TARGET = load_target("arm-neoverse-v1")
CASES = {
    "sdot": ("s8", "s8", "s32"),
    "udot": ("u8", "u8", "u32"),
    "usdot": ("u8", "s8", "s32"),
    "sudot.lane": ("s8", "u8", "s32"),
    "smmla": ("s8", "s8", "s32"),
    "ummla": ("u8", "u8", "u32"),
    "usmmla": ("u8", "s8", "s32"),
    "bfdot": ("bf16", "bf16", "f32"),
    "bfmmla": ("bf16", "bf16", "f32"),
    "fmla.f16": ("f16", "f16", "f16"),
    "fmla.f32": ("f32", "f32", "f32"),
    "fmla.f64": ("f64", "f64", "f64"),
}
"""Instruction to the dtypes of a product's operands and its accumulator."""
FORMS = {"sudot.lane": ("usdot",)}
"""What LLVM issues in its place where that is shorter: the group in every lane, and the operands exchanged."""
ROWS = 3


def _program(name: str) -> Program:
    """A product whose sizes no tile divides."""
    a, b, acc = CASES[name]
    return workload("matmul", m=3, n=7, k=13, a=a, b=b, acc=acc)


def _plan(name: str) -> Plan:
    full = f"arm/{name}"
    return next(p for p in plans_of(_program(name), TARGET, only=(full,)) if full in p.intrinsics)


def _flags(header: str) -> str:
    return next(line for line in header.splitlines() if "Build:" in line)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_rows_compute_the_program_and_compile_to_the_instruction(name: str) -> None:
    plan = _plan(name)
    rows = list(islice(covering_rows(plan, seed=5), ROWS))
    assert disagreement(plan, rows) is None
    compiler = TARGET.compiler
    for row in rows:
        text = print_llvm(lower(plan, plan.space.schedule(row)))
        code = assembly(text, compiler["cpu"], compiler["features"], triple=compiler["triple"])
        mnemonics = {line.split()[0] for line in code.splitlines() if line.startswith("\t") and line.split()}
        assert mnemonics & {name.partition(".")[0], *FORMS.get(name, ())}
    data = compile_object(text, compiler["cpu"], compiler["features"], triple=compiler["triple"])
    assert (data[:4], int.from_bytes(data[18:20], "little")) == (b"\x7fELF", 183)  # EM_AARCH64


@pytest.mark.parametrize("name", CASES)
def test_emulated_code_gives_the_bits_of_the_interpreter(name, tmp_path) -> None:
    found = emulator("arm")
    plan = _plan(name)
    expected = expect(plan.program, seed=8)
    kernel = lower(plan, plan.space.schedule(next(iter(covering_rows(plan, seed=6)))))
    wanted = run_kernel(kernel, expected.arrays, {})
    assert expected.difference(wanted) is None
    for got in (run_object(found, kernel, TARGET, expected.arrays), run_c(found, kernel, expected.arrays, tmp_path)):
        assert got["C"].tobytes() == np.ascontiguousarray(wanted["C"]).tobytes()


def test_the_header_names_extensions_of_the_architecture() -> None:
    def header(name: str) -> str:
        plan = _plan(name)
        return print_c(lower(plan, plan.space.schedule(next(iter(covering_rows(plan)))))).header

    assert _flags(header("sdot")).endswith("-ffp-contract=off -march=armv8.2-a+dotprod")
    assert _flags(header("bfmmla")).endswith("-ffp-contract=off -march=armv8.2-a+bf16")
    assert _flags(header("fmla.f32")).endswith("-ffp-contract=off")  # every core has it


def test_scalar_stages_fuse_on_a_target_that_has_vectors() -> None:
    program = workload("gemv", m=4, k=16)
    for target, fused in ((TARGET, True), (replace(TARGET, features=frozenset()), False)):
        plan = make_plans(program, target, {})[0]
        text = print_llvm(lower(plan, plan.space.schedule(next(iter(covering_rows(plan))))))
        code = assembly(text, "neoverse-v1", "", triple="aarch64-unknown-linux-gnu")
        assert fused == ("fmla" in code or "fmadd" in code) == ("fmul" not in code)


def test_a_machine_that_llvm_does_not_know_is_named() -> None:
    with pytest.raises(MissingError, match="pdp11"):
        compile_object("define void @f() { ret void }", triple="pdp11-unknown-none")


def test_a_description_is_checked_under_the_emulator() -> None:
    emulator("arm")
    known = Catalogue.builtin()
    assert check(known["arm/usmmla"], frozenset(), emulators=installed()).emulated
    path = known["arm/usmmla"].path
    with open(path, encoding="utf-8") as file:
        text = file.read()
    wrong = text.replace("x: u8, y: s8, acc: s32, cc: vusmmlaq", "x: s8, y: u8, acc: s32, cc: vusmmlaq")
    planted = next(i for i in load_text(wrong, "planted.yaml") if i.name == "arm/usmmla")
    report = check(planted, frozenset(), emulators=installed())
    assert not report.ok
    assert "the instruction, emulated gives" in str(report)


def test_the_driver_reads_calls_and_writes() -> None:
    text = EmulatedCalls((4, 8), (("f", (1, 0)),), (0,), (1,)).driver()
    assert text.index("fread(b0, 1, 4") < text.index("f(b1, b0)") < text.index("fwrite(b1, 1, 8")


@pytest.mark.parametrize("part", ["rates", "limits"])
def test_both_models_take_the_core_from_the_target(part: str) -> None:
    plan = _plan("fmla.f32")
    row = next(iter(covering_rows(plan, seed=6)))
    schedule = plan.space.schedule(row)
    kernel = lower(plan, schedule)
    found = [facts(kernel, stmt) for stmt in kernel.main.body]
    slow = replace(TARGET, **{part: getattr(TARGET, part) | {"load": 0.01, "issue_width": 1}})
    slower, faster = (cpu_estimate(kernel, found, t).seconds["total"] for t in (slow, TARGET))
    assert slower > faster
    columns = plan.space.values(np.array([row]))
    usual, slower = (clock(replace(plan, target=t), columns)["total"][0] for t in (TARGET, slow))
    assert slower > usual
