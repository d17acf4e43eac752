"""The result of a tuning run: as the object that `--json` prints, and as a few lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from shlex import quote
from statistics import median
from typing import Any

from autosched.cli.answers.computed_operands import computed_lines
from autosched.cli.answers.families import families_json, family_lines, level_lines
from autosched.cli.answers.forms import faster, form_object, form_told, worth_telling
from autosched.cli.answers.fusion import (
    fusion_json,
    fusion_lines,
    left_out_lines,
    other_lines,
    serial_lines,
    work_lines,
)
from autosched.cli.answers.operand_types import type_lines
from autosched.cli.answers.peak import peak_lines
from autosched.cli.answers.under_masks import masked_lines, useful_json
from autosched.cli.answers.unused import without_lines
from autosched.cli.answers.wide_factors import wide_factor_lines
from autosched.cli.inputs import store_path
from autosched.cli.output import joules
from autosched.codegen.intermediates import kept_in_tiles, launches, starts_grids
from autosched.codegen.lower import lower
from autosched.codegen.proved_layouts import prove_schedule
from autosched.costmodel.analytic.gpu.gpu_clock import LAUNCH_SECONDS
from autosched.errors import AutoschedError
from autosched.ir.work import operations
from autosched.report.plan_text import plan_lines
from autosched.report.text import compared, counted, schedule_lines, seconds, speed, times
from autosched.report.units import statements_lines, statements_of, units_lines, units_of
from autosched.search.request import TuneRequest
from autosched.search.tuning.baseline import Baseline
from autosched.search.tuning.fallbacks import standing_by
from autosched.search.tuning.families import families
from autosched.search.tuning.forms import gains
from autosched.search.tuning.loop import Result
from autosched.search.tuning.noise import ENOUGH, WIDE
from autosched.search.tuning.tune import Tuning
from autosched.store.explain import MEMORY, path_of
from autosched.store.names import short_name
from autosched.store.records import Measurement
from autosched.store.sqlite import SqliteStore
from autosched.tensorize.explanation.padding import padding_lines
from autosched.tiling.planner.families import family_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.gpu.block_tile import is_gpu
from autosched.tiling.steps.gpu.operands.shared_proofs import in_short

DRIFT = 0.10
"""More than the winner's curse explains: the best of a search is 2 to 4 % slower when it is measured again."""


def as_json(tuning: Tuning, result: Result) -> dict[str, Any]:
    """Schema autosched/tune/1 (docs/cli.md). `best` is null where the run was interrupted before anything succeeded."""
    request, study = tuning.request, tuning.study
    best = result.best
    found: dict[str, Any] | None = None
    verified: dict[str, Any] = {"ok": False, "max_abs_error": None, "tolerance": None}
    if best is not None:
        m = best.trial.measurement
        found = {
            "trial": best.trial.number,
            "time_s": best.time_s,
            "spread": m.spread,
            "operations": operations(request.program),
            "gflops": operations(request.program) / best.time_s / 1e9,
            "schedule": best.trial.schedule,
            "intrinsic": ", ".join(dict.fromkeys(best.candidate.plan.intrinsics)) or None,
            "kernel_sha": m.kernel_sha,
        }
        plan = best.candidate.plan
        found |= {"plan": plan.name, "family": family_of(plan), "rewrites": [r.name for r in plan.rewrites]}
        found |= fusion_json(lower(plan, plan.space.schedule(best.trial.row)))
        asked = [{"kind": c.kind, "text": c.text, "tight": c.tight} for m in plan.mappings for c in m.conditions]
        spare = standing_by(plan, best.trial.row)
        found |= {"otherwise": {"plan": spare[0], "predicted_ratio": spare[1]}} if spare else {}
        found |= ({"conditions": asked} if asked else {}) | ({"relies_on": list(plan.relies)} if plan.relies else {})
        if request.objective != "latency":
            found |= {"objective": request.objective, "cost": m.cost, "energy_j": m.extra.get("energy_j")}
        useful = useful_json(plan, best.trial.row)
        found |= {name: shares for name, shares in useful.items() if any(share < 1 for share in shares.values())}
        found |= {"units": units} if (units := units_of(m.extra)) else {}
        found |= {"statements": of_each} if (of_each := statements_of(m.extra)) else {}
        proofs = in_short(prove_schedule(plan, best.trial.row))
        found |= {"proofs": proofs} if proofs else {}
        verified = {"ok": m.ok and m.verified, "max_abs_error": m.max_abs_error, "tolerance": m.tolerance} | (
            {"by": m.extra["verified_by"]} if "verified_by" in m.extra else {}
        )
        verified |= {"whole": m.extra["whole"]} if "whole" in m.extra else {}
        verified |= {"not_checked": m.extra["not_checked"]} if m.extra.get("not_checked") else {}
        if (far := _far(tuning, result)) is not None:
            found |= {"lower_bound_s": far[0], "gap": far[1]}
    baseline = tuning.baseline
    return {
        "schema": "autosched/tune/1",
        "study": study.name,
        "program": str(request.program),
        "target": request.target.name,
        "device": study.record.device,
        "seed": study.seed,
        "strategy": request.strategy,
        "space": {"plans": len(tuning.plans), "rows": study.space.legal, "rejected": study.space.rejected},
        "trials": {"done": result.done, "failed": result.failed} | _ended(result),
        "best": found,
        "baseline": asdict(baseline) if baseline else None,
        "verified": verified,
        **families_json(families(tuning)),
        **({"forms": list(map(form_object, tuning.forms, gains(tuning)))} if tuning.forms else {}),
        "seconds": _seconds(result),
    }


