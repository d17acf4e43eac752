"""`autosched tune`: search, measure, keep the best."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from autosched.cli import options
from autosched.cli.output import answer, answer_json, seconds, speed, talk
from autosched.cli.progress import Progress
from autosched.errors import UsageError
from autosched.ir.work import operations
from autosched.search.loop import Result
from autosched.search.tune import EFFORTS, TuneRequest, Tuning
from autosched.search.tune import tune as run


def tune(
    program: options.ProgramArg,
    define: options.DefineOpt = None,
    target: options.TargetOpt = "native",
    device: options.DeviceOpt = "auto",
    trials: Annotated[
        int | None, typer.Option("--trials", "-n", help="Candidates to measure, in all runs of the study together.")
    ] = None,
    timeout: Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="Stop after 90s, 10m or 2h.")] = None,
    effort: Annotated[str, typer.Option("--effort", help="quick (32), standard (64) or full (256 trials).")] = "standard",
    strategy: Annotated[str, typer.Option("--strategy", "-s", help="auto, clock, evolutionary or random.")] = "auto",
    cost_model: Annotated[str, typer.Option("--cost-model", help="xgb or analytic.")] = "xgb",
    seed: Annotated[int, typer.Option("--seed", help="Makes proposals and data reproducible.")] = 0,
    threads: Annotated[int, typer.Option("--threads", help="Threads that a kernel may use.")] = 1,
    store: options.StoreOpt = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of continuing the study.")] = False,
    intrinsics: options.IntrinsicsOpt = None,
    intrinsic: options.OnlyOpt = None,
    numerics: options.NumericsOpt = "reassociated",
    cache: Annotated[str, typer.Option("--cache", help="warm, or cold: time with data in main memory.")] = "warm",
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="One line for every trial.")] = False,
) -> None:
    """Search, measure, keep the best kernel; continue a study that was started before.

    Exit status 1 when no candidate survived, 4 when one computed wrong numbers, 130 when interrupted.
    """
    if effort not in EFFORTS:
        raise UsageError(f"--effort {effort}: not one of {', '.join(EFFORTS)}")
    request = TuneRequest(
        options.program(program, define),
        options.target(target),
        device=device,
        trials=EFFORTS[effort] if trials is None else trials,
        timeout_s=options.timeout(timeout),
        strategy=strategy,
        cost_model=cost_model,
        seed=seed,
        threads=threads,
        store=options.open_store(store),
        catalogue=options.catalogue(intrinsics),
        only=tuple(intrinsic or ()),
        numerics=numerics,
        cache=cache,
        fresh=fresh,
        intrinsic_paths=options.intrinsic_paths(intrinsics),
    )
    with Progress(request, quiet=quiet, verbose=verbose) as progress:
        tuning, result = run(request, progress)
    if json:
        answer_json(report(tuning, result))
    elif result.best is not None:
        _say(tuning, result, quiet)
    if result.reason == "interrupted":
        talk().print(f"stopped after {result.done} trials; nothing is lost. The same command continues.")
    raise typer.Exit(result.exit_code)


def report(tuning: Tuning, result: Result) -> dict[str, Any]:
    """The result as the object that `--json` prints (schema autosched/tune/1)."""
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
            "gflops": operations(request.program) / best.time_s / 1e9,
            "schedule": best.trial.schedule,
            "intrinsic": ", ".join(best.candidate.plan.intrinsics) or None,
            "plan": best.candidate.plan.name,
            "kernel_sha": m.kernel_sha,
        }
        verified = {"ok": m.ok, "max_abs_error": m.max_abs_error, "tolerance": m.tolerance} | (
            {"by": m.extra["verified_by"]} if "verified_by" in m.extra else {}
        )
    baseline = tuning.baseline
    return {
        "schema": "autosched/tune/1",
        "study": study.name,
        "program": str(request.program),
        "target": request.target.name,
        "device": study.record.device,
        "seed": study.seed,
        "strategy": request.strategy,
        "space": {
            "plans": len(tuning.plans),
            "rows": study.space.rows,
            "rejected": study.space.rejected,
        },
        "trials": {"done": result.done, "failed": result.failed},
        "best": found,
        "baseline": {"name": baseline.name, "time_s": baseline.time_s} if baseline else None,
        "verified": verified,
        "stopped": result.reason,
        "seconds": result.seconds,
    }


def _say(tuning: Tuning, result: Result, quiet: bool) -> None:
    assert result.best is not None
    best, request = result.best, tuning.request
    m = best.trial.measurement
    work = operations(request.program)
    spread = f" ±{m.spread:.1%}" if m.spread else ""
    answer(f"best   trial {best.trial.number}   {seconds(best.time_s)}{spread}   {speed(work, best.time_s)}")
    if quiet:
        return
    if tuning.peak and request.device != "simulator":
        name, peak = tuning.peak
        answer(f"       {work / best.time_s / peak:.0%} of the peak of {name} measured on this machine")
    if tuning.baseline and tuning.baseline.time_s:
        ratio = tuning.baseline.time_s / best.time_s
        answer(f"       {ratio:.3g} times the speed of {tuning.baseline.name} ({seconds(tuning.baseline.time_s)})")
    if result.runner_up is not None and result.distinguishable is False:
        answer(f"       indistinguishable from trial {result.runner_up.number}")
    answer(f"plan   {best.candidate.plan.name}")
    answer(f"       {best.schedule}")
    by = m.extra.get("verified_by", "the interpreter")
    if m.max_abs_error is not None and m.tolerance:
        answer(f"checked against {by}: max error {m.max_abs_error:.2e} ≤ {m.tolerance:.2e}")
    else:
        answer(f"checked against {by}: exact")
    spent = {k: v for k, v in result.seconds.items() if k != "total" and v >= 0.05}
    answer("time   " + " · ".join(f"{k} {v:.1f} s" for k, v in spent.items()))
    if request.store is not None:
        study = tuning.study.name
        answer("")
        answer(f"see it   autosched show {study}")
        answer(f"use it   autosched export {study} -o {request.program.name}.c")
