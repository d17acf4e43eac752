"""`autosched show --trace`: a file that Perfetto opens."""

from __future__ import annotations

import json

from cli.conftest import Cli


def test_a_trace_of_the_best_trial(cli: Cli) -> None:
    sizes = [x for d in ("m=48", "n=32", "k=64", "a=s8", "b=s8", "acc=s32") for x in ("-D", d)]
    near = cli.near()
    study = near("tune", "matmul", *sizes, "-t", "gemmini", "-d", "simulator", "-n", "3", "--json").json["study"]
    assert "perfetto" in near("show", study, "--trace", "trace.json").err
    trace = json.loads((cli.folder / "trace.json").read_text())
    lanes = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {"bus", "array", "statements"} <= lanes
    assert near("show", study, "--trace", "no/trace.json", status=2).err
    told = near("show", study, "--trace", "again.json", "--json").json
    assert told["schema"] == "autosched/trace/1"
    shown = near("show", study, "--trace", "both.json", "--as", "loops")
    assert "perfetto" in shown.err
    assert "for " in shown.out
    assert (cli.folder / "both.json").exists()
    assert (cli.folder / told["file"]).exists()
