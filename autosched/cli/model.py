"""`autosched model`: how good cost models are on recorded spaces."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autosched.cli import inputs, options
from autosched.cli.compare import PICTURES
from autosched.cli.output import answer, answer_json, table, talk
from autosched.cli.warm import warm_from
from autosched.costmodel.importance import importance
from autosched.costmodel.pretrained import Earlier
from autosched.costmodel.registry import cost_model, cost_models
from autosched.errors import UnknownNameError, UsageError
from autosched.report import plots
from autosched.report.exchange import write_figure
from autosched.search.model_quality import FIGURES, Interval, model_quality, summary
from autosched.search.recorder import reclocked
from autosched.search.registry import strategies
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
    today: Annotated[
        bool, typer.Option("--today", help="Clock and features of this version instead of the recorded ones.")
    ] = False,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
) -> None:
    """What a model says of all recorded rows, after it saw a few: the order, and what its first picks lose.

    Medians over the seeds; the JSON has their 95 % intervals. best@8 is the speed of the best of the eight rows
    predicted fastest, as a share of the optimum.
    """
    names = [name.strip() for name in models.split(",") if name.strip()]
    for kind, given, known in (("cost model", names, cost_models()), ("strategy", [chosen], strategies())):
        wrong = next((n for n in given if n not in known), None)
        if wrong is not None:
            raise UnknownNameError(kind, wrong, known)
    if not names:
        raise UsageError("no cost model to judge", hint=f"known: {', '.join(cost_models())}")
    if measured < 1 or seeds < 1:
        raise UsageError("--measured and --seeds are 1 at least")
    rows, found = [], []
    for file in files:
        recording, lost = read_replay(file), 0
        if today:
            recording, lost = reclocked(recording)
            if lost and not quiet:
                talk().print(f"{file}: {lost} rows have no place in this version's spaces", markup=False)
        for name in names:
            fits = name != "analytic"
            judged = [
                model_quality(recording, name, measured if fits else 0, seed, chosen)
                for seed in range(seeds if fits else 1)
            ]
            figures = summary(judged)
            rows.append((file, name, len(recording), *(_said(figures[f]) for f in FIGURES)))
            found.append({
                "file": file,
                "model": name,
                "rows": len(recording),
                "lost": lost,
                "measured": measured if fits else 0,
                "seeds": len(judged),
                **{f: asdict(i) if i.median == i.median else None for f, i in figures.items()},
            })  # fmt: skip
    if json:
        answer_json({"schema": "autosched/model-eval/1", "chosen": chosen, "models": found})
    else:
        table(("space", "model", "rows", *(SHOWN[f] for f in FIGURES)), rows)


@app.command("importance")
def show_importance(
    where: Annotated[str, typer.Argument(metavar="WHERE", help="A recording, a study, or a store of this target.")],
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME", help="The cost model.")] = "xgb",
    most: Annotated[int, typer.Option("--most", "-n", metavar="N", help="Features shown.")] = 15,
    target: options.TargetOpt = "native",
    seed: options.SeedOpt = 0,
    store: options.StoreOpt = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also draw it: .png, .svg or .pdf.")
    ] = None,
    json: options.JsonOpt = False,
) -> None:
    """Which features a model relies on: how much its error grows where one of them is shuffled among the rows.

    It is fitted to half of the rows and asked about the others.
    """
    if model not in cost_models():
        raise UnknownNameError("cost model", model, cost_models())
    if most < 1:
        raise UsageError("--most is 1 at least")
    if output is not None and output.suffix not in PICTURES:
        raise UsageError(f"-o {output}: no format for it", hint="it ends in .png, .svg or .pdf")
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


def _said(interval: Interval) -> str:
    return f"{interval.median:.3f}" if interval.median == interval.median else "-"