def failure_json(error: AutoschedError, request: TuneRequest | None, tuning: Tuning | None) -> dict[str, Any]:
    """The object of a run without an answer: `best` is null, and `error` says why. `request` and `tuning` are None
    where the run ended before it had them."""
    study = tuning.study if tuning else None
    return {
        "schema": "autosched/tune/1",
        "study": study.name if study else None,
        "program": str(request.program) if request else None,
        "target": request.target.name if request else None,
        "device": study.record.device if study else None,
        "trials": {"done": len(study.searched) if study else 0, "failed": dict(study.failed) if study else {}},
        "best": None,
        "error": {"message": error.message, "hint": error.hint},
    }


def _ended(result: Result) -> dict[str, Any]:
    """What ended the search before its trials, a goal or its time, and the last predicted gain."""
    ended = {"ended": result.reason} if result.reason in ("reached", "gain", "timeout") else {}
    return ended | ({"gain": result.gain} if result.gain is not None else {})


def _seconds(result: Result) -> dict[str, float]:
    """The phases that docs/cli.md lists: comparing with the oracle counts as measuring."""
    spent = result.seconds
    found = {k: spent[k] for k in ("total", "match", "search", "build", "measure", "model")}
    return found | {"measure": spent["measure"] + spent.get("check", 0.0)}


def as_text(
    tuning: Tuning,
    result: Result,
    *,
    brief: bool,
    form_commands: Sequence[str] = (),
    given: Collection[str] = (),
    match_command: Callable[[str], str] = lambda _: "autosched match",
    began: float | None = None,
    now: Callable[[], float] = time.monotonic,
) -> str:
    """The best candidate, its comparisons, its check, and the commands to type next; with `brief` the first line only.
    `form_commands` write a better form of the program, where there is one, and tune it; `match_command` says why the
    instructions that were `given` do not fit; `began` is when the command was started, by the clock `now`."""
    assert result.best is not None
    best, request = result.best, tuning.request
    m = best.trial.measurement
    work = operations(request.program)
    spread = f" ±{m.spread:.1%}" if m.spread else ""
    energy = joules(m, request.objective)
    lines = [f"best   trial {best.trial.number}   {seconds(best.time_s)}{spread}   {speed(work, best.time_s)}{energy}"]
    if brief:
        return lines[0]
    if tuning.study.record.device == "simulator":
        lines.append(f"       as simulated: nothing ran on a machine of {request.target.name}")
    backend = request.target.backend
    lines += [f"       {said}" for said in work_lines(request.program)]
    lines += [f"       {said}" for said in peak_lines(tuning, best)]
    if tuning.baseline and tuning.baseline.time_s:
        lines.append(f"       {beside(tuning.baseline, best.time_s, tuning.study.record.device)}")
    lines += _left(tuning, result)
    if result.runner_up is not None and result.distinguishable is False:
        lines.append(f"       indistinguishable from trial {result.runner_up.number}")
    used = best.candidate.plan.stages_on_intrinsics
    gained = zip(tuning.forms, gains(tuning), strict=True)
    plan = best.candidate.plan
    forms = [(form, gain) for form, gain in gained if worth_telling(form, gain, used, request.program, plan.program)]
    if forms and form_commands:
        lines += [f"faster {faster(forms)}", f"       {' && '.join(form_commands)}"]
    lines += [line.replace("units", "units ", 1) for line in units_lines(m.extra)]
    lines += _labelled("does", statements_lines(m.extra))
    lines += [f"noise  {said}" for said in _noise(tuning, result, m)]
    lines += _labelled("plan", plan_lines(plan.name))
    lines += [f"       {line}" for line in schedule_lines(best.schedule.named)]
    lines += [f"       {line}" for line in (*other_lines(plan), *serial_lines(plan), *left_out_lines(plan))]
    lines += [f"       {line}" for line in computed_lines(plan)]
    if plan.rewrites or kept_in_tiles(plan):
        kernel = lower(plan, plan.space.schedule(best.trial.row))
        lines += [f"       {line}" for line in fusion_lines(plan, kernel, request.program)]
    others = [mapping for plan in tuning.plans for mapping in plan.mappings]
    isa, features = request.target.isa, request.target.features
    known = partial(request.catalogue.of_isa, isa, features=features, kind="compute")
    padded = (line for mapping in plan.mappings for line in padding_lines(mapping, others, known))
    lines += [f"       {line}" for line in dict.fromkeys(padded)]
    lines += [f"       {line}" for line in masked_lines(plan, best.trial.row)]
    considered = families(tuning)
    lines += _labelled("note", without_lines(tuning, plan, given, match_command))
    lines += _labelled("note", level_lines(considered))
    lines += _labelled("note", type_lines(tuning))
    lines += _labelled("note", wide_factor_lines(plan, known()))
    lines += _labelled("plans", family_lines(considered, result.done))
    lines.append(f"check  {checked(m)}")
    asked = [c.text for mapping in best.candidate.plan.mappings for c in mapping.conditions]
    if asked:
        other = _other_way(best.candidate.plan, best.trial.row)
        lines.append(f"where  {' and '.join(asked)}: every call checks this, and otherwise runs {other}")
    if best.candidate.plan.relies:
        lines.append(f"relies on {'; '.join(best.candidate.plan.relies)}")
    for form, gain in forms:
        first, *text = form_told(form, gain)
        lines += [f"form   {first}", *(f"   {line}" for line in text)]
    if result.failed:
        lines.append("failed " + " · ".join(f"{kind} {n}" for kind, n in result.failed.items()))
    lines += _labelled("time", time_lines(result.seconds, tuning.study.watch.started_s, began, now()))
    if isinstance(request.store, SqliteStore) and request.store.path != MEMORY:
        study, where = short_name(tuning.study.record), _kept(request.store)
        lines += ["", f"see it   autosched show {study}{where}"]
        # The schedule, where there is no text of the kernel.
        suffix = backend.export_suffix(tuning.study.record.device) or ".json"
        lines += [f"use it   autosched export {study} -o {request.program.name}{suffix}{where}"]
    return "\n".join(lines)


