"""Record spaces: uniform samples of what `tune` searches, measured on this machine and kept as replay files.

    python -m benchmarks.record                                  # all spaces, one to six minutes each
    python -m benchmarks.record --only gemm_f32_512 --rows 4000

A file is self-contained (docs/replay.md): `autosched tune PROGRAM -d replay:FILE` searches it, and
`benchmarks.model_quality` judges models on it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from autosched import api
from autosched.search.recorder import RowDone, record
from autosched.search.request import TuneRequest
from autosched.store.replay_file import write_replay

FOLDER = Path(__file__).with_name("recorded")
SPACES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemm_f32_512": ("matmul", {"m": 512, "n": 512, "k": 512}),
    "conv_f32_28x28x128": ("conv2d", {"n": 1, "h": 28, "w": 28, "ci": 128, "co": 128, "t": "f32", "acc": "f32"}),
    "depthwise_f32_56x56x128": ("depthwise_conv2d", {"n": 1, "h": 56, "w": 56, "c": 128}),
}
"""The spaces that the targets of model quality are stated for."""
HELD_OUT: dict[str, tuple[str, dict[str, Any]]] = {
    "gemm_u8s8_384x768x640": ("matmul", {"m": 384, "n": 768, "k": 640, "a": "u8", "b": "s8"}),
    "conv_f32_14x14x256": ("conv2d", {"n": 1, "h": 14, "w": 14, "ci": 256, "co": 256, "t": "f32", "acc": "f32"}),
    "depthwise_f32_56x56x144_s2": ("depthwise_conv2d", {"n": 1, "h": 56, "w": 56, "c": 144, "stride": 2}),
}
"""Other shapes, on which a change of the clock must not make things worse."""
ROWS = {**dict.fromkeys(SPACES, 2048), **dict.fromkeys(HELD_OUT, 512)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(ROWS), default=list(ROWS), metavar="SPACE")
    parser.add_argument("--rows", type=int, help="rows a space (else 2,048, and 512 of held-out shapes)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    target = api.target("native")
    for name in options.only:
        workload, sizes = (SPACES | HELD_OUT)[name]
        request = TuneRequest(api.workload(workload, **sizes), target, device="cpu", seed=options.seed)
        began = time.monotonic()
        created = time.strftime("%Y-%m-%d", time.gmtime())
        recording = record(request, options.rows or ROWS[name], created=created, on_row=_say(name))
        size = write_replay(options.folder / f"{name}.json.gz", recording)
        took = time.monotonic() - began
        print(
            f"\r{name}: {len(recording)} of {recording.legal:,} rows, best {recording.best_s * 1e6:.1f} us, "
            f"{size / 1000:.0f} KB, {took:.0f} s",
            flush=True,
        )
    return 0


def _say(name: str) -> Any:
    def say(done: RowDone) -> None:
        if done.done % 50 == 0:
            print(f"\r{name}: {done.done} of {done.total}", end="", file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    raise SystemExit(main())
