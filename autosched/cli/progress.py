"""Progress of a tuning run: a live line on a terminal, plain lines when piped. It only listens to events."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from autosched.cli.output import seconds, speed, talk
from autosched.ir.work import operations
from autosched.search import events
from autosched.search.tune import TuneRequest

PLAIN_EVERY_S = 30.0


class Progress:
    """A listener on the events of one run. Use as a context manager, so that the terminal is left as it was."""

    def __init__(self, request: TuneRequest, *, quiet: bool, verbose: bool) -> None:
        self.request, self.quiet, self.verbose = request, quiet, verbose
        self.console: Console = talk()
        self.work = operations(request.program)
        self.live = self.console.is_terminal and not quiet
        self.last_plain_s = 0.0
        self.shown_kinds: set[str] = set()
        self.bar = Bar(
            TextColumn("{task.percentage:>3.0f}%"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[said]}"),
            console=self.console,
            transient=True,
            disable=not self.live,
        )
        self.task = self.bar.add_task("", total=request.trials, said="", start=True)

    def __enter__(self) -> Progress:
        if self.live:
            self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.live:
            self.bar.stop()

    def __call__(self, event: events.Event) -> None:
        if self.quiet:
            return
        match event:
            case events.Matched():
                fits = [n for n, (verdict, _) in event.verdicts.items() if verdict == "match"]
                shown = ", ".join(fits[:6]) + (f" and {len(fits) - 6} more" if len(fits) > 6 else "")
                self._line(f"match  {shown or 'no intrinsic: scalar code'}   ({event.seconds:.2f} s)")
            case events.Scored():
                self._line(
                    f"space  {event.plans} plans · {event.rows:,} legal schedules of {event.rows_in_all:,}"
                    f"   ({event.seconds:.1f} s)"
                )
            case events.StudyOpened():
                state = "new" if event.created else f"continuing: {event.done} of {event.total} trials done"
                self._line(f"study  {event.name}   ({state}, seed {event.seed})")
            case events.TrialDone():
                self._trial(event)
            case events.NewBest():
                if not self.live:
                    m = event.trial.measurement
                    self._line(
                        f"trial {event.trial.number:>4}  {seconds(m.time_s)}  {speed(self.work, m.time_s)}  "
                        f"{event.trial.plan}"
                    )
            case events.FinalRound():
                self._line(f"final  the best {event.candidates} again, interleaved")
            case events.WorkerDied():
                pass  # the trial that it belongs to says so
            case events.Stopped():
                pass

    def _trial(self, event: events.TrialDone) -> None:
        m = event.trial.measurement
        if not m.ok and (self.verbose or m.status not in self.shown_kinds):
            self.shown_kinds.add(m.status)
            first = m.message.strip().splitlines()[0] if m.message.strip() else "no message"
            self._line(f"trial {event.trial.number:>4}  failed ({m.status}): {first}")
        elif self.verbose:
            self._line(f"trial {event.trial.number:>4}  {seconds(m.time_s)}  {event.trial.plan}")
        failed = " · ".join(f"{kind} {n}" for kind, n in event.failed.items())
        said = f"best {seconds(event.best_s)}  {speed(self.work, event.best_s)}"
        said += (f"  failed: {failed}" if failed else "") + self._left(event)
        self.bar.update(self.task, completed=event.done, total=event.total, said=said)
        if not self.live and event.elapsed_s - self.last_plain_s >= PLAIN_EVERY_S:
            self.last_plain_s = event.elapsed_s
            self._line(f"{event.done}/{event.total} trials  {said}")

    @staticmethod
    def _left(event: events.TrialDone) -> str:
        """Time left, from the pace so far."""
        if event.done == 0 or event.done >= event.total:
            return ""
        left = event.elapsed_s / event.done * (event.total - event.done)
        return f"  ~{left:.0f} s left"

    def _line(self, text: str) -> None:
        (self.bar.console if self.live else self.console).print(text, markup=False)