def time_lines(spent: Mapping[str, float], started: float, began: float | None, now: float) -> list[str]:
    """Where the wall time of a command went that `began` then and ends `now`: what came before the run `started`
    (loading libraries, programs and instructions), its phases, and what was looked at behind it for the answer. One
    line, or none where all of it is less than a tenth of a second."""
    parts = {k: v for k, v in spent.items() if k != "total"}
    if began is not None:
        parts = {"start": started - began, **parts, "answer": now - started - spent["total"]}
    told = " · ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items() if seconds >= 0.05)
    whole = f" · in all {now - began:.1f} s" if began is not None else ""
    return [told + whole] if told else []


def beside(baseline: Baseline, best_s: float, device: str) -> str:
    """How the best compares with the baseline, and how that was measured; a simulated machine is always the same."""
    alone = "" if device == "simulator" else ", measured alone"
    how = alone if baseline.best_s is None else f", measured in turn with the best, at {seconds(baseline.best_s)}"
    ratio = (baseline.time_s or 0.0) / (baseline.best_s or best_s)
    return f"{compared(ratio)} {baseline.name} ({seconds(baseline.time_s)}{how})"


def _labelled(label: str, lines: Sequence[str]) -> list[str]:
    return [f"{'' if n else label:<7}{line}" for n, line in enumerate(lines)]


def _noise(tuning: Tuning, result: Result, best: Measurement) -> list[str]:
    """Sentences about what disturbed the measurements."""
    said, searched, noise = [], tuning.study.searched, result.noise
    levels = [t.measurement.extra["level"] for t in searched if "level" in t.measurement.extra]
    if levels:
        met = f"{len(levels)} of {len(searched)} trials met a machine {compared(1 / median(levels))} at first"
        said.append(f"{met}; their times are corrected for it")
    if noise is not None and noise.quiet < ENOUGH * noise.rounds:
        count = f"{noise.disturbed} of {noise.rounds} rounds of the final"
        said.append(f"{count} were disturbed, {noise.slowdown:.0%} slower")
    if best.spread is not None and best.spread > WIDE and tuning.study.record.device != "simulator":
        half = f"the middle half of the best's times spans {best.spread:.0%} of their median"
        said.append(f"{half} (quiet: below {WIDE:.0%})")
    if noise is not None and noise.drift > DRIFT:
        said.append(f"the machine was {noise.drift:.0%} slower in the final round than in the search")
    if noise is not None and (pace := 1 / (1 + noise.drift) - 1) > DRIFT:
        faster = f"the machine was {pace:.0%} faster in the final round than in the search"
        said.append(f"{faster}: times of trials that did not take part are that much too long")
    return said


