"""`autosched model`: how good cost models are on recorded spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from autosched.cli import inputs, options
from autosched.cli.answers.replaced import tell_replaced
from autosched.cli.commands.compare import PICTURES
from autosched.cli.output import answer, answer_json, table, talk
from autosched.cli.warm import warm_from
from autosched.costmodel.accuracy.importance import importance
from autosched.costmodel.learned.pretrained import Earlier
from autosched.costmodel.registry import cost_model, cost_models
from autosched.errors import UnknownNameError, UsageError
from autosched.report import plots
from autosched.report.exchange import write_figure
from autosched.report.models import ModelsCompared, models_compared
from autosched.search.evaluate import model_quality
from autosched.search.evaluate.model_quality import LEAST_UNSEEN, Evaluated, MeanInterval
from autosched.search.evaluate.recorder import rescored
from autosched.search.evaluate.simulate import has_clock_terms
from autosched.search.evaluate.training_rows import split_name
from autosched.search.registry import strategies
from autosched.search.tuning.warm import earlier_recording
from autosched.store.exchanged import read_all
from autosched.store.recorded_space import RecordedSpace

app = typer.Typer(help="Judge cost models on recorded spaces.", no_args_is_help=True)
SHOWN = {
    "spearman": "spearman",
    "kendall": "kendall",
    "pairwise": "pairwise",
    "best_1": "best@1",
    "best_8": "best@8",
    "recall": "recall@16",
    "coverage": "in 80 %",
    "found": "measured",
}


@app.callback()
def model() -> None:
    """Cost models: how good they are, and what they rely on."""


@app.command("eval")
def evaluate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Recorded spaces, files of other tuners (docs/replay.md).")
    ],
    models: Annotated[
        str, typer.Option("--models", "-m", metavar="NAMES", help="Names with commas; analytic is the clock alone.")
    ] = "analytic,xgb",
    measured: Annotated[
        int, typer.Option("--measured", metavar="N", help="Rows that all models learn from; the clock learns nothing.")
    ] = 64,
    chosen: Annotated[
        str,
        typer.Option(
            "--chosen",
            metavar="NAMES",
            help="Strategies that choose these rows, with commas, a table each: random, auto as tune does, auto:gp, …",
        ),
    ] = "random,auto",
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Draws of these rows; figures are means.")] = 10,
    first_seed: options.FirstSeedOpt = 0,
    leak: Annotated[
        bool, typer.Option("--leak", help="Also figures over all rows, those that a model has learnt from included.")
    ] = False,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Teach models the other FILEs first: each is a workload not seen before.")
    ] = False,
    today: Annotated[
        bool, typer.Option("--today", help="Clock and features of this version instead of the recorded ones.")
    ] = False,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
) -> None:
    """Judge how well cost models rank rows that they have not seen, after all of them learnt from the same few.

    best@8 is the speed of the best of the eight rows predicted fastest, as a share of the fastest row not seen;
    recall@16 the share of the 16 fastest that are among the 16 predicted fastest; in 80 % the share of rows that lie in
    the central 80 % of what was predicted; measured the best row learnt from, as a share of the optimum. The last
    column is chance, calculated. Means over the seeds with 95 % intervals: of ranks and in 80 % over rows and seeds, of
    the others over seeds, none where seeds make no difference. With several files, also over spaces and seeds together.
    best@8 less the first model's is tested. With --measured 0 nothing is learnt from these rows.
    """
    names, choosers = inputs.names(models), inputs.names(chosen)
    for name in names:
        if name not in cost_models():
            raise UnknownNameError("cost model", name, cost_models())
    for name in choosers:
        split_name(name)
    if not names:
        raise UsageError("no cost model to judge", hint=f"known: {', '.join(cost_models())}")
    if not choosers:
        raise UsageError("--chosen names no strategy", hint=f"known: {', '.join(strategies())}")
    if measured < 0 or seeds < 1:
        raise UsageError("--seeds must be at least 1, and --measured at least 0")
    if measured == 0 and not held_out and any(name != "analytic" for name in names):
        hint = "--measured 64; or --held-out, which teaches them other files"
        raise UsageError("--measured 0 leaves models nothing to learn from", hint=hint)
    if len(set(names)) < len(names):
        raise UsageError(f"--models names {next(n for n in names if names.count(n) > 1)} twice")
    if len(set(files)) < len(files):
        raise UsageError(f"{next(f for f in files if files.count(f) > 1)} is named twice")
    recordings = [opened for file in files for opened in _read(file, today, quiet)]
    if held_out and len(recordings) < 2:
        raise UsageError("--held-out learns from the other files, and there are none", hint="name two or more")
    for file, recording, _ in recordings:
        if len(recording) - measured < LEAST_UNSEEN:
            left = f"leaves {max(0, len(recording) - measured) or 'no'} rows of {file} to predict"
            hint = f"it takes {LEAST_UNSEEN}, and it has {len(recording)} rows in all"
            raise UsageError(f"--measured {measured} {left}", hint=hint)
        if not quiet and not has_clock_terms(recording):
            talk().print(f"{file}: recorded without a clock, so analytic is chance", markup=False)
    learnt = [earlier_recording(recording) for _, recording, _ in recordings] if held_out else []
    numbers = tuple(range(first_seed, first_seed + seeds))
    found: list[dict[str, Any]] = []
    each: dict[str, list[list[Evaluated]]] = {}
    for number, (file, recording, lost) in enumerate(recordings):
        others = [part for other, part in enumerate(learnt) if other != number]
        earlier = Earlier.join(others) if others else None
        for chooser in choosers if measured else choosers[:1]:
            judged = model_quality.evaluate(recording, names, measured, chooser, numbers, earlier)
            head = {"file": file, "rows": len(recording), "lost": lost}
            taught = list(earlier.studies) if earlier else []
            each.setdefault(chooser, []).append(judged)
            if not json:
                _show(file, len(recording), judged, leak, first=not found)
            more = [head | {"taught": [] if one.model == "analytic" else taught} for one in judged]
            found += [_plain(one, leak) | said for one, said in zip(judged, more, strict=True)]
    together = [models_compared(spaces) for spaces in each.values()] if len(recordings) > 1 else []
    if json:
        compared = [one.plain() for one in together]
        schema = {"schema": "autosched/model-eval/2", "seeds": list(numbers)}
        answer_json({**schema, "models": found, "together": compared})
        return
    for one in together:
        _show_together(one, measured)


def _plain(one: Evaluated, leak: bool) -> dict[str, Any]:
    """As JSON; null where a figure or an interval is not defined."""
    figures = {
        name: None if isnan(i.mean) else {k: None if isnan(v) else v for k, v in asdict(i).items()}
        for name, i in one.figures.items()
    }
    more = {"chance": one.chance, **({"leak": one.leak} if leak else {})}
    chosen = one.chosen if one.measured else None
    return {"model": one.model, "chosen": chosen, "measured": one.measured, **figures} | {
        said: {k: None if isnan(v) else v for k, v in asdict(quality).items()} for said, quality in more.items()
    }


def _read(file: str, today: bool, quiet: bool) -> list[tuple[str, RecordedSpace, int]]:
    """The recordings of a file with what they are called, and how many of their rows this version's spaces lack."""
    recordings = read_all(file)
    found: list[tuple[str, RecordedSpace, int]] = []
    for recording in recordings:
        called, lost = file if len(recordings) == 1 else f"{file}, {recording.name}", 0
        if today and not recording.program:
            hint = "leave out --today: its rows have no clock, of no version"
            raise UsageError(f"{called} is not a recording of ours, and says nothing of its program", hint=hint)
        if today:
            recording, lost = rescored(recording)
        tell_replaced(called, recording, quiet, first=not found)
        if lost and not quiet:
            talk().print(f"{called}: {lost} rows are not in this version's spaces", markup=False)
        found.append((called, recording, lost))
    return found


