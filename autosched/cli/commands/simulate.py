"""`autosched simulate`: strategies on a space that was measured before, with as many repeats as one likes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from autosched import api
from autosched.cli import inputs, options
from autosched.cli.answers.replaced import tell_replaced
from autosched.cli.commands.compare import PICTURES, Line, can_write, write, wrote
from autosched.cli.output import answer, answer_json, talk
from autosched.errors import UsageError
from autosched.report.exchange import as_json, write_figure
from autosched.report.over_spaces import over_spaces, spaces_json
from autosched.search.evaluate.compare import contestants
from autosched.search.evaluate.landscape import Landscape
from autosched.search.evaluate.simulate import budget_of, check
from autosched.store.exchanged import read_all
from autosched.store.recorded_space import RecordedSpace


def simulate(
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Recordings of autosched, Kernel Tuner caches, T4 and KTT results, BAT tables, logs of TVM, gzipped or"
            " not. Several are put together.",
        ),
    ],
    strategies: Annotated[
        str,
        typer.Option("--strategies", "-s", metavar="NAMES", help="Names with commas, or all. As in `compare`."),
    ] = "all",
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials", "-n", metavar="N", help="Trials of every run; else until random search is 95 % of the way."
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="Runs of each strategy, each with a seed of its own.")
    ] = 100,
    first_seed: options.FirstSeedOpt = 0,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="Others are compared with it; else with random, or the first."),
    ] = None,
    budgets: options.BudgetsOpt = None,
    thinking: Annotated[
        bool,
        typer.Option("--thinking", help="Time counts what strategies take here, too, and is another one every time."),
    ] = False,
    cost_model: Annotated[str, typer.Option("--cost-model", metavar="NAME", help="As in `tune`.")] = "xgb",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", help="Processes that share the runs; the answer is the same.")
    ] = 1,
    output: options.ComparedOpt = None,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
    verbose: options.VerboseOpt = False,
) -> None:
    """Compare strategies on recorded measurements, without a device. The answers are the same every time.

    Performance is 0 where random search is expected to be, and 1 at the optimum. Intervals (95 %) and p-values are over
    the seeds, and speak of this space alone; with several FILEs also over spaces and seeds together (docs/research.md).
    """
    if trials is not None and trials < 1:
        raise UsageError(f"--trials {trials} leaves nothing to compare", hint="give 1 or more")
    if jobs < 1:
        raise UsageError(f"--jobs is {jobs}, and must be at least 1", hint="give 1 or more")
    if output is not None:
        can_write(output)
    if len(set(recordings)) < len(recordings):
        raise UsageError(f"{next(f for f in recordings if recordings.count(f) > 1)} is named twice")
    if output is not None and len(recordings) > 1 and output.suffix not in PICTURES:
        raise UsageError(f"-o {output}: several files have no common table", hint=_COMMON)
    chosen = inputs.names(strategies)
    if baseline is not None and chosen != ["all"] and baseline not in chosen:  # said before minutes of runs
        raise UsageError(f"--baseline {baseline} takes no part", hint=f"-s names {', '.join(chosen)}")
    if baseline is None and chosen == ["all"]:
        baseline = "random"
    seeds = range(first_seed, first_seed + repeats)
    if not seeds:
        raise UsageError(f"{repeats} seeds leave nothing to compare", hint="give --repeats 20")
    stated = inputs.budgets(budgets)
    spaces = [opened for file in recordings for opened in _opened(file, quiet)]
    if output is not None and len(spaces) > 1 and output.suffix not in PICTURES:
        held = f"{recordings[0]} holds {len(spaces)} recordings, which have no common table"
        raise UsageError(f"-o {output}: {held}", hint=_COMMON)
    lengths = [budget_of(Landscape.of(space), trials) for _, space in spaces]
    _have_budgets(stated, [(count, len(space), name) for count, (name, space) in zip(lengths, spaces, strict=True)])
    for _, space in spaces:
        if chosen != ["all"]:
            check(space, contestants(chosen, cost_model))
    each = []
    for number, (recording, space) in enumerate(spaces):
        mine = _within(stated, lengths[number])
        with Line(quiet, verbose) as line:
            named = "all" if chosen == ["all"] else chosen
            found = api.simulate(
                space, named, trials, seeds, cost_model=cost_model, jobs=jobs, thinking=thinking, on_run=line
            )
        each.append(found)
        if trials is not None and found.trials < trials and not quiet:
            said = f"{recording}: has {found.trials} rows, so runs are no longer than that"
            talk().print(said, markup=False)
        if stated and max(stated) > found.trials and not quiet:
            above = ", ".join(str(n) for n in stated if n > found.trials)
            said = f"{recording}: its runs have {found.trials} trials, so --budgets {above} is of other files alone"
            talk().print(said, markup=False)
        if not json and not (quiet and len(spaces) > 1):
            text = str(found.summary(baseline, mine)) if quiet else found.text(baseline, mine)
            answer(f"{chr(10) if number else ''}{text}")
    if len(each) == 1:
        if output is not None:
            write(output, each[0], baseline, stated, quiet)
        if json:
            answer_json(as_json(each[0], baseline, stated))
        return
    together = over_spaces(each, baseline, budgets=stated or ())
    if output is not None:
        write_figure(output, together.plot)
        wrote(output, quiet)
    if json:
        answer_json(spaces_json(together) | {"each": [as_json(c, baseline, _within(stated, c.trials)) for c in each]})
    else:
        answer(f"{'' if quiet else chr(10)}{together}")


def _within(stated: list[int] | None, trials: int) -> list[int] | None:
    """Those of the budgets that runs of so many trials have; None for none, which is the table's own choice."""
    return [n for n in stated or () if n <= trials] or None


def _have_budgets(stated: list[int] | None, runs: Sequence[tuple[int, int, str]]) -> None:
    """Raise UsageError for a budget that no file has. `runs`: trials of each, its rows, and its name."""
    budget, known, longest = max(runs)
    if not stated or max(stated) <= budget:
        return
    said = f"--budgets {','.join(map(str, stated))}: runs on {longest} have {budget} trials"
    said += ", the most of all files" if len(runs) > 1 else ""
    why = f": it has {known} rows, and a run tries each once" if budget == known else ""
    more = "" if budget == known else f", or give more --trials (up to {known})"
    raise UsageError(f"{said}{why}", hint=f"state budgets of 1 to {budget}{more}")


_COMMON = "a picture (.png, .svg, .pdf) has their mean curves; else write one file at a time"


def _opened(file: Path, quiet: bool) -> list[tuple[str, RecordedSpace]]:
    """The recordings of a file, each with what messages call it."""
    found = read_all(file)
    named = [(str(file) if len(found) == 1 else f"{file}, {one.name}", one) for one in found]
    for number, (name, one) in enumerate(named):
        tell_replaced(name, one, quiet, first=number == 0)
    return named
