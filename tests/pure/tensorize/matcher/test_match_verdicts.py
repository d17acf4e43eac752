"""The verdict suite: one file a case in `tests/verdicts`, each with a program, an instruction and the expected answer.

A case is `key: value` lines, `---`, and a program. Keys: `intrinsic` (a name of the catalogue, or any name with
`semantics`, whose lines are separated by `;`, and a text where `semantics_text` is yes), `expect`, and what is compared
where given: `count code numerics axes outer padding condition assumes fix bound method counterexample
first_step adapters` (the last: none, by default); `sizes`, `stage`, `level`, `features` (of a target, for its contract)
and `adapt: no` set the question; `exact` is the text of the integers that a float sum adds exactly.
`mutation: CLASS CASE` says what was changed in which matching case.
Where the answer is "match" and the case is small, every mapping is also executed.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from support.match.computes import CATALOGUE, check, made_up
from support.paths import TESTS

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tensorize import Match, explain, match
from autosched.tensorize.explanation.text import where
from autosched.tensorize.reduction.first_step import first_step

FOLDER = TESTS / "verdicts"
FILES = sorted(FOLDER.glob("*.case"))
ANSWER = {"expect", "count", "code", "numerics", "axes", "outer", "padding", "condition", "assumes", "fix", "bound"}
KEYS = ANSWER | {"method", "counterexample", "intrinsic", "semantics", "semantics_numerics", "sizes", "stage", "level"}
KEYS |= {"semantics_text", "features", "exact", "adapt", "mutation", "adapters", "fuller", "first_step"}
LARGEST = 10_000
"""Points of a nest that the slow executor still walks."""


def read(path: Path) -> tuple[dict[str, str], str]:
    head, _, program = path.read_text(encoding="utf-8").partition("---\n")
    keys = dict(line.split(": ", 1) for line in head.splitlines())
    assert keys.keys() <= KEYS, keys.keys() - KEYS
    return keys, program


def question(keys: dict[str, str], text: str) -> tuple[Program, Match]:
    sizes = dict(pair.split("=") for pair in keys.get("sizes", "").split())
    program = parse(text, sizes={n: int(v) if v.isdigit() else v for n, v in sizes.items()})
    if "semantics" in keys:
        intrinsic = made_up(
            keys["semantics"].replace("; ", "\n "),
            keys.get("semantics_numerics", "{accumulate: exact}"),
            "semantics_text" in keys,
        )
    else:
        intrinsic = CATALOGUE.find(keys["intrinsic"]).on(frozenset(keys.get("features", "").split()))
    stages = [keys["stage"]] if "stage" in keys else None
    adapt = keys.get("adapt", "yes") == "yes"
    (found,) = match(program, [intrinsic], keys.get("level", "reassociated"), stages, adapt=adapt)
    return program, found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_verdict(path: Path) -> None:
    keys, text = read(path)
    program, found = question(keys, text)
    words = explain(found)
    assert found.verdict == keys["expect"], words
    if "count" in keys:
        assert found.mapping_count == int(keys["count"]), words
    if found.verdict == "no":
        assert found.reason is not None
        assert found.reason.code == keys["code"], words
        assert keys.get("fix", "") in (found.reason.fix or ""), words
        example = found.reason.counterexample
        if "counterexample" in keys:
            assert example is not None
            assert example["program"] != example["intrinsic"]
        return
    lines = [where(m) for m in found.mappings]
    assert "axes" not in keys or any(line.startswith(keys["axes"]) for line in lines), words
    for mapping in found.mappings:
        assert keys.get("numerics", mapping.numerics) == mapping.numerics
        assert "outer" not in keys or keys["outer"] in mapping.outer
        if "padding" in keys:
            axis, extent, rounded = keys["padding"].split()
            assert mapping.padding[axis] == (int(extent), int(rounded))
        if "assumes" in keys:
            assert any(keys["assumes"] in a for a in mapping.certificate.assumptions), words
        assert keys.get("bound", mapping.certificate.error_bound) == mapping.certificate.error_bound
        assert keys.get("exact", str(mapping.certificate.exact)) == str(mapping.certificate.exact)
        adapters = ", ".join(mapping.adapters)
        fuller = "fuller" in keys and adapters.startswith(keys["fuller"])
        assert fuller or keys.get("adapters", "none") in (adapters or "none"), words
        if "first_step" in keys:
            started = first_step(mapping)
            assert keys["first_step"] == (started and started.kind), words
        if "method" in keys:
            assert keys["method"] in {o.method for o in mapping.certificate.obligations}
    if "fuller" in keys:  # the adapter of the mapping that fills the most lanes, beside those without
        assert found.ranked[0].adapters == (keys["fuller"],), words
    if "condition" in keys:
        stated = {f"{c.kind} {c.text}" + (" tight" if c.tight else "") for m in found.mappings for c in m.conditions}
        assert stated == {keys["condition"]}
    points = (
        0
        if program.symbolic
        else sum(prod(a.extent for a in s.axes if not path.stem.startswith("T24")) for s in program.stages)
    )
    if found.verdict == "match" and not program.symbolic and points <= LARGEST and len(program.stages) == 1:
        check(program, found.intrinsic, 7, keys.get("level", "reassociated"), most=3)


def test_the_suite_is_there() -> None:
    assert len(FILES) >= 190
    asked = ("intrinsic", "features", "adapt", "semantics", "semantics_numerics", "level", "sizes", "stage")
    questions = {(read(f)[1], *(read(f)[0].get(k) for k in asked)) for f in FILES}
    assert len(questions) >= len(FILES) - 2, "a case asks a question of its own, but for two pairs"


CLASSES = {"operator", "cast", "place", "signedness", "index", "extent", "initial", "combination"}


def test_mutations_of_every_class_are_caught() -> None:
    """Each changed case is refused or conditional, and what it was changed from matches."""
    cases = {f.stem: read(f)[0] for f in FILES}
    seen = set()
    for name, keys in cases.items():
        if "mutation" in keys:
            kind, base = keys["mutation"].split()
            assert keys["expect"] in ("no", "conditional"), name
            assert cases[base]["expect"] == "match", (name, base)
            seen.add(kind)
    assert seen == CLASSES
