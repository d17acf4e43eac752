"""Where the command starts, and the one place where errors become messages and exit statuses."""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from dataclasses import dataclass

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""For libraries that this process loads: their threads wait busily for the next piece of work, on the very cores where
kernels are timed, and the pieces here are small. Where the environment says another number, that counts."""


@dataclass
class Start:
    """When the command was started (`time.monotonic`), and whether it ended at a deadline: threads that it gave up are
    not waited for then. Click's context of every command holds it."""

    at: float
    late: bool = False


def main() -> None:
    """Run the command line. Whatever a person can cause ends in one message and the right status, never a traceback."""
    start = Start(time.monotonic())
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - a shell's `>&-` leaves none
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    os.environ |= ONE_THREAD | os.environ
    try:
        status = run(start)
        if start.late:
            from autosched.cli.deadline import leave

            leave(status)
        sys.exit(status)
    except BrokenPipeError:  # the reader of our output has left: nothing to say to it, nor when Python flushes at exit
        _drop_output()
        sys.exit(0)


def _drop_output() -> None:
    """What is still buffered for standard output goes nowhere when Python flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(start: Start | None = None) -> int:
    """Run the command that `sys.argv` holds; the exit status. Only a pipe that closed is raised on."""
    start = start or Start(time.monotonic())
    try:
        # Imported here, since loading the solver takes a second in which Ctrl-C must not show a traceback.
        from autosched.cli.app import application
        from autosched.cli.output import complain
        from autosched.errors import AutoschedError

        app = application(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    try:
        app(obj=start)
    except SystemExit as status:
        return status.code if isinstance(status.code, int) else 0 if status.code is None else 2
    except AutoschedError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    except BrokenPipeError:
        raise
    except MemoryError:
        complain("out of memory", "use smaller sizes or fewer threads")
        return 3
    except RecursionError:
        complain("the input nests too deeply")
        return 2
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            complain(f"cannot write {error.filename or 'the output'}: {error.strerror}", "free some space")
            try:
                sys.stdout.flush()
            except OSError:  # the full disk is the one that holds the output
                _drop_output()
            return 2
        complain("this is a mistake in autosched, not in your input; please report what follows")
        traceback.print_exc()
        return 70
    return 0
