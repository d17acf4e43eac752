"""TVM MetaSchedule and autosched on the same programs, with the same numbers of trials and over the same seeds.

    python -m benchmarks.metaschedule                      # everything: hours; the same command continues
    python -m benchmarks.metaschedule --only f32_128 --trials 8 --seeds 1

TVM lives in an environment of its own (`.venv-tvm`, made on the first run, versions pinned below); both sides use one
core. The best kernels of all seeds of a case are timed in turn, each in its process, the others waiting, so that how
far seeds lie apart does not mix in how busy the machine was. f32 is plain (TVM reads B as it lies, and so do we); for
int8 both sides have their weights laid out before the run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.common.answering import Answering, kernel
from benchmarks.common.sampling import quartiles
from benchmarks.common.tuning import Request, tune
from benchmarks.cpu import RESULTS, machine

PINNED = ("apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1")
"""The newest ffi ends MetaSchedule with a crash."""
NEEDED = ("numpy", "cloudpickle", "psutil", "xgboost", "scipy")
WORKER = Path(__file__).with_name("metaschedule_worker.py")
ROUNDS = 25


def _square(n: int, **types: Any) -> dict[str, Any]:
    return {"m": n, "n": n, "k": n, **types}


OURS: dict[str, tuple[str, dict[str, Any], bool]] = {
    **{f"f32_{n}": ("matmul", _square(n, t="f32"), False) for n in (128, 512, 1024)},
    **{f"int8_{n}": ("matmul", _square(n, a="u8", b="s8"), True) for n in (128, 512, 1024)},
    "conv_56x56x64": ("conv2d", {}, False),
}
"""Workload, sizes, and whether constants are packed, by the worker's names of cases."""
DEFAULT = ("f32_512", "f32_1024", "int8_512", "int8_1024", "conv_56x56x64")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.metaschedule", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="*", choices=sorted(OURS), default=DEFAULT)
    parser.add_argument("--trials", nargs="*", type=int, default=[64, 256])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="interleaved rounds of a comparison")
    parser.add_argument("--python", type=Path, help="an interpreter that has TVM (default: one is made in .venv-tvm)")
    parser.add_argument("--json", type=Path, default=RESULTS / "tvm.json")
    options = parser.parse_args(arguments)
    python = options.python or environment(Path(".venv-tvm"))
    rows = kept(options.json)
    for trials in options.trials:
        for case in options.only:
            keys = [key_of(case, trials, seed) for seed in range(options.seeds)]
            if all(key in rows for key in keys):
                continue
            found = run(str(python), case, trials, options.seeds, options.rounds)
            rows |= dict(zip(keys, found, strict=True))
            print("\n".join(line(key, rows[key]) for key in keys), flush=True)
            write(options.json, rows)
    print("\n" + "\n".join(said(s) for s in summaries(rows)))
    return 0


def environment(folder: Path) -> Path:
    """The interpreter of a virtual environment with the pinned TVM."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {PINNED[0]} into {folder} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PINNED, *NEEDED], check=True)
    return python


def key_of(case: str, trials: int, seed: int) -> str:
    return f"{case} trials={trials} seed={seed}"


def run(python: str, case: str, trials: int, seeds: int, rounds: int) -> list[dict[str, Any]]:
    """A row a seed: both tuned from a standing start, then the kernels of all seeds timed in turn."""
    workload, sizes, packed = OURS[case]
    rows: list[dict[str, Any]] = []
    pairs: dict[int, tuple[Answering, Answering]] = {}
    with tempfile.TemporaryDirectory(prefix="autosched-tvm-") as folder, ExitStack() as stack:
        for seed in range(seeds):
            print(f"… {key_of(case, trials, seed)}", file=sys.stderr, flush=True)
            store = str(Path(folder) / f"{seed}.db")
            ours = tune(Request(workload, sizes, store, packed, 1, trials, seed, timeout_s=3600.0))
            asked = {"case": case, "trials": trials, "seed": seed, "folder": str(Path(folder) / f"tvm{seed}")}
            theirs = stack.enter_context(Answering([python, str(WORKER), json.dumps(asked)]))
            tvm = theirs.answer()
            rows.append({"case": case, "trials": trials, "seed": seed, "tvm": tvm, "ours": asdict(ours)})
            if not tvm.get("error") and ours.study:
                mine = stack.enter_context(kernel(store, ours.study))
                mine.answer()
                pairs[seed] = theirs, mine
        samples = [{seed: (theirs.ask("time"), mine.ask("time")) for seed, (theirs, mine) in pairs.items()}
                   for _ in range(rounds)]  # fmt: skip
    for seed in pairs:
        taken = [s[seed] for s in samples]
        rows[seed]["tvm"]["seconds"] = quartiles([t for t, _ in taken])
        rows[seed]["ours_seconds"] = quartiles([o for _, o in taken])
        rows[seed]["ratio"] = quartiles([t / o for t, o in taken])
    return rows


def line(key: str, row: dict[str, Any]) -> str:
    tvm, ours = row["tvm"], row["ours"]
    if "ratio" not in row:
        return f"{key}: TVM {tvm.get('error') or 'fine'}; ours {ours['error'] or 'fine'}"
    return (
        f"{key}: {row['ratio'][1]:.3f}x TVM's speed; tuning {ours['wall_s']:.1f} s against {tvm['wall_s']:.1f} s "
        f"({tvm['failed']} of {tvm['trials']} of TVM's failed)"
    )


def summaries(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """By case and trials: medians over the seeds, and how far the seeds lie apart ((most - least) / median)."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows.values():
        groups.setdefault((row["case"], row["trials"]), []).append(row)
    found = []
    for (case, trials), all_of in groups.items():
        fine = [r for r in all_of if "ratio" in r]
        entry: dict[str, Any] = {"case": case, "trials": trials, "seeds": len(fine), "failed": len(all_of) - len(fine)}
        if fine:
            entry |= {
                "ratio": statistics.median(r["ratio"][1] for r in fine),
                "tuning_ratio": statistics.median(r["ours"]["wall_s"] / r["tvm"]["wall_s"] for r in fine),
                "apart": apart([r["ours_seconds"][1] for r in fine]),
                "apart_tvm": apart([r["tvm"]["seconds"][1] for r in fine]),
            }
        found.append(entry)
    return found


def apart(seconds: list[float]) -> float:
    return (max(seconds) - min(seconds)) / statistics.median(seconds)


def said(s: dict[str, Any]) -> str:
    head = f"{s['case']}, {s['trials']} trials, {s['seeds']} seeds"
    if "ratio" not in s:
        return f"{head}: no result"
    return (
        f"{head}: {s['ratio']:.3f}x TVM's speed (asked 1.00), in {s['tuning_ratio']:.3f} of its time (asked 0.10); "
        f"seeds lie {s['apart']:.1%} apart (asked 2 %), TVM's {s['apart_tvm']:.1%}"
    )


def kept(path: Path) -> dict[str, dict[str, Any]]:
    """Rows of an earlier run on this machine with this version, but for those without a result on either side."""
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["machine"] != machine():
        raise SystemExit(f"{path} is of another machine or version: give another --json")
    return {key: row for key, row in data["rows"].items() if "ratio" in row}


def write(path: Path, rows: dict[str, dict[str, Any]]) -> None:
    """All rows so far, in one step."""
    data = {"schema": "autosched/benchmarks/tvm/1", "machine": machine(), "pinned": PINNED,
            "summaries": summaries(rows), "rows": rows}  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, path)


if __name__ == "__main__":
    raise SystemExit(main())
