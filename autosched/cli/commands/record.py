"""`autosched record`: rows of a space with a time each, as a file that needs no device any more."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer

from autosched.cli import inputs, options
from autosched.cli.answers.unused import tell_unused
from autosched.cli.commands.tune import CACHES, again
from autosched.cli.deadline import Outside
from autosched.cli.entry import Start
from autosched.cli.output import answer, answer_json, talk
from autosched.errors import UsageError
from autosched.numerics_levels import NUMERICS_LEVELS
from autosched.report.text import counted, seconds
from autosched.search.evaluate.recorder import RowDone
from autosched.search.evaluate.recording import Recorded, record_to
from autosched.search.evaluate.unfinished import SUFFIX
from autosched.search.request import TuneRequest
from autosched.search.tuning.deadline import Deadline
from autosched.store.recorded_space import RecordedSpace
from autosched.store.records import STATUSES
from autosched.tiling.variants.conditional import MODES
from autosched.tune_options import TuneOptions

SCHEMA = "autosched/record/1"
ENDINGS = (".json.gz", ".json")
PLAIN_EVERY_S = 30.0


def record(
    context: typer.Context,
    program: options.ProgramArg,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="FILE.json.gz: the recording.")],
    define: options.DefineOpt = None,
    rows: Annotated[
        int | None, typer.Option("--rows", metavar="N", help="Rows that the file is to have, drawn with the seed.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every legal row.")] = False,
    even: Annotated[bool, typer.Option("--even", help="As many rows of each plan, where they have so many.")] = False,
    target: options.TargetOpt = "native",
    device: options.DeviceOpt = TuneOptions.device,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Stop this run after 90s, 10m or 2h.")
    ] = None,
    seed: options.SeedOpt = TuneOptions.seed,
    threads: options.ThreadsOpt = TuneOptions.threads,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", help="On the simulator: processes that share the rows.")
    ] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over: measure anew what FILE has.")] = False,
    intrinsics: options.IntrinsicsOpt = None,
    intrinsic: options.OnlyOpt = None,
    plans: options.PlansOpt = None,
    numerics: options.NumericsOpt = TuneOptions.numerics,
    conditions: Annotated[str, options.option("conditions", metavar="WAY")] = TuneOptions.conditions,
    cache: Annotated[str, options.option("cache", metavar="STATE")] = TuneOptions.cache,
    emulate: Annotated[bool, options.option("emulate")] = TuneOptions.emulate,
    noise: Annotated[str | None, options.option("noise", metavar="SHARE")] = None,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
) -> None:
    """Measure rows of the space that `tune` searches, for `simulate`, `model eval`, and -d replay:FILE.

    The same command goes on where it was interrupted or timed out, and with more --rows adds to what FILE has. Rows of
    another program, target, device, space or version are refused. Exit status 1 when no row came out right, 4 when one
    computed wrong numbers, 130 when interrupted.
    """
    start = context.find_object(Start) or Start(time.monotonic())
    began = time.monotonic()
    if (rows is None) is not every:
        raise UsageError("say how many rows", hint="--rows 2048, or --all" if rows is None else "--rows or --all alone")
    if rows is not None and rows < 1:
        raise UsageError(f"--rows {rows} leaves nothing to record", hint="give 1 or more")
    if not output.name.endswith(ENDINGS):
        raise UsageError(f"-o {output}: recordings are JSON", hint="use a name that ends in .json.gz")
    if device.partition(":")[0] == "replay":
        raise UsageError("a recording has been measured already", hint="-d cpu, cuda or simulator")
    inputs.choice("cache state", cache, CACHES)
    inputs.choice("numerics level", numerics, NUMERICS_LEVELS)
    inputs.choice("way to treat conditions", conditions, MODES)
    limit = Deadline(inputs.timeout(timeout), began=start.at)
    try:
        with HowFar(quiet) as line, Outside(limit, partial(_ended, output)), limit:
            limit.tuning, limit.so_far = line, lambda: line  # what is said of a run that does not end by itself
            known = inputs.catalogue(intrinsics)
            loaded = inputs.program(program, define)
            machine = inputs.target(target, known)
            tell_unused(known, intrinsics, machine)
            request = TuneRequest(
                loaded,
                machine,
                device=device,
                seed=seed,
                threads=threads,
                catalogue=known,
                only=tuple(intrinsic or ()),
                families=tuple(plans or ()),
                numerics=numerics,
                cache=cache,
                emulate=emulate,
                noise=inputs.deviation(noise),
                conditions=conditions,
            )
            found = record_to(
                output,
                request,
                rows,
                even=even,
                jobs=jobs,
                created=time.strftime("%Y-%m-%d", time.gmtime()),
                fresh=fresh,
                on_row=line,
                deadline=limit,
            )
    except KeyboardInterrupt:  # before the first row
        talk().print(f"interrupted; nothing was measured. Again:  {again(sys.argv[1:])}", markup=False)
        raise typer.Exit(130) from None
    finally:
        start.late = limit.over
    failed = _failed(found.recording)
    if json:
        answer_json(_as_json(output, found, failed, time.monotonic() - began))
    else:
        answer("\n".join(_lines(output, found, failed, brief=quiet)))
    if found.ended != "done":
        why = "--timeout was over" if found.ended == "timeout" else "interrupted"
        said = f"{why} after {len(found.recording)} of {found.wanted} rows; nothing is lost"
        talk().print(f"{said}. Continue:  {again(sys.argv[1:])}", markup=False)
    raise typer.Exit(_status(found, failed))


def _ended(output: Path, tuning: Any, line: Any) -> int:
    """What a thread says in place of a run that is stuck; the exit status."""
    assert isinstance(line, HowFar)
    said = f"{counted(line.best or 0, 'row')} of this run {'is' if line.best == 1 else 'are'} in {output}{SUFFIX}"
    talk().print(f"{said}. Continue:  {again(sys.argv[1:])}", markup=False)
    return 1


def _status(found: Recorded, failed: Mapping[str, int]) -> int:
    if found.ended == "interrupted":
        return 130
    if "wrong" in failed:
        return 4
    return 1 if sum(failed.values()) == len(found.recording) else 0


def _failed(recording: RecordedSpace) -> dict[str, int]:
    kinds = Counter(STATUSES[int(s)] for plan in recording.plans for s in plan.status[~plan.ok])
    return dict(sorted(kinds.items()))


def _lines(output: Path, found: Recorded, failed: Mapping[str, int], *, brief: bool) -> list[str]:
    recording = found.recording
    best = seconds(recording.best_s) if recording.best_s == recording.best_s else "none"
    if brief:
        return [best]
    legal = "all of them" if recording.complete else f"of {recording.legal:,} legal ones"
    noise: Mapping[str, Any] = recording.settings.get("noise", {})
    twice = "; the fastest were measured once more" if noise.get("again") else ""
    none = f"nothing was left to measure{twice}" if found.ended == "done" else "none measured now"
    new = f"; {found.measured} measured now" if found.measured else f"; {none}"
    there = f"{output}: {counted(len(recording), 'row')}, {legal}"
    lines = [f"{there}{new}   {found.bytes / 1000:.0f} KB", f"best   {best}"]
    if failed:
        lines.append("failed " + " · ".join(f"{kind} {n}" for kind, n in failed.items()))
        first = next((plan.messages[min(plan.messages)] for plan in recording.plans if plan.messages), "")
        lines += [f"       {first.splitlines()[0]}"] if first.strip() else []
    if noise.get("spread"):
        repeated = noise.get("again")
        off = f"; measured twice, {repeated['rows']} rows were {repeated['off'][1]:.1%} off" if repeated else ""
        lines.append(f"noise  spread {noise['spread'][1]:.1%} of {noise['repeats'][1]:.0f} samples (medians){off}")
    return lines


def _as_json(output: Path, found: Recorded, failed: Mapping[str, int], took_s: float) -> dict[str, Any]:
    recording = found.recording
    return {
        "schema": SCHEMA,
        "file": str(output),
        "bytes": found.bytes,
        "ended": found.ended,
        "rows": len(recording),
        "wanted": found.wanted,
        "measured": found.measured,
        "legal": recording.legal,
        "complete": recording.complete,
        "plans": {plan.name: len(plan) for plan in recording.plans},
        "best_s": recording.best_s if recording.best_s == recording.best_s else None,
        "failed": dict(failed),
        "device": dict(recording.device),
        "noise": recording.settings.get("noise", {}),
        "seconds": round(took_s, 2),
    }


class HowFar:
    """Says how far the recording is: in one line of a terminal, or a line every 30 seconds."""

    def __init__(self, quiet: bool) -> None:
        self.console, self.quiet = talk(), quiet
        self.live = sys.stderr.isatty() and not self.console.is_dumb_terminal and not quiet
        self.status = self.console.status("matching") if self.live else None
        self.began_s, self.before, self.told_s = 0.0, -1, 0.0
        self.best: int | None = None
        """Rows that this run has measured; None for none."""

    def __enter__(self) -> HowFar:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.status is not None:
            self.status.stop()

    def __call__(self, row: RowDone) -> None:
        now = time.monotonic()
        if self.before < 0:
            self.began_s = self.told_s = now
            self.before = row.done
            if row.done and not self.quiet:
                self.console.print(f"there are {row.done} of {row.total} rows already", markup=False)
        best = f"   best {seconds(row.best_s)}" if row.best_s else ""
        made = row.done - self.before
        self.best = made or None
        left_s = (now - self.began_s) / made * (row.total - row.done) if made else 0.0
        said = f"{row.done}/{row.total} rows{best}" + (f"  ~{left_s:.0f} s left" if left_s >= 1 else "")
        if self.status is not None:
            self.status.update(said if row.done < row.total else "the fastest once more, in turn")
        elif not self.quiet and now - self.told_s >= PLAIN_EVERY_S:
            self.told_s = now
            self.console.print(said, markup=False)
