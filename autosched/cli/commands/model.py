"""`autosched model`: how good cost models are on recorded spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from autosched.cli import inputs, options
from autosched.cli.commands.compare import PICTURES
from autosched.cli.output import answer, answer_json, table, talk
from autosched.cli.warm import warm_from
from autosched.costmodel.accuracy.importance import importance
from autosched.costmodel.learned.pretrained import Earlier
from autosched.costmodel.registry import cost_model, cost_models
from autosched.errors import UnknownNameError, UsageError
from autosched.report import plots
from autosched.report.exchange import write_figure
from autosched.search.evaluate.model_quality import judged, model_quality, summary, summary_of_rows
from autosched.search.evaluate.recorder import rescored
from autosched.search.registry import strategies
from autosched.search.tuning.warm import earlier_recording
from autosched.store.recorded_space import RecordedSpace
from autosched.store.replay_file import read_replay

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
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Recorded spaces (docs/replay.md).")],
    models: Annotated[
        str, typer.Option("--models", "-m", metavar="NAMES", help="Names with commas; analytic is the clock alone.")
    ] = "analytic,xgb",
    measured: Annotated[
        int, typer.Option("--measured", metavar="N", help="Rows that a model has seen; the clock has seen none.")
    ] = 64,
    chosen: Annotated[
        str, typer.Option("--chosen", metavar="STRATEGY", help="Who chose these rows: auto as tune does, or random, …")
    ] = "auto",
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Seeds 0 to N-1; figures are their medians.")] = 10,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Teach models the other FILEs first: each is a workload not seen before.")
    ] = False,
    today: Annotated[
        bool, typer.Option("--today", help="Clock and features of this version instead of the recorded ones.")
    ] = False,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
) -> None:
    """Judge how well cost models rank recorded rows. They learn from a few of the rows first.

    Medians over the seeds with 95 % bootstrap intervals (of the clock alone, which has no seeds: over rows). best@8 is
    the speed of the best of the eight rows predicted fastest, as a share of the optimum; recall@16 the share of the 16
    fastest rows that are among the 16 predicted fastest; in 80 % the share of rows not seen that lie in the central
    80 % of what was predicted; measured the best row seen, as a share of the optimum.
    """
    names = [name.strip() for name in models.split(",") if name.strip()]
    for kind, given, known in (("cost model", names, cost_models()), ("strategy", [chosen], strategies())):
        wrong = next((n for n in given if n not in known), None)
        if wrong is not None:
            raise UnknownNameError(kind, wrong, known)
    if not names:
        raise UsageError("no cost model to judge", hint=f"known: {', '.join(cost_models())}")
    if measured < (0 if held_out else 1) or seeds < 1:
        raise UsageError("--measured and --seeds must be at least 1", hint="with --held-out, --measured may be 0")
    if held_out and len(set(files)) < 2:
        raise UsageError("--held-out learns from the other files, and there are none", hint="name two or more")
    recordings = [_read(file, today, quiet) for file in files]
    for file, (recording, _) in zip(files, recordings, strict=True):
        if measured >= len(recording) and names != ["analytic"]:
            said = f"--measured {measured} leaves no row of {file} to predict"
            raise UsageError(said, hint=f"give fewer than its {len(recording)} rows")
    learnt = [earlier_recording(recording) for recording, _ in recordings] if held_out else []
    found = []
    for number, (file, (recording, lost)) in enumerate(zip(files, recordings, strict=True)):
        others = [part for other, part in zip(files, learnt, strict=bool(learnt)) if other != file]
        earlier = Earlier.join(others) if others else None
        for name in names:
            fits = name != "analytic"
            figures = (
                summary([model_quality(recording, name, measured, seed, chosen, earlier) for seed in range(seeds)])
                if fits
                else summary_of_rows(judged(recording, name, 0))
            )
            found.append({
                "file": file,
                "model": name,
                "rows": len(recording),
                "lost": lost,
                "measured": measured if fits else 0,
                "seeds": seeds if fits else 1,
                "intervals": "seeds" if fits else "rows",
                "taught": list(earlier.studies) if earlier and fits else [],
                **{f: asdict(i) if i.median == i.median else None for f, i in figures.items()},
            })  # fmt: skip
        if not json:
            _show(file, found[-len(names) :], first=number == 0)
    if json:
        answer_json({"schema": "autosched/model-eval/1", "chosen": chosen, "models": found})


def _read(file: str, today: bool, quiet: bool) -> tuple[RecordedSpace, int]:
    """A recording, and how many of its rows this version's spaces lack."""
    recording = read_replay(file)
    if not today:
        return recording, 0
    recording, lost = rescored(recording)
    if lost and not quiet:
        talk().print(f"{file}: {lost} rows are not in this version's spaces", markup=False)
    return recording, lost


def _show(file: str, found: Sequence[Mapping[str, Any]], first: bool) -> None:
    """One workload: a column for each model."""
    answer(f"{'' if first else chr(10)}{file}: {found[0]['rows']} rows")
    heads = [f["model"] + (f" after {f['measured']}" if f["model"] != "analytic" else "") for f in found]
    table(("", *heads), [(said, *(_said(f[name]) for f in found)) for name, said in SHOWN.items()])


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


def _said(interval: Mapping[str, float] | None) -> str:
    return "-" if interval is None else "{median:.3f} [{low:.3f}, {high:.3f}]".format_map(interval)
