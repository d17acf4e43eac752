"""The parent's side of the loops as written (`plain_loops`): what has run on which data set, and what is to be said of
those on which they did not run whole."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from autosched.device.correctness.oracle import Oracle, scalars_as_bytes
from autosched.device.cpu.builder import Builder
from autosched.device.cpu.plain_loops import PlainLoops, plain_loops
from autosched.device.job import Band, PlainRun
from autosched.device.processes.process import WorkerDiedError, WorkerTimeoutError
from autosched.errors import AutoschedError
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.scratch import Scratch, scratch_errors

Request = tuple[str, str, Sequence[Band], int, float, dict[str, bytes]]


class WholeRuns:
    """What the loops wrote stays in files, by inputs: other tolerances and another worker need no other run."""

    def __init__(self, target: Target, builder: Builder) -> None:
        self.target, self.builder = target, builder
        self._folder = Scratch("plain")
        self._loops: tuple[Program, PlainLoops | str] | None = None
        self._keys: list[tuple[Any, str]] = []
        self._runs: dict[str, PlainRun | str] = {}
        """Of each data set; a text where there was none, and why."""
        self._budgets: dict[str, float] = {}
        self._failed: set[str] = set()
        self._done: set[str] = set()
        self.further_s = 0.0
        """What runs on further data sets took."""

    def request(self, program: Program, where: str, given: Oracle, budget_s: float) -> Request | None:
        """What the worker is to be asked for a data set; None where nothing can run, or nothing in so many seconds."""
        if self._loops is None or self._loops[0] is not program:
            self._runs, self._budgets = {}, {}
            self._loops = program, self._built(program, given, budget_s)
        loops = self._loops[1]
        key = self._key(program, given)
        if isinstance(loops, str) or key in self._failed:
            self._runs.setdefault(where, loops if isinstance(loops, str) else "they could not run")
            return None
        kept = self._folder.path / key
        self._budgets.setdefault(where, budget_s)
        main = self._runs.get("")
        band_s = main.seconds / max(1, main.done) if isinstance(main, PlainRun) else 0.0
        if not kept.exists() and budget_s <= band_s:
            self._runs[where] = PlainRun(0, loops.count, 0.0)
            return None
        with scratch_errors():
            kept.mkdir(exist_ok=True)
        return where, str(kept), loops.bands, loops.count, budget_s, scalars_as_bytes(program, given.scalars)

    @staticmethod
    def limit_s(budget_s: float) -> float:
        """Seconds after which the worker does not answer any more."""
        return 2 * budget_s + 2.0

    def note(self, program: Program, where: str, given: Oracle, run: PlainRun) -> None:
        """What ran on a data set, now or before."""
        self._runs[where] = run
        if where and (key := self._key(program, given)) not in self._done:
            self._done.add(key)
            self.further_s += run.seconds

    def failed(self, program: Program, where: str, given: Oracle, error: Exception) -> None:
        """That they did not end, or ended the worker, and are not to run on these inputs again."""
        self._failed.add(self._key(program, given))
        match error:
            case WorkerTimeoutError():
                why = "they did not end in time"
            case WorkerDiedError():
                why = f"they ended with {error.reason}"
            case _:
                why = f"they could not run ({error})"
        self._runs[where] = why

    def said(self) -> dict[str, Any]:
        """What a trial says of it: `whole`, the part of each output that is compared with them on random data, and
        under `not_checked` what is not, on any data."""
        main = self._runs.get("")
        found: dict[str, Any] = {"whole": main.share if isinstance(main, PlainRun) else 0.0}
        texts = [text for where in self._runs if (text := self._text(where))]
        return found | ({"not_checked": texts} if texts else {})

    def close(self) -> None:
        """Remove the files."""
        self._folder.close()

    def _text(self, where: str) -> str:
        run = self._runs[where]
        start = f"where {where}: " if where else ""
        if isinstance(run, str):
            return f"{start}outputs outside of the boxes, with the loops as written: {run}"
        if run.wrong:
            return f"{start}outputs outside of the boxes: the loops as written are wrong themselves ({run.wrong})"
        if run.vague:
            return f"{start}{', '.join(run.vague)} outside of the boxes, where no error is known in places"
        if run.share == 1:
            return ""
        main = self._runs.get("")
        whole_s = run.whole_s or (main.whole_s if isinstance(main, PlainRun) else 0.0)
        left_s = max(0.0, self._budgets.get(where, 0.0))
        takes = f"the loops as written take about {whole_s:.2g} s, and have {left_s:.2g} s"
        return f"{start}{1 - run.share:.0%} of the rows outside of the boxes: {takes}"

    def _built(self, program: Program, given: Oracle, budget_s: float) -> PlainLoops | str:
        try:
            return plain_loops(program, self.target, self.builder, given.scalars, budget_s)
        except AutoschedError as error:
            return error.message

    def _key(self, program: Program, given: Oracle) -> str:
        """A name for a program's inputs."""
        for known, key in self._keys:
            if known is given.inputs:
                return key
        found = zlib.crc32(repr((str(program), sorted((n, str(v)) for n, v in given.scalars.items()))).encode())
        for name, values in sorted(given.inputs.items()):
            array = np.ascontiguousarray(values, program.tensors[name].dtype.numpy)
            found = zlib.crc32(array.reshape(-1).view(np.uint8).data, found)
        self._keys = [*self._keys[-16:], (given.inputs, f"{found:08x}")]
        return f"{found:08x}"
