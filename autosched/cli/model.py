"""`autosched model`: how good cost models are on recorded spaces."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from autosched.cli import options
from autosched.cli.output import answer_json, table, talk
from autosched.costmodel.registry import cost_models
from autosched.errors import UnknownNameError, UsageError
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
    """A group even with one command."""


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


def _said(interval: Interval) -> str:
    return f"{interval.median:.3f}" if interval.median == interval.median else "-"
