"""`autosched show`: the schedule, the loop tree and the code of a stored trial."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from autosched.backends import CUDA_C, C, languages
from autosched.cli import inputs, options
from autosched.cli.answers.computed_operands import computed_lines
from autosched.cli.answers.fusion import (
    fusion_json,
    fusion_lines,
    left_out_lines,
    other_lines,
    serial_lines,
    work_lines,
)
from autosched.cli.answers.rewrite_proofs import rewrite_lines
from autosched.cli.answers.under_masks import masked_lines, useful_json
from autosched.cli.output import answer, answer_json, joules, talk
from autosched.cli.printed import not_of_a_gpu, tell_wrong_c, text_of
from autosched.cli.stored import objective_of, opened, picked, plan_in, plan_of, plans_in, target_of
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.print_functions import functions_of
from autosched.codegen.proved_layouts import prove_schedule
from autosched.codegen.tree.kernel import Kernel
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock
from autosched.device.cpu.builder import Builder
from autosched.errors import AutoschedError, UsageError
from autosched.ir import parse
from autosched.ir.work import operations
from autosched.machine.target import Target
from autosched.report.plan_text import plan_lines
from autosched.report.text import seconds, speed
from autosched.report.units import statements_lines, statements_of, units_lines, units_of
from autosched.store import codec
from autosched.store.records import Trial
from autosched.tensorize.explanation.certificate import certificate_lines
from autosched.tensorize.explanation.padding import padding_lines
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.plans.units import AcceleratorUnits
from autosched.tiling.steps.gpu.operands.shared_proofs import LayoutProof, proof_json, proof_lines

VIEWS = ("all", "schedule", "loops", "c", "cuda", "llvm", "asm", "key", "proof")

MOST_OF_IT = 0.75
"""Share of a row's time that the terms which bound it make up."""
NO_PROOF = "the plan computes every stage as scalar code, as the program says"


def show(
    study: options.StudyArg = None,
    trial: options.TrialOpt = None,
    view: Annotated[
        str | None, typer.Option("--as", metavar="VIEW", help=f"One of {', '.join(VIEWS)}.", show_default="all")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Write a simulated trace for Perfetto; alone, show nothing else."),
    ] = None,
    store: options.StoreOpt = None,
    json: options.JsonOpt = False,
) -> None:
    """Show a study's best schedule, its loop tree and its code.

    The code is C, and for a GPU CUDA C++.
    """
    known = languages()
    inputs.choice("view", view or "all", tuple(dict.fromkeys([*VIEWS, *known])))
    record, trials = opened(study, store)
    if trace is not None:
        chosen = picked(record, trials, trial)
        plan = plan_of(record, chosen)
        _write_trace(trace, lower(plan, plan.space.schedule(chosen.row)), target_of(record), plan.units)
        if view is None:
            if json:
                about = {"study": record.name, "trial": chosen.number, "file": str(trace)}
                answer_json({"schema": "autosched/trace/1", **about})
            return
    view = view or "all"
    if view == "key":
        answer_json(record.key)
        return
    chosen = picked(record, trials, trial)
    certificates = record.settings.get("certificates", {}).get(chosen.plan, [])  # older studies have none
    if view == "proof" and not json:
        plans = plans_in(record)
        plan = plan_in(plans, record, chosen)
        lines = rewrite_lines(plan, chosen, parse(record.program), trials, plans)
        lines += [line for found in certificates for line in certificate_lines(found)]
        lines = lines or [NO_PROOF]
        shared = _shared(plan, chosen)
        answer("\n".join([*lines, *(["shared memory, by z3:", *proof_lines(shared)] if shared else [])]))
        return
    plan = plan_of(record, chosen)
    kernel, target = lower(plan, plan.space.schedule(chosen.row)), target_of(record)
    own = target.backend.language
    if view in ("all", "c") and scheme_of(target) != "gpu":
        tell_wrong_c(kernel)
    if json:
        other = {own.name: text_of(kernel, target, own)} if own is not None and own != C else {}
        answer_json(
            {
                "schema": "autosched/show/1",
                "study": record.name,
                "trial": codec.trial_to_dict(chosen),
                "certificates": certificates,
                "shared_memory": [proof_json(p) for p in _shared(plan, chosen)],
                "clock": _terms(plan, chosen.row),
                **fusion_json(kernel),
                "rewrites": [r.as_json() for r in plan.rewrites],
                **useful_json(plan, chosen.row),
                "units": units_of(chosen.measurement.extra),
                **({"statements": does} if (does := statements_of(chosen.measurement.extra)) else {}),
                "loops": print_kernel(kernel),
                C.name: _code(kernel, target),
                CUDA_C.name: None,
                **other,
            }
        )
        return
    time_s = chosen.measurement.time_s
    if view in ("llvm", "asm"):
        not_of_a_gpu(target, lambda language: f"--as {language.name}")
    parts = []
    if view in ("all", "schedule"):
        head = f"{record.name}   trial {chosen.number}   {seconds(time_s)}"
        head += "   " + (speed(operations(parse(record.program)), time_s) if time_s else chosen.measurement.status)
        head += joules(chosen.measurement, objective_of(record))
        width = max((len(k) for k in chosen.schedule), default=0)
        rows = [f"  {k:<{width}} = {v}" for k, v in chosen.schedule.items()]
        every = partial(Catalogue.builtin().of_isa, target.isa, features=target.features, kind="compute")
        padding = list(dict.fromkeys(line for m in plan.mappings for line in padding_lines(m, (), every)))
        padding += masked_lines(plan, chosen.row)
        program = parse(record.program)
        together = [*other_lines(plan), *serial_lines(plan), *left_out_lines(plan), *computed_lines(plan)]
        together += fusion_lines(plan, kernel, program)
        together += [f"work     {line}" for line in work_lines(program)]
        units = [*units_lines(chosen.measurement.extra), *_does(chosen)]
        said = [*together, *padding, *units, _clock(_terms(plan, chosen.row))]
        first, *further = plan_lines(chosen.plan)
        parts.append("\n".join([head, f"plan  {first}", *(f"      {line}" for line in further), *rows, *said]))
    if view in ("all", "loops"):
        told = kernel if view == "loops" else replace(kernel, schedule={})  # which stands above
        parts.append(print_kernel(told).rstrip())
    if view == "all" and (code := _code(kernel, target)) is not None:
        parts.append(code.rstrip())
    if view == "all" and own is not None and own != C:
        parts.append(text_of(kernel, target, own).rstrip())
    if view in known:
        parts.append(text_of(kernel, target, known[view]).rstrip())
    if view == "llvm":
        parts.append(print_llvm(kernel).rstrip())
    if view == "asm":
        parts.append(_assembly(kernel, target).rstrip())
    answer("\n\n".join(parts))


