"""How well the clock and the learned model rank real schedules: on the recorded spaces, without a device.

    python -m benchmarks.model_quality                   # all spaces, some minutes
    python -m benchmarks.model_quality --only gemm_f32_512 --json out.json
    python -m benchmarks.model_quality --markdown        # what is kept, as docs/benchmarks.md has it

Clock and features are today's, rows and times those of `benchmarks/recorded`. Clock and model are judged on the rows
that neither has seen, after 64 that were drawn at random, and after 64 that `tune` would choose.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from autosched.report.models import models_compared
from autosched.search.evaluate.model_quality import Evaluated, MeanInterval, evaluate
from autosched.search.evaluate.recorder import rescored
from autosched.store.replay_file import read_replay
from benchmarks.common.provenance import MODELS, made, said
from benchmarks.cpu import RESULTS
from benchmarks.record import ANEW, FOLDER, HELD_OUT, SPACES

ASKED = ("gemm_f32_512", "conv_f32_28x28x128", f"depthwise_f32_56x56x128{ANEW}")
"""The recordings that the figures below are asked of."""
MEASURED = 64
CHOSEN = ("random", "auto")
CLOCK = {"spearman": 0.8}
MODEL = {"best_1": 0.95, "best_8": 0.98}
"""What is asked of the clock alone, and of the model after MEASURED rows."""
SCHEMA = "autosched/benchmarks/model_quality/1"
SHOWN = ("spearman", "best_1", "best_8")
LABELS = {
    "gemm_f32_512": "f32 512x512x512 (3,739,872)",
    "conv_f32_28x28x128": "3x3 convolution 28x28x128 (1,737,984)",
    f"depthwise_f32_56x56x128{ANEW}": "depthwise 3x3 56x56x128 (577,932)",
    "gemm_u8s8_384x768x640": "u8·s8 384x768x640",
    "conv_f32_14x14x256": "3x3 convolution 14x14x256",
    "depthwise_f32_56x56x144_s2": "depthwise with stride 2 56x56x144",
}


def judged(
    names: Sequence[str], folder: Path, seeds: range, tell: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """The figures of these spaces by name, and over all of them."""
    found: dict[str, Any] = {}
    spaces: dict[str, list[list[Evaluated]]] = {chosen: [] for chosen in CHOSEN}
    for name in names:
        recording, lost = rescored(read_replay(folder / f"{name}.json.gz"))
        (clock,) = evaluate(recording, ["analytic"], 0, seeds=[0])
        tell(f"{name}: {len(recording)} rows" + (f" ({lost} have no place any more)" if lost else ""))
        tell(f"  clock, all rows  {line(clock.figures, CLOCK)}")
        after = {}
        for chosen in CHOSEN:
            ours, model = evaluate(recording, ["analytic", "xgb"], MEASURED, chosen, seeds)
            spaces[chosen].append([ours, model])
            tell(f"  clock, the others than {MEASURED} that {chosen} chose  {line(ours.figures, {})}")
            tell(f"  model, after these {line(model.figures, MODEL)}")
            after[chosen] = {m.model: _plain(m.figures) for m in (ours, model)}
        found[name] = {"rows": len(recording), "lost": lost, "clock": _plain(clock.figures), "after": after}
    together = [models_compared(each) for each in spaces.values()] if len(names) > 1 else []
    for one in together:
        tell("\n".join([f"{one.spaces} spaces, rows that {one.chosen} chose", *one.told()]))
    head = {"schema": SCHEMA, "made": made(MODELS), "seeds": len(seeds), "first": seeds.start, "measured": MEASURED}
    return {**head, "spaces": found, "together": [one.plain() | {"told": one.told()} for one in together]}


def _plain(figures: dict[str, MeanInterval]) -> dict[str, list[float | None]]:
    """Mean and ends, to four digits."""
    ends = {name: (i.mean, i.low, i.high) for name, i in figures.items()}
    return {name: [None if x != x else round(x, 4) for x in of] for name, of in ends.items()}


def markdown(kept: dict[str, Any]) -> str:
    """The table of docs/benchmarks.md, and what models differ by over all spaces."""
    heads = ["space (legal rows)", "recorded", "clock: Spearman", "best@1", "best@8"]
    heads += ["model: Spearman", "best@1", "best@8"]
    lines = [heads, ["---"] * len(heads)]
    for name, space in kept["spaces"].items():
        clock, model = (space["after"]["random"][m] for m in ("analytic", "xgb"))
        figures = [_said(of[n], whole) for of, whole in ((clock, False), (model, True)) for n in SHOWN]
        lines.append([LABELS.get(name, name), f"{space['rows']:,}", *figures])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    over = [f"after {kept['measured']} rows that `{one['chosen']}` chose: {one['told'][0]}" for one in kept["together"]]
    return "\n".join([table, "", f"Over the {len(kept['spaces'])} spaces:", "", *(f"- {line}" for line in over)])


def _said(figure: Sequence[float | None], whole: bool) -> str:
    mean, low, high = figure
    interval = f" [{low:.3f}, {high:.3f}]" if whole and low is not None else ""
    return "-" if mean is None else f"{mean:.3f}{interval}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.model_quality", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="*", choices=sorted({*ASKED, *SPACES, *HELD_OUT}), metavar="SPACE")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=100, metavar="SEED", help="the first of the seeds")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--json", type=Path, default=RESULTS / "model_quality.json")
    parser.add_argument("--markdown", action="store_true", help="judge nothing, print the table of docs/benchmarks.md")
    options = parser.parse_args(arguments)
    if options.markdown:
        kept = json.loads(options.json.read_text())
        print(f"{markdown(kept)}\n\n{said(kept, MODELS)}")
        return 0
    seeds = range(options.first, options.first + options.seeds)
    found = judged(options.only or [*ASKED, *HELD_OUT], options.folder, seeds, lambda text: print(text, flush=True))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=1) + "\n")
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
