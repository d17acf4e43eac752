"""Temporary folders: one that cannot be written is an error of its own, and those of dead processes are removed.

A folder's owner holds a lock on the file `.lock` in it (flock), which the system lets go of when the owner ends, in
whatever way. Who makes the next folder removes those of the same user that nobody holds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from autosched.errors import ScratchError

PREFIX = "autosched-"
LOCK = ".lock"


@contextlib.contextmanager
def scratch_errors() -> Iterator[None]:
    """Within, what the system says of files in the temporary folder is a ScratchError."""
    try:
        yield
    except OSError as error:
        said = error.strerror or str(error)
        hint = "free some space there, or name another folder with TMPDIR"
        try:
            folder = tempfile.gettempdir()
            free = shutil.disk_usage(folder).free
        except OSError:
            raise ScratchError(f"no temporary folder can be written: {said}", hint=hint) from error
        where = f"the temporary folder {folder} ({free:,} bytes free)"
        raise ScratchError(f"{where} cannot be written: {said}", hint=hint) from error


class Scratch:
    """A temporary folder, made when first wanted. Raises ScratchError where that is not possible."""

    def __init__(self, name: str = "") -> None:
        self._prefix = PREFIX + (f"{name}-" if name else "")
        self._made: Path | None = None
        self._remove: weakref.finalize[..., Scratch] | None = None

    @property
    def path(self) -> Path:
        if self._made is None:
            with scratch_errors():
                remove_dead(Path(tempfile.gettempdir()))
                made = Path(tempfile.mkdtemp(prefix=self._prefix))
                self._remove = weakref.finalize(self, _removed, made, _locked(made), os.getpid())
                self._made = made
        return self._made

    def emptied(self) -> Path:
        """The folder, with nothing of ours in it."""
        with scratch_errors():
            for old in self.path.iterdir():
                if old.name != LOCK:
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
        return self.path

    def close(self) -> None:
        """Remove it, and all that is in it."""
        self._made = None
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _removed(folder: Path, lock: int | None, owner: int) -> None:
    if os.getpid() == owner:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def remove_dead(root: Path) -> list[Path]:
    """Remove the folders of this user's processes that have ended; those removed. What others own, what is in use, and
    what is not certainly ours stays."""
    removed = []
    with contextlib.suppress(OSError):
        for folder in root.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                if _abandoned(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                    removed.append(folder)
    return removed


def _locked(folder: Path) -> int | None:
    """Hold the folder; the file has its name only once it is held, so that it is never there and free."""
    if os.name != "posix":
        return None
    import fcntl

    new = folder / f"{LOCK}-new"
    lock = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks: the folder then stays, if this process is killed
        new.unlink()
        os.close(lock)
        return None
    new.rename(folder / LOCK)
    return lock


def _abandoned(folder: Path) -> bool:
    """Whether it is a folder of this user's whose owner has ended."""
    if os.name != "posix":
        return False
    import fcntl

    said = folder.lstat()
    if not stat.S_ISDIR(said.st_mode) or said.st_uid != os.getuid():
        return False
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        held = os.fstat(lock)
        if not stat.S_ISREG(held.st_mode) or held.st_uid != os.getuid():
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
