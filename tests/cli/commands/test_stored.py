"""`show`, `trials`, `studies` and `export` of a finished study."""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import NAME, Cli

from autosched.store import read_schedule, read_trials

COMPILER = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)


@pytest.mark.slow
def test_show_has_schedule_loops_and_code(tuned: Cli) -> None:
    everything = tuned("show", NAME).out
    tuned = tuned.near()
    for view in ("schedule", "c"):
        assert tuned("show", NAME, "--as", view).out.strip() in everything
    loops = tuned("show", NAME, "--as", "loops").out
    assert loops[loops.index("\nbuffers") :].strip() in everything
    assert len(re.findall(r"^ +block_i +=", everything, re.M)) == 1  # a schedule is told once
    assert "define " in tuned("show", NAME, "--as", "llvm").out
    assert "main(" in tuned("show", NAME, "--as", "loops").out
    key = json.loads(tuned("show", NAME, "--as", "key").out)
    assert {"program", "target", "device", "intrinsics", "spaces"} <= set(key)
    proof = tuned("show", NAME, "--as", "proof").out
    for certificate in tuned("show", NAME, "--json").json["certificates"]:
        assert all(f"  {o['part']}: {o['statement']} ({o['method']})" in proof for o in certificate["obligations"])
    assert "scalar code" in proof or "body: one step adds the same value" in proof


@pytest.mark.slow
def test_proofs_of_a_gpu_kernel_are_shown(cli: Cli) -> None:
    cli = cli.near()
    sizes = ["-D", "m=64", "-D", "n=64", "-D", "k=64", "-D", "a=bf16", "-D", "b=bf16", "-D", "acc=f32"]
    where = ["-t", "nvidia-h200", "-d", "simulator", "-i", "cuda/mma.m16n8k16.bf16*"]
    tuned = cli("tune", "matmul", *sizes, *where, "-n", 1, "--json").json
    assert "shared memory" in {p["operand"] for p in tuned["best"]["proofs"]}
    assert all(p["holds"] > 0 and p["refuted"] == p["unknown"] == 0 for p in tuned["best"]["proofs"])
    name = tuned["study"]
    text = cli("show", name, "--as", "proof").out
    assert "body: one step adds the same value" in text
    assert "a: addresses are in range (" in text
    assert "REFUTED" not in text
    proofs = cli("show", name, "--json").json["shared_memory"]
    assert {p["holds"] for p in proofs} == {True}
    assert {p["operand"] for p in proofs} >= {"a", "b"}
    cuda = cli("show", name, "--as", "cuda").out
    assert "__global__ void" in cuda
    assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" in cuda
    assert cuda.strip() in cli("show", name).out


def test_cuda_is_for_cuda(tuned: Cli) -> None:
    assert "is no CUDA target" in tuned.near()("show", NAME, "--as", "cuda", status=2).err


def test_show_of_one_trial(tuned: Cli) -> None:
    tuned = tuned.near()
    trials = tuned("trials", NAME, "--json").json
    found = tuned("show", NAME, "--trial", 3, "--json").json
    assert found["trial"]["schedule"] == next(t["schedule"] for t in trials if t["number"] == 3)
    assert "no trial 99" in tuned("show", NAME, "--trial", 99, status=2).err


@pytest.mark.slow
def test_trials_and_studies_as_tables_and_json(tuned: Cli) -> None:
    (study,) = tuned("studies", "--json").json
    assert study["study"].startswith(NAME)
    assert study["trials"] == {"done": 8, "failed": {}}
    tuned = tuned.near()
    assert NAME in tuned("studies").out
    trials = tuned("trials", NAME, "--json").json
    assert [t["number"] for t in trials if t["round"] == "search"] == list(range(1, 9))
    assert len(tuned("trials", NAME).out.splitlines()) == 1 + len(trials)
    shown = tuned("show", NAME, "--json").json["trial"]["measurement"]["time_s"]
    assert study["best_s"] == shown  # of the final round, for both


@pytest.mark.slow
def test_the_beginning_of_a_name_must_be_clear(cli: Cli) -> None:
    cli = cli.near()
    for m in (8, 9):
        cli("tune", "matmul", "-D", f"m={m}", "-D", "n=8", "-D", "k=8", "-n", 1, "-q", "-s", "random")
    assert "2 studies begin with 'matmul'" in cli("show", "matmul", status=2).err
    assert cli("trials", "matmul-m9", "--json").json
    assert "there is no study 'conv'" in cli("show", "conv", status=2).err


def test_no_store_yet_is_no_study(cli: Cli) -> None:
    assert cli.near()("studies", "--json").json == []
    assert not list(cli.folder.iterdir())


@pytest.mark.slow
def test_a_row_that_means_something_else_now_is_not_passed_off_as_what_was_measured(tuned: Cli, tmp_path: Path) -> None:
    cli = replace(tuned.near(), folder=tmp_path)
    kept = tmp_path / "kept.db"
    shutil.copy(tuned.folder / "studies.db", kept)
    for moved in ("row + 1", "row + 1000000000000000"):
        with contextlib.closing(sqlite3.connect(kept)) as store, store:
            store.execute(f"UPDATE trial SET row = {moved}")
        for command in (("show", NAME), ("export", NAME, "-o", "kernel.c")):
            assert "another version of the space" in cli(*command, "--store", kept, status=2).err
    assert not list(tmp_path.glob("kernel*"))
    cli("report", NAME, "-o", "kernel.html", "--store", kept)
    assert "another version of the space" in (tmp_path / "kernel.html").read_text()


