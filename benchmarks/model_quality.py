"""How well the clock and the learned model rank real schedules: on the recorded spaces, without a device.

    python -m benchmarks.model_quality                   # a minute or two
    python -m benchmarks.model_quality --held-out        # the other shapes

Clock and features are today's, rows and times those of `benchmarks/recorded`. Clock and model are judged on the rows
that neither has seen, after 64 that were drawn at random, and after 64 that `tune` would choose.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autosched.search.evaluate.model_quality import MeanInterval, evaluate
from autosched.search.evaluate.recorder import rescored
from autosched.store.replay_file import read_replay
from benchmarks.cpu import RESULTS
from benchmarks.record import ANEW, FOLDER, HELD_OUT, SPACES

ASKED = ("gemm_f32_512", "conv_f32_28x28x128", f"depthwise_f32_56x56x128{ANEW}")
"""The recordings that the figures below are asked of."""
MEASURED = 64
CHOSEN = ("random", "auto")
CLOCK = {"spearman": 0.8}
MODEL = {"best_1": 0.95, "best_8": 0.98}
"""What is asked of the clock alone, and of the model after MEASURED rows."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.model_quality", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="*", choices=sorted({*ASKED, *SPACES, *HELD_OUT}), metavar="SPACE")
    parser.add_argument("--held-out", action="store_true", help="the other shapes instead")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=100, metavar="SEED", help="the first of the seeds")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--json", type=Path, default=RESULTS / "model_quality.json")
    options = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    for name in options.only or (HELD_OUT if options.held_out else ASKED):
        recording, lost = rescored(read_replay(options.folder / f"{name}.json.gz"))
        (clock,) = evaluate(recording, ["analytic"], 0, seeds=[0])
        print(f"{name}: {len(recording)} rows" + (f" ({lost} have no place any more)" if lost else ""))
        print(f"  clock, all rows  {line(clock.figures, CLOCK)}", flush=True)
        seeds = range(options.first, options.first + options.seeds)
        after = {}
        for chosen in CHOSEN:
            ours, model = evaluate(recording, ["analytic", "xgb"], MEASURED, chosen, seeds)
            print(f"  clock, the others than {MEASURED} that {chosen} chose  {line(ours.figures, {})}")
            print(f"  model, after these {line(model.figures, MODEL)}", flush=True)
            after[chosen] = {m.model: {k: asdict(v) for k, v in m.figures.items()} for m in (ours, model)}
        figures = {k: asdict(v) for k, v in clock.figures.items()}
        found[name] = {"rows": len(recording), "lost": lost, "clock": figures, "after": after}
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        head = {"seeds": options.seeds, "first": options.first, "measured": MEASURED}
        options.json.write_text(json.dumps({**head, "spaces": found}, indent=1))
    return 0


def line(figures: dict[str, MeanInterval], asked: dict[str, float]) -> str:
    """Means with their intervals; a figure below what is asked is marked."""
    parts = []
    for name, i in figures.items():
        if i.mean != i.mean:
            continue
        low = name in asked and i.mean < asked[name]
        wide = f" [{i.low:.3f}, {i.high:.3f}]" if i.low < i.high else ""
        parts.append(f"{name} {i.mean:.3f}{wide}{' (asked: ' + str(asked[name]) + ')' if low else ''}")
    return " · ".join(parts)


if __name__ == "__main__":
    raise SystemExit(main())
