"""These tests run the real command: the `autosched` beside this Python, in a process of its own.

Loading the package takes a second a process, so tables of many cases call the same entry point in this process instead
(`cli.near()`): arguments, streams, folder and exit status are the same.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from autosched.cli import entry

SMALL = ("matmul", "-D", "m=48", "-D", "n=32", "-D", "k=64", "-D", "a=u8", "-D", "b=s8", "-D", "acc=s32")
NAME = "matmul-m48-n32-k64-u8-s8-s32@native-cpu"
"""The beginning of the study's name, which is enough to name it."""


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def executable() -> str:
    beside = Path(sys.executable).with_name("autosched")
    found = str(beside) if beside.exists() else shutil.which("autosched")
    assert found, "the package is not installed: pip install '.[test]'"
    return found


@dataclass(frozen=True)
class Cli:
    """`cli("tune", …)` runs the command in `folder` and checks its exit status; nothing is written elsewhere."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    inside: bool = False

    def near(self) -> Cli:
        """The same command without a process of its own."""
        return replace(self, inside=True)

    def command(self, *arguments: object) -> list[str]:
        return [executable(), *(str(a) for a in arguments)]

    def options(self) -> dict[str, Any]:
        return {"cwd": self.folder, "env": {**os.environ, **self.environment}, "stdin": subprocess.DEVNULL}

    def __call__(self, *arguments: object, status: int = 0, **environment: str) -> Done:
        run = self._here if self.inside else self._apart
        done = run(self.command(*arguments), {**self.environment, **environment})
        assert "Traceback" not in done.err, done.err
        assert done.status == status, f"exit status {done.status}, expected {status}\n{done.out}\n{done.err}"
        return done

    def _apart(self, command: list[str], environment: dict[str, str]) -> Done:
        options = self.options() | {"env": {**os.environ, **environment}}
        ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, **options)
        return Done(ended.returncode, ended.stdout, ended.stderr)

    def _here(self, command: list[str], environment: dict[str, str]) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            patch.dict(os.environ, environment),
            patch.object(sys, "argv", command),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            status = entry.run()
        return Done(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where measured peaks are kept, so that this machine is measured once."""
    return tmp_path_factory.mktemp("home")


def make_cli(folder: Path, home: Path) -> Cli:
    unset = {"AUTOSCHED_INTRINSICS": "", "COLUMNS": "200"}
    places = {"XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}
    return Cli(folder, {"AUTOSCHED_STORE": str(folder / "studies.db"), **places, **unset})


@pytest.fixture
def cli(tmp_path: Path, home: Path) -> Cli:
    """The command in an empty folder, with a store of its own."""
    return make_cli(tmp_path, home)


@pytest.fixture(scope="session")
def tuned(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Cli:
    """The command in a folder whose store holds one finished study, NAME, of eight trials."""
    cli = make_cli(tmp_path_factory.mktemp("tuned"), home)
    cli("tune", *SMALL, "--trials", 8, "-q")
    return cli
