"""The child's side of `process`: a connection to the parent, and an end when the parent ends. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

PR_SET_PDEATHSIG = 1


def connect(connection_fd: int, life_fd: int, folders: list[str] | None = None) -> Connection[Any, Any]:
    """Set this process up as a child that may die of what it is given, and open its connection.

    `folders` are the parent's, to be removed if it dies without doing so itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is expected here; no core files
    if sys.platform == "linux":  # one that is stopped would not see its parent end: it is woken up then
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    threading.Thread(target=_die_with_parent, args=(life_fd, folders), daemon=True).start()
    return Connection(connection_fd)


def _die_with_parent(life_fd: int, folders: list[str] | None) -> None:
    """The parent holds the other end of this pipe and never writes: reading returns when the parent is gone.

    Compiled code that spins does not hold the interpreter's lock, so this thread still gets to run.
    """
    with contextlib.suppress(OSError):
        os.read(life_fd, 1)
    for folder in folders or ():
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
