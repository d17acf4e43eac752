"""The temporary folder: full or forbidden it ends the run and costs no trial; what dead runs leave there goes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autosched.errors import ScratchError
from autosched.scratch import LOCK, Scratch, remove_dead

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX locks")

TUNE = """
import resource, signal, sys
from autosched.cli.entry import main
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # as a full disk: writing more fails
sys.argv = "autosched tune matmul -D m=64 -D n=64 -D k=64 -d cpu -n 4 --store :memory:".split()
main()
"""
HOLD = """
import sys, time
from autosched.scratch import Scratch
made = Scratch()
(made.path / "data").write_text("x")
print(made.path, flush=True)
time.sleep(60)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(root: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that holds a folder below `root`."""
    environment = os.environ | {"TMPDIR": str(root)}
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_a_full_folder_ends_the_run_and_costs_no_trial(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TUNE], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "the temporary folder" in done.stderr
    assert "cannot be written" in done.stderr
    assert "name another folder with TMPDIR" in done.stderr
    assert "crash" not in done.stderr
    assert "Traceback" not in done.stderr


def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(ScratchError, match="no temporary folder can be written: No such file") as error:
        _ = Scratch().path
    assert error.value.exit_code == 3


def test_what_a_killed_run_leaves_the_next_removes(root: Path, holder: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = holder
    with Scratch() as ours:
        assert ours.path.is_dir()
        assert folder.is_dir()  # its owner lives
    process.kill()
    process.wait()
    assert (folder / "data").exists()
    with Scratch() as ours:
        assert ours.path.is_dir()
        assert not folder.exists()
    assert not ours._made


def test_what_is_not_certainly_ours_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / LOCK).touch()
    (root / "autosched-link").symlink_to(root / "elsewhere", target_is_directory=True)
    (root / "autosched-bare").mkdir()
    (root / "autosched-file").touch()
    (root / "autosched-strange").mkdir()
    (root / "autosched-strange" / LOCK).symlink_to(root / "elsewhere" / LOCK)
    assert remove_dead(root) == []
    (root / "autosched-other").mkdir()
    (root / "autosched-other" / LOCK).touch()
    own = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: own + 1)  # as if another user's
    assert remove_dead(root) == []
    monkeypatch.undo()
    assert remove_dead(root) == [root / "autosched-other"]


def test_a_folder_goes_with_its_owner_and_not_with_a_fork(root: Path) -> None:
    made = Scratch()
    path = made.path
    child = os.fork()
    if child == 0:
        made.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert path.is_dir()
    assert remove_dead(root) == []
    (path / "old").mkdir()
    (path / "older").touch()
    assert [p.name for p in made.emptied().iterdir()] == [LOCK]
    made.close()
    assert not path.exists()
