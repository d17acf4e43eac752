"""`tune` and `show` say of a simulated trial how long each unit was busy, and which one bounds it; `--noise`."""

from __future__ import annotations

import pytest
from cli.conftest import Cli
from support.chips import FOLDER

from autosched.report.units import units_lines

SIZES = [x for d in ("m=64", "n=64", "k=64", "a=s8", "b=s8", "acc=s32") for x in ("-D", d)]


def test_units_and_their_use_are_shown(cli: Cli) -> None:
    near = cli.near()
    ran = near("tune", "matmul", *SIZES, "-t", "gemmini", "-d", "simulator", "-n", "3")
    (line,) = (line for line in ran.out.splitlines() if line.startswith("units "))
    assert all(f"{unit} " in line for unit in ("array", "bus", "scratchpad", "accumulators", "start"))
    assert "%)" in line
    shown = near("show", "--as", "schedule").out
    assert line.split(maxsplit=1)[1] in shown
    found = near("tune", "matmul", *SIZES, "-t", "gemmini", "-d", "simulator", "-n", "3", "--json").json["best"]
    units = found["units"]
    assert set(units["array"]) == {"busy_s", "use"}
    assert units["array"]["busy_s"] / units["array"]["use"] == pytest.approx(found["time_s"])  # no noise
    assert near("show", "--json").json["units"] == units


def test_statements_of_a_chip_are_shown_with_their_instructions(cli: Cli) -> None:
    near, chips = cli.near(), FOLDER.resolve()
    sizes = ("-D", "m=16", "-D", "n=16")
    described = ("-t", str(chips / "systolic.yaml"), "--intrinsics", str(chips / "systolic_isa.yaml"))
    asked = ("tune", f"{chips / 'programs.py'}:softmax", *sizes, *described, "-d", "simulator", "-n", "2")
    out = near(*asked).out
    assert "as fast as the loops as written" not in out  # nothing there runs them
    does = [line for line in out.splitlines() if "systolic/rowmax.f32" in line and "busiest" in line]
    assert does
    assert does[0].startswith("does   M ")
    assert does[0].split(maxsplit=1)[1] in near("show", "--as", "schedule").out
    found = near(*asked, "--json").json
    assert [s["writes"] for s in found["best"]["statements"]] == [["M"], ["E"], ["S"], ["Y"]]
    assert near("show", "--json").json["statements"] == found["best"]["statements"]
    assert found["baseline"] is None


@pytest.mark.slow
def test_noise_is_a_flag_of_the_simulator(cli: Cli) -> None:
    near = cli.near()
    asked = ("tune", "matmul", "-D", "m=32", "-D", "n=32", "-D", "k=32", "-t", "x86-avx512", "-n", "2", "--json")
    for noise, some in (("0", False), ("5%", True)):
        study = near(*asked, "-d", "simulator", "--noise", noise).json["study"]
        assert (near("trials", study, "--json").json[0]["measurement"]["spread"] > 0) == some
    for noise in ("1", "-1%", "loud"):
        assert "not a relative deviation" in near(*asked, "-d", "simulator", f"--noise={noise}", status=2).err


def test_what_bounds_a_trial_is_a_unit_or_waiting() -> None:
    assert units_lines({}) == []
    (line,) = units_lines({"model_s": {"array": 9e-6, "bus": 2e-6, "total": 1e-5}})
    assert line == "units bound by array: array 9.00 µs (90%)  bus 2.00 µs (20%)"
    (line,) = units_lines({"model_s": {"array": 5e-6, "bus": 4e-6, "total": 1e-5}})
    assert line.startswith("units no unit is busy throughout: they wait for each other: array 5.00 µs (50%)")