def _show(file: str, rows: int, found: Sequence[Evaluated], leak: bool, first: bool) -> None:
    """One workload and one choice of rows: a column for each model, and chance."""
    measured, chosen = found[0].measured, found[0].chosen
    learnt = f"; {measured} that {chosen} chose to learn from, figures of the other {rows - measured}"
    learnt = learnt if measured else ""
    answer(f"{'' if first else chr(10)}{file}: {rows} rows{learnt}")
    heads, columns = [], []
    for one in found:
        heads.append(one.model)
        columns.append({name: _said(i) for name, i in one.figures.items()})
        if leak:
            heads.append(f"{one.model}, all rows")
            columns.append({name: _number(value) for name, value in asdict(one.leak).items()})
    heads.append("chance")
    columns.append({name: _number(value) for name, value in asdict(found[0].chance).items()})
    table(("", *heads), [(said, *(column[name] for column in columns)) for name, said in SHOWN.items()])
    for line in models_compared([found]).told():
        answer(line)


@app.command("importance")
def show_importance(
    where: Annotated[str, typer.Argument(metavar="WHERE", help="A recording, a study, or a store of this target.")],
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME", help="The cost model.")] = "xgb",
    most: Annotated[int, typer.Option("--most", "-n", metavar="N", help="Features shown.")] = 15,
    target: options.TargetOpt = "native",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the split and the shuffles.")] = 0,
    store: options.StoreOpt = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also draw it: .png, .svg or .pdf.")
    ] = None,
    json: options.JsonOpt = False,
) -> None:
    """Rank the features that a cost model relies on. The measure is how much its error grows when one is shuffled.

    The model is fitted to half of the rows and predicts the others.
    """
    if model not in cost_models():
        raise UnknownNameError("cost model", model, cost_models())
    if most < 1:
        raise UsageError("--most must be at least 1")
    if output is not None and output.suffix not in PICTURES:
        raise UsageError(f"-o {output}: unknown format", hint="use a name that ends in .png, .svg or .pdf")
    learnt = Earlier.join(list(warm_from([where], store, inputs.target(target))))
    found = importance(cost_model(model, seed), learnt.samples, seed)
    if output is not None:
        write_figure(output, lambda axes: plots.importance(found, most, axes))
    if json:
        answer_json({"schema": "autosched/importance/1", "model": model, "studies": learnt.studies, **asdict(found)})
        return
    answer(f"error  {found.error:.3f} (ln units, root mean square of {found.rows} rows not seen)")
    rows = [(i.feature, i.unit, f"{i.rise:.4f}", f"{i.deviation:.4f}") for i in found.features[:most]]
    table(("feature", "unit", "rise", "deviation"), rows)


def _show_together(found: ModelsCompared, measured: int) -> None:
    """All workloads, with intervals over them: a column for each model, and what models differ by."""
    learnt = f" after {measured} rows that {found.chosen} chose" if measured else ""
    answer(f"\n{found.spaces} spaces, {found.seeds} seeds{learnt}")
    columns = [{n: _said(MeanInterval(i.value, i.low, i.high)) for n, i in of.items()} for of in found.figures.values()]
    table(("", *found.figures), [(said, *(c.get(name, "-") for c in columns)) for name, said in SHOWN.items()])
    for line in found.told():
        answer(line)


def _said(interval: MeanInterval) -> str:
    if isnan(interval.low):
        return _number(interval.mean)
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _number(value: float) -> str:
    return "-" if isnan(value) else f"{value:.3f}"
