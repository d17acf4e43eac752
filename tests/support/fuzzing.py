"""What fuzzers of numbered programs share: the search through numbers, and the command."""

from __future__ import annotations

import argparse
import math
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias

Found: TypeAlias = tuple[Counter[str], list[str]]
"""Counts, and what was wrong."""


def searched(
    wrong_in: Callable[[int, Counter[str]], Iterable[str]], first: int, programs: int, seconds: float = math.inf
) -> Found:
    """What `wrong_in` says of programs from number `first` on, until the processor time is used up."""
    count, wrong, begun = Counter[str](), list[str](), time.process_time()
    for seed in range(first, first + programs):
        if time.process_time() - begun > seconds:
            break
        count["programs"] += 1
        try:
            wrong += [f"{seed}: {text}" for text in wrong_in(seed, count)]
        except Exception:  # of any kind: it is what we look for
            wrong.append(f"{seed}: {traceback.format_exc()}")
    return count, wrong


def command(doc: str | None, search: Callable[[int, int, float], Found]) -> int:
    """The command line of a fuzzer; 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=math.inf, help="processor time after which it stops")
    asked = parser.parse_args()
    count, wrong = search(asked.first, asked.programs, asked.seconds)
    print(dict(count), *wrong, sep="\n")
    return 1 if wrong else 0
