"""`autosched record`: rows of a space as a file, by the command itself."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.conftest import Cli

from autosched.store.replay_file import read_replay

SCALE = """def scale(X: f32[n, m], Y: f32[n, m], *, n=8, m=24):
    for i, j in grid(n, m):
        Y[i, j] = X[i, j] * 2.0
"""
FILE = "found.json.gz"


def simulated(target: str = "x86-avx512", m: int = 8) -> tuple[str, ...]:
    """A program of 1,512 legal rows, on the simulator."""
    sizes = [word for size in (f"m={m}", "n=16", "k=16", "a=u8", "b=s8") for word in ("-D", size)]
    return ("matmul", *sizes, "-i", "x86/vpdpbusd.*", "-t", target, "-d", "simulator")


SIMULATED = simulated()


@pytest.fixture
def small(cli: Cli) -> Cli:
    """Where `scale.py` is a program of eight legal rows."""
    (cli.folder / "scale.py").write_text(SCALE)
    return cli


def raw(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def times(path: Path) -> list[float]:
    return np.concatenate([p.time_s for p in read_replay(path).plans]).tolist()


@pytest.mark.slow
def test_all_rows_on_this_cpu(small: Cli) -> None:
    """The file says what machine it was and how steady, and nothing of where."""
    done = small.near()("record", "scale.py", "--all", "-o", FILE, "--json")
    found = done.json
    assert (found["schema"], found["ended"], found["complete"]) == ("autosched/record/1", "done", True)
    assert found["rows"] == found["wanted"] == found["measured"] == found["legal"] == 8
    recording = read_replay(small.folder / FILE)
    assert recording.complete
    assert found["best_s"] == pytest.approx(recording.best_s)
    (plan,) = recording.plans
    assert plan.ok.all()
    assert (plan.repeats > 0).all()
    assert (plan.cost_s > 0).all()
    assert np.isfinite(plan.spread[plan.repeats > 1]).all()
    assert {"cpu", "toolchain", "threads", "cache"} <= recording.device.keys()
    assert "features:" in recording.target
    settings = recording.settings
    assert {"seed", "threads", "autosched", "python", "numpy", "clock", "features"} <= settings.keys()
    assert settings["noise"]["again"]["rows"] == 8
    assert len(settings["noise"]["again"]["off"]) == len(settings["noise"]["spread"]) == 3
    text = json.dumps(raw(small.folder / FILE))
    assert str(small.folder) not in text
    assert re.search(r"/(tmp|home|root|work|usr)/", text) is None
    assert not list(small.folder.glob("*.part"))
    assert small.near()("simulate", FILE, "-s", "random", "-n", 8, "--repeats", 2, "-q").out
    again = small.near()("record", "scale.py", "--all", "-o", FILE)
    assert "there are 8 of 8 rows already" in again.err
    assert "nothing was left to measure; the fastest were measured once more" in again.out
    assert small.near()("record", "scale.py", "--all", "-o", FILE, "-q").out.endswith("s\n")


@pytest.mark.slow
def test_more_rows_are_added_to_those_there(cli: Cli) -> None:
    """A longer recording of the same seed holds a shorter one, and is what it would have been in one go."""
    near = cli.near()
    near("record", *SIMULATED, "--rows", 12, "-o", FILE)
    first = set(times(cli.folder / FILE))
    done = near("record", *SIMULATED, "--rows", 30, "-o", FILE, "--json")
    assert (done.json["rows"], done.json["measured"]) == (30, 18)
    near("record", *SIMULATED, "--rows", 30, "-o", "once.json.gz")
    assert times(cli.folder / FILE) == times(cli.folder / "once.json.gz")
    assert first < set(times(cli.folder / FILE))
    near("record", *SIMULATED, "--rows", 30, "-o", "other.json.gz", "--seed", 1)
    assert set(times(cli.folder / "other.json.gz")) != set(times(cli.folder / FILE))
    even = near("record", *SIMULATED, "--rows", 30, "-o", "even.json.gz", "--even", "--json").json
    assert len(set(even["plans"].values())) == 1


@pytest.mark.slow
def test_rows_of_anything_else_are_refused(small: Cli) -> None:
    near = small.near()
    near("record", *SIMULATED, "--rows", 6, "-o", FILE)
    before = (small.folder / FILE).read_bytes()
    others = {
        "another program or other sizes": simulated(m=16),
        "another target": simulated("amd-zen4"),
        "another device": (*SIMULATED, "--noise", "2%"),
        "seed 0, and not 1": (*SIMULATED, "--seed", 1),
        "even false, and not true": (*SIMULATED, "--even"),
        'numerics "rescaled", and not "bitwise"': (*SIMULATED, "--numerics", "bitwise"),
    }
    for said, words in others.items():
        done = near("record", *words, "--rows", 8, "-o", FILE, status=2)
        assert said in done.err
        assert "--fresh" in done.err
        assert (small.folder / FILE).read_bytes() == before
    changed = raw(small.folder / FILE)
    changed["settings"]["spaces"] = "0" * 16
    (small.folder / FILE).write_bytes(gzip.compress(json.dumps(changed).encode()))
    assert "another revision of the space" in near("record", *SIMULATED, "--rows", 8, "-o", FILE, status=2).err
    del changed["settings"]["spaces"]
    (small.folder / FILE).write_bytes(gzip.compress(json.dumps(changed).encode()))
    assert "of this version" in near("record", *SIMULATED, "--rows", 8, "-o", FILE, status=2).err
    assert near("record", *SIMULATED, "--rows", 8, "-o", FILE, "--fresh", "--json").json["measured"] == 8
    (small.folder / FILE).write_text("{}")
    assert "is no recording" in near("record", *SIMULATED, "--rows", 8, "-o", FILE, status=2).err
    assert "is no recording" in near("record", *SIMULATED, "--rows", 8, "-o", FILE, "--fresh", status=2).err
    assert (small.folder / FILE).read_text() == "{}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say how many rows"),
        (("--all", "--rows", 4), "say how many rows"),
        (("--rows", 0), "--rows 0 leaves nothing"),
        (("--rows", 4, "-o", "out.csv"), "ends in .json.gz"),
        (("--rows", 4, "-o", "nowhere/out.json.gz"), "there is no such folder"),
        (("--rows", 4, "-d", "replay:x.json.gz"), "has been measured already"),
        (("--rows", 4, "-j", 2, "-d", "cpu"), "would disturb each other"),
        (("--rows", 4, "-j", 0), "record nothing"),
        (("--rows", 4, "--timeout", "soon"), "not a time"),
        (("--rows", 4, "-D", "m=1..9"), "is symbolic"),
        (("--rows", 4, "--numerics", "exact"), "unknown numerics level"),
    ],
)
def test_bad_usage(small: Cli, words: tuple[object, ...], said: str) -> None:
    given = words if "-o" in words else (*words, "-o", FILE)
    assert said in small.near()("record", "scale.py", *given, status=2).err
    assert not list(small.folder.glob("*.json.gz*"))


@pytest.mark.slow
def test_a_timeout_leaves_a_recording(cli: Cli) -> None:
    done = cli.near()("record", *SIMULATED, "--all", "-o", FILE, "--timeout", "4s", "--json")
    found = done.json
    assert found["ended"] == "timeout"
    assert 0 < found["rows"] < found["wanted"] == found["legal"]
    assert f"after {found['rows']} of {found['wanted']} rows; nothing is lost. Continue:  autosched" in done.err
    assert len(read_replay(cli.folder / FILE)) == found["rows"]
    more = cli.near()("record", *SIMULATED, "--rows", found["rows"] + 2, "-o", FILE, "--json").json
    assert (more["rows"], more["measured"]) == (found["rows"] + 2, 2)
    late = cli.near()("record", *SIMULATED, "--all", "-o", "late.json.gz", "--timeout", "10ms", status=1)
    assert "was over before the first trial" in late.err
    assert not list(cli.folder.glob("late*"))


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _lines(cli: Cli) -> int:
    part = cli.folder / f"{FILE}.part"
    return part.read_bytes().count(b"\n") - 1 if part.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_same_command_goes_on(cli: Cli, how: signal.Signals) -> None:
    words = ("record", *SIMULATED, "--all", "-o", FILE)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen(cli.command(*words), preexec_fn=_interruptible, **pipes, **cli.options())
    until = time.monotonic() + 90
    while _lines(cli) < 5 and time.monotonic() < until and run.poll() is None:
        time.sleep(0.02)
    other = cli.near()(*words, status=2)
    assert "another process is recording" in other.err
    run.send_signal(how)
    _, err = run.communicate(timeout=60)
    assert "Traceback" not in err
    if how == signal.SIGINT:
        assert run.returncode == 130
        said = re.search(r"interrupted after (\d+) of 1512 rows; nothing is lost\. Continue:  (.*)", err)
        assert said
        assert shlex.split(said[2]) == ["autosched", *words]
        kept = int(said[1])
        assert len(read_replay(cli.folder / FILE)) == kept >= 5
        assert not list(cli.folder.glob("*.part"))
    else:
        kept = _lines(cli)
        with (cli.folder / f"{FILE}.part").open("ab") as file:
            file.write(b'{"plan": "C: x86/vp')  # the power was cut here
    wanted = kept + 3
    found = cli.near()("record", *SIMULATED, "--rows", wanted, "-o", FILE, "--json")
    assert (found.json["rows"], found.json["measured"]) == (wanted, 3)
    assert f"there are {kept} of {wanted} rows already" in found.err
    cli.near()("record", *SIMULATED, "--rows", wanted, "-o", "once.json.gz")
    assert times(cli.folder / FILE) == times(cli.folder / "once.json.gz")


def test_a_damaged_part_is_refused_with_its_line(cli: Cli) -> None:
    cli.near()("record", *SIMULATED, "--rows", 3, "-o", FILE)
    part = cli.folder / f"{FILE}.part"
    for text, said in (('{"a": 1}\n', "no unfinished recording"), ("nonsense\n", f"{FILE}.part:1: not JSON")):
        part.write_text(text)
        done = cli.near()("record", *SIMULATED, "--rows", 4, "-o", FILE, status=2)
        assert said in done.err
        assert part.read_text() == text
    assert cli.near()("record", *SIMULATED, "--rows", 4, "-o", FILE, "--fresh", "--json").json["measured"] == 4
    assert not part.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", [f"{FILE}.part", FILE])
def test_a_pipe_in_the_place_of_a_file_is_refused(small: Cli, name: str) -> None:
    """Opening it would wait for a reader, or a writer, for ever."""
    cli = small.near()
    os.mkfifo(cli.folder / name)
    assert f"cannot write {name}: it is no file" in cli("record", "scale.py", "--all", "-o", FILE, status=2).err


@pytest.mark.parametrize(
    ("words", "end"),
    [(("record", "scale.py", "--all", "-o"), ".json"), (("match",), ".py:f"), (("intrinsics", "check"), ".yaml")],
)
def test_a_name_that_no_file_may_have_is_refused(small: Cli, words: tuple[str, ...], end: str) -> None:
    done = small.near()(*words, "a" * 300 + end, status=2)
    assert "name too long" in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_processes_share_a_simulator(cli: Cli) -> None:
    one = cli.near()("record", *SIMULATED, "--rows", 8, "-o", FILE, "--json").json
    two = cli("record", *SIMULATED, "--rows", 8, "-o", "two.json.gz", "-j", 2, "--json").json
    assert one["best_s"] == two["best_s"]
    assert times(cli.folder / FILE) == times(cli.folder / "two.json.gz")
