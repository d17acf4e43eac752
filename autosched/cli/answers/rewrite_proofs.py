"""What is said of the rewrites that a plan needs: how each was proved, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.cli.answers.fusion import copy_words, done_by, error_words, memory_words
from autosched.codegen.lower import lower
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.report.text import compared, counted, seconds
from autosched.store.records import Trial
from autosched.tiling.planner.families import family_of_names
from autosched.tiling.plans.plan import Plan


def proof_of(found: RewriteVerdict, beyond: str = "") -> list[str]:
    """Of a rewrite that is proved: the level (`beyond` is said behind it), the error bound, the factors, the arguments
    and the lemmas, each with who decided it."""
    error = f"; error at most {found.error}" if found.error else ""
    error = error or ("; equal over the reals, with no bound on the error" if found.numerics == "real" else "")
    lines = [f"numerics: {found.numerics}{beyond}{error}"]
    lines += [f"  {error_words(found.error)}"] if found.error else []
    lines += [f"{stage}: multiplied by {factor} where the reference moves" for stage, factor in found.rescale.items()]
    lines += [f"{stage}: {factor} taken out of the reduction" for stage, factor in found.deferred.items()]
    if found.bounded is not None:
        lines.append("every factor is at most 1" if found.bounded else "a factor may exceed 1")
    lines += [f"checked at run time: {condition}" for condition in found.conditions]
    lines += found.because
    for o in found.obligations:
        given = f"  given {', '.join(o.given)}" if o.given else ""
        lines.append(f"{o.name}: {o.claim}{given}  [{o.by}, {o.seconds:.3f} s]")
    return lines


def rewrite_lines(
    plan: Plan, trial: Trial, program: Program, trials: Sequence[Trial], plans: Sequence[Plan]
) -> list[str]:
    """A paragraph for each rewrite of a trial's plan, and lines for tensors of which there are several and for what a
    call works in; `program` is the one that was given, `trials` and `plans` are those of the study."""
    if not plan.rewrites:
        return []
    lines = []
    for rewrite in plan.rewrites:
        lines.append(f"{rewrite.name}: {done_by(rewrite)}")
        lines += [f"  {line}" for line in [*proof_of(rewrite), f"saves: {_saved(rewrite, trial, trials, plans)}"]]
    lines += [f"  names: {said}" for said in copy_words(plan, program)]
    kernel = lower(plan, plan.space.schedule(trial.row))
    return [*lines, *(f"  memory: {said}" for said in memory_words(kernel, program))]


def _saved(rewrite: RewriteVerdict, trial: Trial, trials: Sequence[Trial], plans: Sequence[Plan]) -> str:
    """The trial's time beside that of the fastest without such a rewrite, both of the search: the final round's are of
    another moment."""
    kind = family_of_names([rewrite.name])
    without = {p.name for p in plans if kind not in {family_of_names([r.name]) for r in p.rewrites}}
    fine = [t for t in trials if t.round == "search" and t.measurement.ok and t.measurement.cost]
    others = [t for t in fine if t.plan in without]
    own = next((t.measurement.cost for t in fine if t.key == trial.key), None)
    if not any(t.plan in without for t in trials):
        return f"not measured: no plan without '{kind}' was tried"
    if not others or own is None:
        return f"not measured: no trial came out right whose plan is without '{kind}'"
    best = min(others, key=lambda t: t.measurement.cost or 0.0)
    known = f"the best of {counted(len(others), 'trial')} without it (trial {best.number}"
    return f"{compared((best.measurement.cost or own) / own)} {known}, {seconds(best.measurement.time_s)}), as measured"