def _terms(plan: Plan, row: int) -> dict[str, float]:
    """The clock's seconds of a row, term by term, and `total`."""
    return {name: float(np.ravel(s)[0]) for name, s in clock(plan, plan.space.values([row])).items()}


def _does(trial: Trial) -> list[str]:
    """Which instructions do each statement of a simulated accelerator's trial."""
    lines = statements_lines(trial.measurement.extra)
    return [f"{'' if n else 'does':<6}{line}" for n, line in enumerate(lines)]


def _clock(terms: dict[str, float]) -> str:
    """What the clock says, and which terms bound the row: those that leave little of its time over."""
    shown = sorted(((s, name) for name, s in terms.items() if name != "total" and s > 0), reverse=True)
    names: list[str] = []
    covered = 0.0
    for s, name in shown:
        if covered < MOST_OF_IT * terms["total"]:
            names, covered = [*names, name], covered + s
    most = f", bound by {' and '.join(names)}: " if names else ""
    return f"clock {seconds(terms['total'])}{most}" + "  ".join(f"{name} {seconds(s)}" for s, name in shown)


def _shared(plan: Plan, trial: Trial) -> list[LayoutProof]:
    """What is proved of a GPU kernel's shared memory: of its space in all cases, and of where this kernel has it."""
    return prove_schedule(plan, trial.row, all_cases=True)


def _write_trace(path: Path, kernel: Kernel, target: Target, units: AcceleratorUnits) -> None:
    """The simulator's events of the kernel, as a file that ui.perfetto.dev opens."""
    from json import dumps

    from autosched.device.simulator.trace import trace

    try:
        path.write_text(dumps(trace(kernel, target, units)), encoding="utf-8")
    except OSError as error:
        hint = "give --trace another path"
        raise UsageError(f"cannot write the trace {path}: {error.strerror}", hint=hint) from None
    talk().print(f"wrote {path}: open it in ui.perfetto.dev or chrome://tracing", soft_wrap=True)


def _code(kernel: Kernel, target: Target) -> str | None:
    """The kernel's C; None for a kernel of a machine that C does not reach, as a GPU's."""
    try:
        return functions_of(C).text(kernel, target)
    except AutoschedError:
        return None


def _assembly(kernel: Kernel, target: Target) -> str:
    """What LLVM makes of the kernel for its target, which need not be this machine."""
    compiler, builder = target.compiler, Builder()
    try:
        return builder.assembly(
            print_llvm(kernel), compiler.get("cpu"), compiler.get("features"), compiler.get("triple")
        )
    finally:
        builder.close()
