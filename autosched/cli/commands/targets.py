"""`autosched targets`: descriptions of machines, and of this one."""

from __future__ import annotations

from typing import Annotated

import typer

from autosched import api
from autosched.cli import inputs, options
from autosched.cli.output import answer, answer_json, table
from autosched.device import registry
from autosched.errors import UsageError
from autosched.machine.catalogue import load_target, target_data, target_names, target_yaml
from autosched.machine.target import Target

app = typer.Typer(help="List, show and detect targets.", no_args_is_help=True)


@app.command("list")
def list_(json: options.JsonOpt = False) -> None:
    """List all targets. A YAML file of your own works wherever a name does."""
    found = [load_target(n) for n in target_names() if n != "native"]
    if json:
        answer_json([{"name": t.name, "isa": t.isa, "summary": t.summary} for t in found])
        return
    rows = [(t.name, t.isa, t.cores, f"{t.clock_hz / 1e9:.2f} GHz", t.summary) for t in found]
    table(("target", "isa", "cores", "clock", "summary"), [*rows, ("native", "", "", "", "this machine, measured")])


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A target's name, a YAML file, or native.")],
    json: options.JsonOpt = False,
) -> None:
    """Show one target in full."""
    target = inputs.target(name)
    if json:
        answer_json(target_data(target))
    else:
        answer(target_yaml(target))


@app.command("detect")
def detect(
    device: Annotated[
        str, typer.Option("--device", "-d", metavar="NAME", help="cpu: this machine; cuda: its NVIDIA GPU.")
    ] = "cpu",
    effort: Annotated[
        str, typer.Option("--effort", metavar="EFFORT", help="quick (seconds) or full (a minute or two).")
    ] = "full",
    yaml: Annotated[bool, typer.Option("--yaml", help="Print a target file.")] = False,
    json: options.JsonOpt = False,
) -> None:
    """Describe and measure this machine or its GPU.

    Prints features, cores, memories, and measured instruction rates and bandwidths.

    Exit status 3 where there is no such device.
    """
    if yaml and json:
        raise UsageError("--yaml and --json exclude each other")
    inputs.choice("effort", effort, ("quick", "full"))
    found = registry.detect(device, api.catalogue(), effort, inputs.peaks_path())
    if json:
        answer_json(target_data(found.target) | {"measured": found.measured})
    elif yaml:
        answer(target_yaml(found.target))
    else:
        _describe(found.target, found.operations)


def _describe(target: Target, operations: dict[str, int]) -> None:
    answer(f"{target.summary or target.name}: {target.isa}, {target.cores} cores, {target.clock_hz / 1e9:.2f} GHz")
    answer("features  " + " ".join(sorted(target.features)))
    rows = []
    for m in target.memories:
        bandwidth = f"{m.bandwidth_bytes_per_s / 1e9:.0f} GB/s" if m.bandwidth_bytes_per_s else "-"
        size = f"{m.bytes / 2**20:.0f} MiB" if m.bytes >= 2**20 else f"{m.bytes / 2**10:.0f} KiB"
        rows.append((m.name, size, bandwidth, m.shared_by))
    table(("memory", "size", "bandwidth", "shared by"), rows)
    measured = [
        (name, f"{rate:.2f}", f"{rate * target.clock_hz * operations[name] / 1e9:.0f} GOP/s")
        for name, rate in target.rates.items()
        if name in operations
    ]
    if measured:
        table(("instruction", "per cycle", "peak of one core"), measured)
    classes = [(name, f"{rate:.2f}") for name, rate in target.rates.items() if name not in operations]
    if classes:
        table(("class of operations", "per cycle"), classes)
