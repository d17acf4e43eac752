"""Progress of a tuning run: a live line on a terminal, plain lines when piped. It only listens to events."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from threading import Event, Thread
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from autosched.cli.output import joules, raced, talk
from autosched.ir.work import operations
from autosched.report.plan_text import brief_plan
from autosched.report.text import counted, of_peak, seconds, speed
from autosched.search import events
from autosched.search.request import TuneRequest
from autosched.store.records import Measurement

PLAIN_EVERY_S = 30.0


class Progress:
    """A listener on the events of one run. Use as a context manager, so that the terminal is left as it was."""

    def __init__(
        self, request: TuneRequest, *, quiet: bool, verbose: bool, plain_every_s: float = PLAIN_EVERY_S
    ) -> None:
        """Where there is no terminal, something is said every `plain_every_s` seconds at least."""
        self.plain_every_s = plain_every_s
        self.doing = "matching instructions"
        self.last_line_s = time.monotonic()
        self.over = Event()
        self.first: tuple[int, float] | None = None
        """How many trials were done after the first of this run, and when."""
        self.request, self.quiet, self.verbose = request, quiet, verbose
        self.console: Console = talk()
        self.work = operations(request.program)
        self.live = sys.stderr.isatty() and not self.console.is_dumb_terminal and not quiet
        self.peak: float | None = None
        self.before = 0
        """Trials of earlier runs, which say nothing of this run's pace."""
        self.best_joules = ""
        self.last_plain_s = 0.0
        self.shown_kinds: set[str] = set()
        self.bar = Bar(
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=self.console,
            transient=True,
            disable=not self.live,
        )
        self.task = self.bar.add_task("", total=request.trials, said="matching", start=True)

    def __enter__(self) -> Progress:
        if self.live:
            self.bar.start()
        elif not self.quiet:
            Thread(target=self._say_what_takes_long, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.over.set()
        if self.live:
            self.bar.stop()

    def _say_what_takes_long(self) -> None:
        """A line where there was none for a while."""
        began = time.monotonic()
        while not self.over.wait(self.plain_every_s / 10):
            now = time.monotonic()
            if now - self.last_line_s >= self.plain_every_s:
                self._line(f"...    {self.doing} ({now - began:.0f} s so far)")

    def __call__(self, event: events.Event) -> None:
        if self.quiet:
            return
        match event:
            case events.Matched():
                self._matched(event)
            case events.NotPlanned() if self.verbose:
                for reason, which in event.reasons:
                    more = f" and {len(which) - 3} more" if len(which) > 3 else ""
                    self._line(f"rejected  {', '.join(which[:3])}{more}: {reason}")
            case events.Unplanned(stage, fitting, reason):
                fits = "fits, and no plan uses it" if len(fitting) == 1 else "fit, and no plan uses them"
                self._line(f"note   stage {stage}: {_some(fitting, 2)} {fits}: {reason}")
            case events.NotRunWhole(message):
                self._line(f"note   {message}")
            case events.Scored():
                few = "" if event.near == event.plans else f", {event.near} of them near the best by the clock"
                plans = counted(event.plans, "plan") + few
                rows = f"{event.rows:,} legal schedules of {event.rows_in_all:,}"
                self._line(f"space  {plans} · {rows}   ({event.seconds:.1f} s)")
            case events.NearMiss():
                why = "; ".join(event.differences)
                self._line(f"note   a new study, though {event.study} is of the same program: {why}")
            case events.WithoutEffect(decisions):
                self._line(f"note   of the schedule given {'; '.join(decisions)}")
            case events.StudyOpened():
                self.before = event.done
                self._line(f"study  {event.name}   ({_state(event)}; seed {event.seed})")
                self.doing = "scoring the space by the clock, for the first candidates"
                self.bar.update(self.task, completed=event.done, total=max(event.done, event.total), said="")
            case events.Proposed():
                self.doing = f"measuring {counted(event.candidates, 'candidate')}"
                if self.bar.tasks[0].completed == self.before:  # no trial has said more yet
                    self.bar.update(self.task, said=self.doing)
            case events.TrialDone():
                self._trial(event)
            case events.NewBest():
                if not self.live:
                    m = event.trial.measurement
                    self._line(f"trial {event.trial.number:>4}  {self._told(m)}  {brief_plan(event.trial.plan)}")
            case events.FinalRound():
                self.doing = "the final round"
                self._line(f"final  {raced(event.candidates, event.more)}")
                self.bar.update(self.task, said="final round")
            case events.Noisy():
                then = "they are run again" if event.again else "quiet rounds decide where there are enough"
                said = f"{event.disturbed} of {event.rounds} rounds were {event.slowdown:.0%} slower for all alike"
                self._line(f"noise  {said}: {then}")
            case events.RaceLost():
                self._line(f"final  did not come to its end ({event.message}): times of the search decide")
            case events.FinalFailed(failed, of):
                kinds = " · ".join(f"{kind} {n}" for kind, n in failed.items())
                count = f"{sum(failed.values())} of {counted(of, 'candidate')}"
                self._line(f"final  {count} did not come out right again ({kinds}), and cannot be the best")
            case events.NoFinal():
                self._line("final  left out, no time was left for it: times of the search decide")
            case events.PlanGivenUp():
                why = f"the first {event.failed} candidates of {brief_plan(event.plan)} failed ({event.message})"
                self._line(f"note   {why}: other plans are tried")
            case (
                events.NotPlanned()
                | events.MeasuredAgain()
                | events.WorkerDied()
                | events.Stopped()
            ):
                pass  # the trial and the answer say so

    def _matched(self, event: events.Matched) -> None:
        if event.peak and not self.request.target.backend.is_gpu:
            self.peak = event.peak[1]
        accepted = ("match",) if self.request.conditions == "refuse" else ("match", "conditional")
        fits = [n for n, (verdict, _) in event.verdicts.items() if verdict in accepted]
        fits.sort(key=lambda n: n.startswith("portable/"))  # the machine's own first
        shown = _some(fits, 4) or "no intrinsic as it stands"
        others = [name for name in event.planned if name not in fits]
        shown += f"; as rewritten {_some(others, 4)}" if others else ""
        self._line(f"match  {shown}   ({event.seconds:.2f} s)")
        self.bar.update(self.task, said="scoring the space")
        self.doing = "planning, and laying out the space"

    def _trial(self, event: events.TrialDone) -> None:
        m = event.trial.measurement
        self.doing = f"{event.done} of {event.total} trials done, the next ones under way"
        self.first = self.first or (event.done, event.elapsed_s)
        if not m.ok and (self.verbose or m.status not in self.shown_kinds):
            self.shown_kinds.add(m.status)
            first = m.message.strip().splitlines()[0] if m.message.strip() else "no message"
            self._line(f"trial {event.trial.number:>4}  failed ({m.status}): {first}")
        elif m.ok and self.verbose and (self.live or m.time_s != event.best_s):  # a new best says so itself when piped
            self._line(f"trial {event.trial.number:>4}  {self._told(m)}  {brief_plan(event.trial.plan)}")
        if m.ok and m.time_s == event.best_s:
            self.best_joules = joules(m, self.request.objective)
        best = f"best {self._speed(event.best_s)}{self.best_joules}" if event.best_s else "no best yet"
        said = best + self._left(event)
        if event.failed:
            said += "  failed: " + " · ".join(f"{kind} {n}" for kind, n in event.failed.items())
        self.bar.update(self.task, completed=event.done, total=event.total, said=said)
        if not self.live and event.elapsed_s - self.last_plain_s >= self.plain_every_s:
            self.last_plain_s = event.elapsed_s
            self._line(f"{event.done}/{event.total} trials  {said}")

    def _told(self, m: Measurement) -> str:
        corrected = "  (corrected: another machine than at first)" if "level" in m.extra else ""
        return self._speed(m.time_s) + corrected + joules(m, self.request.objective)

    def _speed(self, time_s: float | None) -> str:
        ratio = self.work / time_s / self.peak if time_s and self.peak else 0.0
        share = f"  {of_peak(ratio)}" if ratio else ""
        return f"{seconds(time_s)}  {speed(self.work, time_s)}{share}"

    def _left(self, event: events.TrialDone) -> str:
        """Time left, from the pace since the first trial: what came before it does not come again."""
        done, since_s = self.first or (event.done, event.elapsed_s)
        if event.done <= done or event.done >= event.total:
            return ""
        left = (event.elapsed_s - since_s) / (event.done - done) * (event.total - event.done)
        return f"  ~{left:.0f} s left"

    def _line(self, text: str) -> None:
        self.last_line_s = time.monotonic()
        (self.bar.console if self.live else self.console).print(text, markup=False)


def _some(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _state(event: events.StudyOpened) -> str:
    """Whether a study is new, or how far it is."""
    if event.created:
        return "new"
    best = f", best {seconds(event.best_s)}" if event.best_s else ""
    if event.done < event.total:
        return f"continuing: {event.done} of {event.total} trials done{best}"
    asked = "" if event.done == event.total else f", {event.total} asked"
    there = f"{counted(event.done, 'trial')} {'is' if event.done == 1 else 'are'} there already{asked}{best}"
    return f"{there}: nothing to search; -n {2 * event.done} measures more"
