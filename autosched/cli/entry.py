"""Where the command starts, and the one place where errors become messages and exit statuses."""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from dataclasses import dataclass

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""For libraries that this process loads: their idle threads spin on the cores where kernels are timed, and the work
here is small. Other values in the environment win."""

SHOWN_NAME = 60
"""Characters of a file's name that no file may have."""


@dataclass
class Start:
    """`at`: when the command was started (`time.monotonic`). `late`: whether it ended at a deadline; it then does not
    wait for abandoned threads. Click's context of every command holds this."""

    at: float
    late: bool = False


def main() -> None:
    """Run the command line. Errors that a user can cause end in one message and the right status, never a traceback."""
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
    except BrokenPipeError:  # the reader of our output has left
        _drop_output()
        sys.exit(0)


def _drop_output() -> None:
    """Discard what is still buffered for standard output, which Python would flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(start: Start | None = None) -> int:
    """Run the command in `sys.argv`; returns the exit status. Raises BrokenPipeError only."""
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
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            complain(f"{str(error.filename)[:SHOWN_NAME]}…: {error.strerror}", "give a shorter name")
            return 2
        complain("this is a bug in autosched, not in your input; please report what follows")
        traceback.print_exc()
        return 70
    return 0
