"""The parent's side of the CUDA worker: data it holds, questions, and what its death means. No program and no compiler
take part, so that jobs that were built elsewhere can be measured with it too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from autosched.device.cuda.driver import CardFacts
from autosched.device.cuda.launch_job import CudaJob, Sample
from autosched.device.job import Outcome, TensorFile
from autosched.device.processes.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError, ask_worker
from autosched.errors import AutoschedError, MissingError

DATA_LIMIT_S = 300.0
FurtherData: TypeAlias = tuple[str, str, tuple[TensorFile, ...], tuple[Sample, ...], Mapping[str, bytes]]
"""A data set: what messages call it, its folder, what `write_data` answered, and run-time scalars' bytes by name."""


class Client:
    """A worker on the device number `ordinal`, started when first needed and again after it died. MissingError where
    there is no such device."""

    def __init__(self, ordinal: int = 0) -> None:
        self.worker = WorkerProcess("autosched.device.cuda.worker", ordinal)
        self._data: tuple[str, tuple[TensorFile, ...], tuple[Sample, ...], bytes] | None = None
        self._plain: CudaJob | None = None
        self._changed = False
        self._beside: tuple[FurtherData, ...] = ()
        self._told = True
        """Whether the worker knows of the further data sets."""
        self.referred = False
        """Whether whole outputs of the fastest are compared."""

    def facts(self) -> CardFacts:
        """The device as its driver describes it."""
        self.worker.ensure()
        found: CardFacts = self._answer("card")
        return found

    def use(
        self,
        folder: Path,
        tensors: tuple[TensorFile, ...],
        samples: tuple[Sample, ...] = (),
        plain: CudaJob | None = None,
        comparing: bytes = b"",
    ) -> None:
        """Measure on the data in a folder (`write_data`) from now on; whole outputs of the fastest
        are compared with those of a `plain` kernel, if there is one and it is right in the samples. With the machine
        code `comparing` (of `comparing.TEXT`) outputs are compared on the GPU."""
        self._data, self._plain, self._changed = (str(folder), tensors, samples, comparing), plain, True
        self.referred = False

    def use_beside(self, sets: tuple[FurtherData, ...] = ()) -> None:
        """Check every candidate on these data sets too, and on no others from now on."""
        self._beside, self._told = sets, False

    def ask(self, deadline_s: float, *message: Any) -> Any:
        """The worker's answer to a question about candidates, or the outcome of its death."""
        return self._asked(deadline_s, message, self._provide)

    def probe(self, deadline_s: float, *message: Any) -> Any:
        """Seconds of a job without data (the job, calls, runs), or the outcome of the worker's death."""
        return self._asked(deadline_s, ("probe", *message), self.worker.ensure)

    def _asked(self, deadline_s: float, message: tuple[Any, ...], provide: Callable[[], object]) -> Any:
        def ready() -> bool:
            provide()
            return True

        answer = ask_worker(self.worker, message, deadline_s, ready, _why)
        if isinstance(answer, Outcome) and answer.status == "crash":
            self.worker.close()  # its context is lost
        return answer

    def close(self) -> None:
        self.worker.close()

    def _provide(self) -> None:
        """A live worker that holds the data."""
        assert self._data is not None
        if self.worker.ensure() or self._changed:
            self._changed = True
            plain = [self._plain] if self._plain is not None else []
            try:
                said = self._answer("data", *self._data, *plain)
            except AutoschedError:
                if not plain:
                    raise
                self._plain, said = None, []  # it is for the boxes alone, then
                self.worker.close()
                self.worker.ensure()
                self._answer("data", *self._data)
            self.referred = any(outcome.status == "ok" for outcome in said or [])
            self._changed = False
            self._told = not self._beside
        if not self._told:
            self._answer("beside", self._beside)
            self._told = True

    def _answer(self, *message: Any) -> Any:
        """The worker's answer to what is no candidate's doing."""
        try:
            return self.worker.ask(*message, deadline_s=DATA_LIMIT_S)
        except RuntimeError as error:
            if error.args and isinstance(error.args[0], MissingError):
                raise error.args[0] from None
            raise AutoschedError(f"the CUDA worker: {error}") from None
        except (WorkerDiedError, WorkerTimeoutError) as error:
            raise AutoschedError(f"the CUDA worker ended: {error}") from None


def _why(death: WorkerDiedError) -> str:
    return death.stderr.splitlines()[-1] if death.stderr else "the worker ended"