def _other_way(plan: Plan, row: int) -> str:
    found = standing_by(plan, row)
    return "the fallback" if found is None else f"{found[0]}, {compared(1 / found[1])} this by the clock"


def _kept(store: SqliteStore) -> str:
    """The flag with which commands find a store that is not the default one."""
    return "" if store.path == path_of(store_path(None)) else f" --store {quote(store.path)}"


def _far(tuning: Tuning, result: Result) -> tuple[float, float] | None:
    """The space's lower bound, and the share by which the best is above it; None without a bound. Noise alone takes a
    simulated time below it, which counts as 0; a time that the model itself puts below (where the clock stands in for
    missing figures) gives None."""
    bound = tuning.lower_bound_s
    if not bound or result.best is None:
        return None
    gap = result.best.time_s / bound - 1
    if gap < 0 and tuning.study.record.device == "simulator":
        model = result.best.trial.measurement.extra.get("model_s", {}).get("total", 0.0)
        return (bound, 0.0) if model >= bound else None
    return bound, gap


def _left(tuning: Tuning, result: Result) -> list[str]:
    """How far the best is from the lower bound, and why the search ended early."""
    lines = []
    if (left := _far(tuning, result)) is not None:
        bound, gap = left
        far = "faster than" if gap < 0 else f"{gap:.0%} above" if gap < 1 else f"{times(gap + 1)} times"
        off = "" if gap >= 0 else f", which is {-gap:.0%} off"
        lines.append(f"       {far} the space's lower bound by the target's figures ({seconds(bound)}){off}")
        lines += [f"       {said}" for said in _launched(tuning, result, bound)]
    if result.reason == "reached":
        lines.append(f"ended  the --until goal was reached after {result.done} trials")
    if result.reason == "gain" and result.gain is not None:
        lines.append(f"ended  one more trial is expected to save {result.gain:.1%}, after {result.done} trials")
    if result.reason == "timeout" and result.best is not None and tuning.request.timeout_s is not None:
        best, finals = result.best.trial.measurement, bool(tuning.study.finals)
        lines.append(f"ended  {out_of_time(tuning.request.timeout_s, result.done, best, finals)}")
    return lines


def _launched(tuning: Tuning, result: Result, bound: float) -> list[str]:
    """What launches take where a lower bound is less than the clock has for them: then it does not count them all."""
    if not is_gpu(tuning.request.target):
        return []
    assert result.best is not None
    plan, trial = result.best.candidate.plan, result.best.trial
    kernel = lower(plan, plan.space.schedule(trial.row))
    return uncounted_launches(launches(kernel), bound, trial.measurement) if starts_grids(kernel) else []


def uncounted_launches(count: int, bound: float, measured: Measurement) -> list[str]:
    """A line on `count` launches, unless a lower bound has room for all of them."""
    if bound >= count * LAUNCH_SECONDS:
        return []
    taken = measured.extra.get("model_s", {}).get("launch", count * LAUNCH_SECONDS)
    of = "all of " if bound >= LAUNCH_SECONDS else ""
    what = "the launch, which takes" if count == 1 else f"{of}the {count} launches, which take"
    return [f"the bound does not count {what} {seconds(taken)}"]


def out_of_time(timeout_s: float, done: int, best: Measurement, finals: bool) -> str:
    """That the time was over after so many trials, and what the best has not been through without a final round."""
    said = f"--timeout {timeout_s:g} s was over after {counted(done, 'trial')}"
    if finals:
        return said
    unchecked = "" if best.verified else ", and not verified"
    return f"{said}, before the final round: the best was measured in the search alone{unchecked}"


FAR = 100
"""A tolerance so many times the error gets its reason: it is what rounding could do at worst, and errors of long sums
are far below it."""


def checked(m: Measurement) -> str:
    """The reference with which the device compared the outputs and the largest error, or why it compared none."""
    if not m.verified:
        return str(m.extra.get("verified_by", "not checked"))
    by = str(m.extra.get("verified_by", "the interpreter"))
    by += " in boxes, and the loops as written" if m.extra.get("whole") else ""
    left = m.extra.get("not_checked", ())
    more = f"; not checked: {left[0]}{f'; and {len(left) - 1} more' if len(left) > 1 else ''}" if left else ""
    if m.max_abs_error is not None and m.tolerance:
        why = ", the bound of the worst rounding" if m.max_abs_error * FAR < m.tolerance else ""
        return f"against {by}: largest error {m.max_abs_error:.2e}, allowed {m.tolerance:.2e}{why}{more}"
    return f"against {by}: exact{more}"
