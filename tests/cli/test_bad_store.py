"""Stores that cannot keep trials, and kernels that cannot be built: nothing finished is lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import NAME, SMALL, Cli

from autosched.tensorize.check import own

_SMALL_DISK = """
import sqlite3, sys
from autosched.store import sqlite
connect = sqlite.SqliteStore._connect
def limited(self, busy_s):
    db = connect(self, busy_s)
    if not self._read_only:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages + 2}")
    return db
sqlite.SqliteStore._connect = limited
from autosched.cli import main
main()
"""
"""The command on a file system that has room for two more pages of the store."""


def _numbers(cli: Cli) -> list[int]:
    return [t["number"] for t in cli.near()("trials", NAME, "--json").json if t["round"] == "search"]


@pytest.mark.slow
def test_a_full_disk_keeps_what_was_finished(cli: Cli) -> None:
    cli.near()("tune", *SMALL, "-n", 2, "-q", "-s", "random")
    command = [sys.executable, "-c", _SMALL_DISK, "tune", *SMALL, "-n", "60", "-s", "random"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **cli.options())
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 2
    assert "database or disk is full" in ended.stderr
    assert "trials are safe" in ended.stderr
    assert "help: free some space" in ended.stderr
    kept = _numbers(cli)
    assert kept == list(range(1, len(kept) + 1))
    assert 2 <= len(kept) < 60
    more = len(kept) + 1
    assert cli.near()("tune", *SMALL, "-n", more, "--json", "-s", "random").json["trials"]["done"] == more
    assert _numbers(cli) == list(range(1, more + 1))


@pytest.mark.slow
def test_a_store_of_a_newer_version_is_left_alone(cli: Cli) -> None:
    cli = cli.near()
    cli("tune", *SMALL, "-n", 1, "-q", "-s", "random")
    path = cli.folder / "studies.db"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    db.close()
    before = path.read_bytes()
    for command in (("tune", *SMALL), ("show", NAME), ("studies",)):
        said = cli(*command, status=2).err
        assert "written by a newer autosched" in said
        assert "help: upgrade autosched" in said
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_left_alone(cli: Cli) -> None:
    with sqlite3.connect(cli.folder / "studies.db") as db:
        db.execute("CREATE TABLE cats (name TEXT)")
    db.close()
    assert "database of something else" in cli.near()("tune", *SMALL, status=2).err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only files")
def test_a_read_only_store(cli: Cli) -> None:
    cli = cli.near()
    cli("tune", *SMALL, "-n", 1, "-q", "-s", "random")
    (cli.folder / "studies.db").chmod(0o444)
    said = cli("tune", *SMALL, "-n", 2, status=2).err
    assert "readonly" in said
    assert "make it writable" in said
    assert len(cli("trials", NAME, "--json").json) >= 1


def test_a_store_where_nothing_can_be_written(cli: Cli) -> None:
    """/proc takes no files, whoever asks."""
    if not Path("/proc/self").exists():
        pytest.skip("no /proc")
    said = cli.near()("tune", *SMALL, "--store", "/proc/self/studies.db", status=2).err
    assert "cannot open the store" in said
    assert "give --store another path" in said


_NO_SUCH = """\
isa: portable
intrinsics:
  - name: absent
    semantics: |
      def absent(a: f32[8], b: f32[8], c: f32[8]):
          for i in range(8):
              c[i] += a[i] * b[i]
    numerics: {accumulate: sequential}
    operands:
      a: {register: {llvm: <8 x float>, c: v8}}
      b: {register: {llvm: <8 x float>, c: v8}}
      c: {register: {llvm: <8 x float>, c: v8}}
    emit:
      llvm: "call <8 x float> @llvm.x86.no.such.instruction(<8 x float> {c}, <8 x float> {a}, <8 x float> {b})"
    timing: {latency: 1, interval: 0.1}  # so fast that no scalar code is laid out beside it
"""


@pytest.mark.slow
def test_a_kernel_that_fails_to_compile_is_a_trial(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM does not know the instruction: the text is refused, and where it was not looked at every candidate fails."""
    (cli.folder / "absent.yaml").write_text(_NO_SUCH)
    only = ("-D", "m=16", "-D", "n=16", "-D", "k=16", "--intrinsics", "absent.yaml", "-i", "portable/absent")
    assert "LLVM has no llvm.x86.no.such.instruction" in cli.near()("tune", "matmul", *only, "-n", 3, status=2).err
    monkeypatch.setattr(own, "doubtful_llvm", lambda intrinsics, features: [])
    done = cli.near()("tune", "matmul", *only, "-n", 3, status=1)
    assert "none of 3 candidates survived; 3 failed with 'build'" in done.err
    trials = cli.near()("trials", "matmul", "--json").json
    assert [t["measurement"]["status"] for t in trials] == ["build"] * 3
    assert all("no.such.instruction" in t["measurement"]["message"] for t in trials)
    assert "no candidate that came out right" in cli.near()("show", "matmul", status=1).err
