"""`--data` and `--conditions`: what they do, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import Cli

GEMM = """
def gemm(A: u8[8, k], B: const[s8[k, 32]], C: s32[8, 32], *, k=64):
    for i, j in grid(8, 32):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
CLAMPING = "x86/vpmaddubsw.vpmaddwd.ymm"
TUNE = ("tune", "gemm.py", "-t", "x86-avx2", "-d", "simulator", "-i", CLAMPING, "-n", 2, "--json")


@pytest.fixture
def here(cli: Cli) -> Cli:
    (cli.folder / "gemm.py").write_text(GEMM)
    return cli.near()


def saved(folder: Path, name: str, values: np.ndarray) -> str:
    np.save(folder / name, values)
    return f"B={name}"


def test_match_with_data(here: Cli) -> None:
    asked = ("match", "gemm.py", "-i", CLAMPING, "--json")
    assert here(*asked).json["verdict"] == "conditional"
    given = saved(here.folder, "w.npy", np.full((64, 32), -64, np.int8))
    found = here(*asked, "--data", given).json
    assert found["verdict"] == "match"
    assert "B holds the data given (sha256 " in json.dumps(found["mappings"][0]["assumptions"])
    given = saved(here.folder, "w.npy", np.full((64, 32), -65, np.int8))
    assert here(*asked, "--data", given).json["verdict"] == "conditional"


@pytest.mark.slow
def test_tune_says_what_it_checks_and_relies_on(here: Cli) -> None:
    guard = here(*TUNE).json["best"]
    assert guard["conditions"] == [{"kind": "range", "text": "-64 <= B <= 64", "tight": True}]
    assert "relies_on" not in guard
    assert guard["otherwise"]["predicted_ratio"] > 1
    said = here(*TUNE[:-1], "--fresh").out
    assert f"otherwise runs {guard['otherwise']['plan']}, " in said
    assert "x as slow as this by the clock" in said
    assume = here(*TUNE, "--conditions", "assume").json["best"]
    assert assume["relies_on"] == ["-64 <= B <= 64"]
    assert not {"conditions", "otherwise"} & set(assume)
    assert here(*TUNE, "--conditions", "refuse").json["best"]["intrinsic"] is None
    given = saved(here.folder, "w.npy", np.full((64, 32), 3, np.int8))
    data = here(*TUNE, "--data", given).json
    assert "conditions" not in data["best"]
    (held,) = data["best"]["relies_on"]
    assert held.startswith("B holds the data of SHA-256 ")
    names = {s["study"] for s in here("studies", "--json").json}
    assert len(names) == 4, "each has a study of its own"
    text = here("show", data["study"]).out  # the values are not at hand any more
    assert f"relies on: {held}" in text
    (guarded,) = (n for n in names if "if -64 <= B <= 64" in here("show", n).out)
    assert "else:" in here("show", guarded).out


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("B", "not of the form NAME=FILE.npy"),
        ("B=none.npy", "cannot read the file: No such file"),
        ("B=gemm.py", "no .npy file of a plain array"),
        ("B=objects.npy", "no .npy file of a plain array: Object arrays cannot be loaded"),
        ("B=archive.npz", "no .npy file of a plain array"),
        ("B=wide.npy", "data for B is int32[64, 32], B is int8[64, 32]"),
        ("B=long.npy", "data for B is int8[65, 32], B is int8[64, 32]"),
        ("A=long.npy", "data for A, which is not const"),
        ("W=long.npy", "unknown tensor 'W'"),
    ],
)
@pytest.mark.parametrize("command", ["match", "tune"])
def test_refused_data(here: Cli, command: str, data: str, said: str) -> None:
    np.save(here.folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.savez(here.folder / "archive.npz", B=np.zeros((64, 32), np.int8))
    np.save(here.folder / "wide.npy", np.zeros((64, 32), np.int32))
    np.save(here.folder / "long.npy", np.zeros((65, 32), np.int8))
    assert said in " ".join(here(command, "gemm.py", "--data", data, status=2).err.split())


def test_twice_and_unknown_ways(here: Cli) -> None:
    given = saved(here.folder, "w.npy", np.zeros((64, 32), np.int8))
    assert "given twice" in here("match", "gemm.py", "--data", given, "--data", given, status=2).err
    said = here("tune", "gemm.py", "--conditions", "gaurd", status=2).err
    assert "did you mean 'guard'?" in said
