"""Random programs of reductions over rows (`rows`): whatever is proved has to compute what the program does, and a
counterexample has to differ.

    python -m tests.fuzz.rewritten --programs 5000

Every rewrite is run: in f64, where it has to agree with the program as far as the program's own sensitivity to its
inputs lets one tell; in the program's types on rows that hurt, where each result has to be a number, infinite or none
as the program's is, and as close to exact arithmetic as the certificate says (`support.rewritten.certified`).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

from fuzz.rows import program  # noqa: E402
from support.rewritten.agreement import Options, wrong_numbers, wrong_reals  # noqa: E402
from support.rewritten.counterexamples import shows  # noqa: E402
from support.rewritten.rows_of_kinds import HARD, inputs  # noqa: E402

import autosched  # noqa: E402
from autosched import ir  # noqa: E402
from autosched.errors import AutoschedError  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.ir.rewrites.online.search import online  # noqa: E402
from autosched.ir.rewrites.verdict import RewriteVerdict  # noqa: E402
from autosched.ir.rewrites.versions import separate_versions  # noqa: E402

LONGEST = 30.0
"""Seconds that the rewrites of one program may take."""


@dataclass
class Found:
    """What was wrong, by the program's number; and counts."""

    wrong: list[tuple[int, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def check(seed: int, found: Found) -> None:
    """One program with all of its rewrites."""
    before = ir.parse(program(seed))
    found.counts["programs"] += 1
    how = Options.drawn(seed)
    for numerics in ("rescaled", "real"):
        start = time.process_time()
        try:
            verdicts = autosched.rewrites(before, numerics=numerics, **vars(how))
            seen = {str(v.after) for v in verdicts}
            single = separate_versions(before)
            real = numerics == "real"
            uncut = [*online(single.program, real, **vars(how), one_loop=True)]
            uncut += online(single.program, real, **vars(how), branches=True, skips=False)
            uncut = list(map(single.told, uncut))
            verdicts += [v for v in uncut if v.after is not None and str(v.after) not in seen]
        except Exception:
            found.wrong.append((seed, f"{how}: {traceback.format_exc(limit=-4)}"))
            return
        if time.process_time() - start > LONGEST:
            found.wrong.append((seed, f"{how}: took {time.process_time() - start:.1f} s"))
        for v in verdicts:
            if v.after is None:
                if numerics == "rescaled":
                    assert v.reason is not None
                    found.counts[f"refused: {v.reason.code}"] += 1
                    found.counts["counterexamples"] += v.reason.counterexample is not None
                    found.wrong += [(seed, f"{v.name}: {w}") for w in wrong_refusal(before, v)]
            elif numerics == "rescaled" or v.numerics == "real":
                found.counts[f"accepted: {v.name} at {v.numerics}"] += 1
                found.wrong += [(seed, f"{v.name} at {v.numerics}, {how}: {w}") for w in wrong_in(before, v, how, seed)]


def wrong_refusal(before: Program, v: RewriteVerdict) -> list[str]:
    """A counterexample that shows nothing."""
    assert v.reason is not None
    shown = v.reason.counterexample
    if shown is None or "data" not in shown:
        return []
    wrong = shows(before, v.reason.stage, shown)
    return [f"{v.reason.code} at {v.reason.stage}: {shown}: {wrong}"] if wrong else []


def wrong_in(before: Program, v: RewriteVerdict, how: Options, seed: int) -> list[str]:
    """How a rewritten program differs by more than it may."""
    assert v.after is not None
    try:
        v = replace(v, after=ir.parse(str(v.after)))
    except AutoschedError as why:
        return [f"its text does not parse: {why}"]
    assert v.after is not None
    if v.after.inputs != before.inputs or v.after.outputs != before.outputs:
        return [f"inputs and outputs are {v.after.inputs}, {v.after.outputs}"]
    r = Random(seed)
    for kind in ("random", "ties", "rising", "falling"):
        wrong = wrong_reals(before, v, inputs(before, kind, seed), r.choice([0.5, 1.0, -0.5]))
        if wrong:
            return [f"in f64, {kind}: {wrong}"]
    if v.numerics == "real":
        return []
    for kind in ("random", *HARD):
        if kind in ("greatest", "denormal") and before.scalars["c"].dtype.name == "f64":
            continue  # nothing is more exact than the program
        if kind in ("greatest", "offset", "wide", "masked by a number") and v.because:
            continue  # 0 exp(x) of a masked element, where exp(x) overflows
        data = inputs(before, kind, seed)
        wrong = wrong_numbers(before, v, how, data, r.choice([0.5, 0.5, 1.0, -0.5, 0.0, 0.3, math.inf, math.nan]))
        if wrong:
            return [f"{kind}: {wrong}"]
    return []


def search(first: int, programs: int, seconds: float = math.inf, live: bool = False) -> Found:
    """Checks programs one after the other, until the processor time is used up."""
    found = Found()
    begun = time.process_time()
    for seed in range(first, first + programs):
        if time.process_time() - begun > seconds:
            break
        before = len(found.wrong)
        check(seed, found)
        for at, text in found.wrong[before:] if live else ():
            print(f"WRONG, program {at}: {text}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seconds", type=float, default=math.inf, help="processor time after which it stops")
    asked = parser.parse_args()
    found = search(asked.first, asked.programs, asked.seconds, True)
    for what, n in sorted(found.counts.items()):
        print(f"{n:8} {what}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
