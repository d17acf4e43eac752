"""`autosched show --trace`: a file that Perfetto opens."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from autosched.cli.app import app

RUN = CliRunner()


def test_a_trace_of_the_best_trial(tmp_path: Path) -> None:
    store, file = str(tmp_path / "s.sqlite"), tmp_path / "trace.json"
    sizes = [x for d in ("m=48", "n=32", "k=64", "a=s8", "b=s8", "acc=s32") for x in ("-D", d)]
    common = ["-t", "gemmini", "-d", "simulator", "-n", "3", "--store", store, "--json"]
    done = RUN.invoke(app, ["tune", "matmul", *sizes, *common])
    assert done.exit_code == 0, done.output
    study = json.loads(done.stdout)["study"]
    shown = RUN.invoke(app, ["show", study, "--store", store, "--trace", str(file)])
    assert shown.exit_code == 0, shown.output
    trace = json.loads(file.read_text())
    lanes = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {"bus", "array"} <= lanes
    refused = RUN.invoke(app, ["show", study, "--store", store, "--trace", str(tmp_path / "no" / "t.json")])
    assert refused.exit_code == 2
