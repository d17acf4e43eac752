"""Files of instructions and targets, and exported schedules, changed at random: each is taken, or refused by an error
of ours; a schedule that is taken is legal, and lowers.

`AUTOSCHED_EXAMPLES=20000` tries that many of each.
"""

from __future__ import annotations

import json
import random
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from support.match.examples import EXAMPLES
from support.mutated import mutated
from support.plans import machine, plans_of, small_programs

from autosched.codegen.lower import lower
from autosched.errors import AutoschedError
from autosched.machine.spec import target_from_yaml
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.user_schedules import candidate_of
from autosched.store.exchange import read_schedule
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.emit import llvm_declarations, render_c, render_llvm
from autosched.tensorize.spec.load import load_text

ROOT = Path(__file__).parents[3]
MANY = EXAMPLES or 40


def described(folder: str) -> list[dict[str, Any]]:
    """The files of a folder; of instructions each entry on its own."""
    files = [yaml.safe_load(p.read_text(encoding="utf-8")) for p in sorted((ROOT / folder).rglob("*.yaml"))]
    return [{**f, "intrinsics": [e]} for f in files for e in f["intrinsics"]] if folder == "intrinsics" else files


def _use(intrinsic: Intrinsic) -> None:
    values, numbers = {name: f"%x{name}" for name in intrinsic.operands}, count()
    if intrinsic.matrices is None and "llvm" in intrinsic.emit:
        render_llvm(intrinsic, values, lambda: f"%t{next(numbers)}")
        llvm_declarations(intrinsic)
    if intrinsic.matrices is None and "c" in intrinsic.emit:
        render_c(intrinsic, values)


@pytest.mark.parametrize("folder", ["intrinsics", "targets"])
def test_descriptions(folder: str) -> None:
    files, rng, taken = described(folder), random.Random(2), 0
    for _ in range(MANY):
        text = yaml.safe_dump(mutated(rng.choice(files), rng, files), allow_unicode=True, sort_keys=False)
        try:
            if folder == "targets":
                target_from_yaml(text, "f.yaml")
            else:
                for intrinsic in load_text(text, "f.yaml"):
                    _use(intrinsic)
            taken += 1
        except AutoschedError as error:
            _ = str(error)  # which is told without another error
    assert 0 < taken < MANY


def test_edited_schedules(tmp_path: Path) -> None:
    """Values of decisions are other legal ones or anything; now and then any part of the file is."""
    rng, taken, file = random.Random(3), 0, tmp_path / "edited.json"
    programs = [program for _, program in zip(range(4), small_programs().values(), strict=False)]
    plans = [(p, p.space.enumerate(limit=50).ids) for program in programs for p in plans_of(program, machine())[:2]]
    for _ in range(MANY):
        plan, rows = rng.choice(plans)
        named: dict[str, Any] = dict(plan.space.schedule(int(rng.choice(rows))).named)
        for decision in rng.sample(plan.space.decisions, min(2, len(plan.space.decisions))):
            named[decision.name] = rng.choice([*decision.domain, *decision.labels, decision.domain[-1] + 1, "x", None])
        trial = {"number": 1, "plan": plan.name, "row": 0, "schedule": named, "measurement": {"status": "ok"}}
        data = {"schema": "autosched/schedule/1", "key": {"program": "p"}, "trial": trial}
        file.write_text(json.dumps(mutated(data, rng) if rng.random() < 0.3 else data))
        space = cast(SearchSpace, SimpleNamespace(number={plan.name: 0}, plans=[SimpleNamespace(plan=plan)]))
        try:
            found = candidate_of(read_schedule(file)[1], space)
        except AutoschedError as error:
            _ = str(error)  # which is told without another error
            continue
        assert not plan.space.why_not(found.row)
        lower(plan, plan.space.schedule(found.row))
        taken += 1
    assert 0 < taken < MANY