def test_export_of_schedule_and_trials_reads_back(tuned: Cli, tmp_path: Path) -> None:
    tuned = tuned.near()
    tuned("export", NAME, "-o", tmp_path / "best.json")
    key, best = read_schedule(tmp_path / "best.json")
    assert key == json.loads(tuned("show", NAME, "--as", "key").out)
    assert best.measurement.ok
    assert tuned("export", NAME, "-o", tmp_path / "all.jsonl", "--json").json["files"] == [str(tmp_path / "all.jsonl")]
    record, trials = read_trials(tmp_path / "all.jsonl")
    assert record.name.startswith(NAME)
    assert len(trials) == len(tuned("trials", NAME, "--json").json)


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_exported_c_computes_the_product(tuned: Cli, tmp_path: Path) -> None:
    """Built and called as the header says, and by nothing else: flags, buffers, preparation, argument order."""
    tuned("export", NAME, "-o", tmp_path / "gemm.c")
    header = (tmp_path / "gemm.h").read_text()
    flags = re.search(r"Build: (.*)", header)
    assert flags
    command = [str(COMPILER), *flags[1].split(), "-Wall", "-Werror", "-shared", "-fPIC", "gemm.c", "-o", "gemm.so"]
    subprocess.run(command, cwd=tmp_path, check=True)

    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (48, 64), dtype=np.uint8)
    b = rng.integers(-128, 128, (64, 32), dtype=np.int8)
    c = np.full((48, 32), 99, np.int32)
    arrays: dict[str, np.ndarray] = {"A": a, "B": b, "C": c}
    for name, size in re.findall(r"GEMM_(\w+)_BYTES = (\d+)", header):
        arrays[name] = np.zeros(int(size), np.uint8)
    upper = {k.upper(): v for k, v in arrays.items()}
    library = ctypes.CDLL(str(tmp_path / "gemm.so"))
    prototypes = re.findall(r"^void (\w+)\(([^)]*)\);", header, re.MULTILINE)
    assert prototypes[-1][0] == "gemm", "preparations come first"
    for function, parameters in prototypes:
        names = [p.split()[-1].lstrip("*") for p in parameters.split(",")]
        getattr(library, function)(*(upper[n.upper()].ctypes.data_as(ctypes.c_void_p) for n in names))
    assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_exported_library_and_self_test(tuned: Cli, tmp_path: Path) -> None:
    more = ("--shared", "--self-test", "--torch", "--json")
    files = tuned.near()("export", NAME, "-o", tmp_path / "gemm.c", *more).json["files"]
    assert [Path(f).name for f in files] == ["gemm.c", "gemm.h", "gemm_test.c", "gemm_torch.py", "gemm.so"]
    assert ctypes.CDLL(str(tmp_path / "gemm.so")).gemm
    build = re.search(r"Build: cc (.*) \*/", (tmp_path / "gemm_test.c").read_text())
    assert build
    subprocess.run([str(COMPILER), *build[1].split()], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "gemm_test"], capture_output=True, text=True, check=True)
    assert done.stdout == "ok\n"


def test_export_says_what_it_lacks(tuned: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = tuned.near()
    assert "goes with C" in tuned("export", NAME, "-o", tmp_path / "best.json", "--shared", status=2).err
    assert "goes with C" in tuned("export", NAME, "-o", tmp_path / "best.json", "--torch", status=2).err
    assert "Python has one" in tuned("export", NAME, "-o", tmp_path / "ctypes.c", "--torch", status=2).err
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "cannot run no-such-compiler" in tuned("export", NAME, "-o", tmp_path / "gemm.c", "--shared", status=3).err
    monkeypatch.setenv("CC", "false")
    assert "false cannot build gemm.c" in tuned("export", NAME, "-o", tmp_path / "gemm.c", "--shared", status=3).err


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("file", "said"), [
    ("gemm.txt", "no format for .txt"),
    ("gemm", "no format for a name without an ending"),
    ("2gemm.c", "cannot name a C function"),
    ("int.c", "'int' is taken"),
    ("f32x16.c", "as in -o f32x16_.c"),
    ("printf.c", "'printf' is taken"),
    ("environ.c", "as in -o environ_.c"),
    ("template.c", "as in -o template_.c"),
    ("stdint.c", "stdint.h is a header of the system"),
    ("no/such/gemm.c", "cannot write"),
    ("no/such/all.jsonl", "cannot write"),
])  # fmt: skip
def test_export_says_what_it_cannot_write(tuned: Cli, file: str, said: str) -> None:
    assert said in tuned.near()("export", NAME, "-o", file, status=2).err


def test_a_gpu_s_kernel_is_no_code_for_a_cpu(cli: Cli) -> None:
    cli = cli.near()
    cli("tune", "elementwise", "-D", "m=8", "-D", "n=8", "-t", "nvidia-h200", "-d", "simulator", "-n", 1, "-q")
    for view in ("c", "llvm", "asm"):
        said = cli("show", "elementwise", "--as", view, status=2).err
        assert "nvidia-h200 is a GPU" in said
        assert "help: --as cuda" in said
    said = cli("export", "elementwise", "-o", "add.c", status=2).err
    assert "help: -o add.cu" in said
    assert not (cli.folder / "add.c").exists()
