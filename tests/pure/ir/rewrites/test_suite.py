"""The programs of `tests/rewrites`: each one pass as its header says, and as close to the program as it claims."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.rewritten.compare import differences
from support.rewritten.shown import value, values
from support.rewritten.suite import KINDS, Case, cases, inputs, masked, one_pass, scalars, told

import autosched
from autosched import ir
from autosched.errors import AutoschedError
from autosched.ir.printer import print_value
from autosched.ir.rewrites.verdict import RewriteVerdict

CASES = cases()
REWRITTEN = [c for c in CASES if c.accepted["rescaled"] or c.accepted["real"]]
REFUSED = [c for c in CASES if not c.accepted["rescaled"]]
GENTLE = ("random", "ties")


def accepted(case: Case, block: int = 5, **sizes: int) -> list[RewriteVerdict]:
    """What is accepted at the least level that the case is accepted at."""
    level = "rescaled" if case.accepted["rescaled"] else "real"
    return [v for v in one_pass(case.program(**sizes), level, block) if v.after is not None]


def check(case: Case, kinds: tuple[str, ...], block: int, **sizes: int) -> None:
    try:
        before = case.program(**sizes)
    except AutoschedError:
        return  # the length is too small for what else the program reads
    for found in accepted(case, block, **sizes):
        assert found.after is not None
        for kind in kinds:
            for at in (0, -1):
                if at == -1 and (kind == "random" or (kind in ("nan", "infinite", "none", "one") and masked(found))):
                    continue
                if kind == "denormal" and found.deferred:
                    continue  # products of denormals underflow in one of the two
                data = inputs(before, kind, at=at)
                if sizes.get("l") == 1 and "T" in data:
                    continue
                wrong = differences(before, found, data, scalars(before), block, kind in GENTLE)
                assert not wrong, f"{kind}, block {block}, {sizes}: {wrong}\n{found.after}"


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    assert len(REFUSED) >= 20


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_program_is_rewritten_or_refused_as_its_header_says(case: Case) -> None:
    for level in ("rescaled", "real"):
        found = one_pass(case.program(), level)
        assert [told(v) for v in found if v.reason is None] == case.accepted.get(level, [])
        assert [told(v) for v in found if v.reason is not None] == case.refused.get(level, [])
        for after in (v.after for v in found if v.after is not None):
            assert ir.parse(str(after)) == after
        assert all(o.proved for v in found for o in v.obligations)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", REWRITTEN, ids=str)
def test_one_pass_is_as_close_as_it_says(case: Case) -> None:
    check(case, ("random", "one"), 5)


@pytest.mark.slow
@pytest.mark.parametrize("case", REWRITTEN, ids=str)
@pytest.mark.parametrize("block", [1, 5, 32])
def test_one_pass_is_as_close_on_all_kinds_of_rows(case: Case, block: int) -> None:
    check(case, KINDS, block)
    for length in (1, 5, 33):
        check(case, ("random", "none", "one", "wide"), block, l=length)


@pytest.mark.slow
@pytest.mark.parametrize("case", REWRITTEN, ids=str)
def test_parts_are_as_close(case: Case) -> None:
    before = case.program()
    level = "rescaled" if case.accepted["rescaled"] else "real"
    for found in one_pass(before, level, 3, parts=3):
        if found.after is not None:
            assert ir.parse(str(found.after)) == found.after
            for kind in ("random", "none", "one", "greatest", "wide"):
                wrong = differences(before, found, inputs(before, kind), scalars(before), 1, kind in GENTLE)
                assert not wrong, f"{kind}: {wrong}\n{found.after}"


@pytest.mark.slow
@pytest.mark.parametrize("case", REWRITTEN, ids=str)
@pytest.mark.parametrize(("tile", "block", "parts"), [(2, 3, 3), (100, 100, 4), (1, 5, 2)])
def test_parts_of_tiles_are_as_close(case: Case, tile: int, block: int, parts: int) -> None:
    """Lengths that parts divide or not, parts of one block and of several, a part beyond the end."""
    before = case.program()
    level = "rescaled" if case.accepted["rescaled"] else "real"
    for found in one_pass(before, level, block, parts=parts, tile=tile):
        if found.after is not None:
            assert ir.parse(str(found.after)).outputs == before.outputs
            for kind in ("random", "none", "one", "wide"):
                wrong = differences(before, found, inputs(before, kind), scalars(before), 1, kind in GENTLE)
                assert not wrong, f"{kind}: {wrong}\n{found.after}"


@pytest.mark.slow
@pytest.mark.parametrize("case", REWRITTEN, ids=str)
@pytest.mark.parametrize(("tile", "block"), [(2, 5), (100, 3)])
def test_tiles_are_as_close(case: Case, tile: int, block: int) -> None:
    before = case.program()
    level = "rescaled" if case.accepted["rescaled"] else "real"
    for found in one_pass(before, level, block, tile=tile):
        if found.after is not None:
            assert ir.parse(str(found.after)).outputs == before.outputs
            for kind in ("random", "none", "wide"):
                wrong = differences(before, found, inputs(before, kind), scalars(before), block, kind in GENTLE)
                assert not wrong, f"{kind}: {wrong}\n{found.after}"


@pytest.mark.parametrize("scale", [0.0, -0.5, float("inf"), float("nan"), 1e30])
@pytest.mark.parametrize("name", ["attention_run_time_scale", "softmax_temperature"])
def test_a_condition_that_does_not_hold_leaves_the_program_as_written(name: str, scale: float) -> None:
    (case,) = (c for c in CASES if str(c) == name)
    before = case.program()
    (found,) = accepted(case)
    assert found.after is not None
    given = scalars(before, scale)
    for kind in ("random", "one", "none"):
        data = inputs(before, kind)
        with np.errstate(all="ignore"):
            expected, got = (ir.run(p, data, given) for p in (before, found.after))
        for output in before.outputs:
            np.testing.assert_allclose(got[output], expected[output], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_counterexample_shows_what_it_says(case: Case) -> None:
    program = case.program()
    for found in one_pass(program):
        shown = found.reason.counterexample if found.reason is not None else None
        if found.reason is None or shown is None:
            continue
        if found.reason.code == "NOT_DISTRIBUTIVE":
            (before,), (after,) = (list(r.values()) for r in shown["references"])
            with np.errstate(all="ignore"):
                moved = np.float32(0) * np.exp((np.float32(before) - np.float32(after)) * np.float32(-1))
            assert shown["values"][0] == 0
            assert np.isnan(moved)
            assert np.isnan(shown["values"][1])
            continue
        term = print_value(program.stage(found.reason.stage).assign.value)
        got = values(term, shown)
        np.testing.assert_allclose(got, shown["values"], rtol=1e-2 if "bf16" in term else 1e-5)
        (a, b), (c, d) = got
        apart = abs(a * d - b * c) / max(abs(a * d), abs(b * c))
        assert apart > (5e-5 if found.reason.code == "CAST" else 5e-4)
        for reference in shown["references"]:
            for data in shown["data"]:
                assert max(v for k, v in data.items() if k.startswith("X")) <= reference.get("M[i_2]", np.inf)


def test_the_oracle_of_counterexamples() -> None:
    assert value("exp(X[i, j] - M[i]) * 2.0", {"X[i, j]": 1.0, "M[i]": 1.0}) == 2
    assert value("f32(bf16(X[i])) if X[i] > 1.0 else 0.0", {"X[i]": 1.001953125}) == 1


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every question of the suite to the solver."""
    into = tmp_path_factory.mktemp("questions")
    for case in CASES:
        autosched.rewrites(case.program(), dump_smt=into / str(case))
    return into


def status(path: Path) -> str:
    (line,) = [x for x in path.read_text(encoding="utf-8").splitlines() if x.startswith("(set-info :status")]
    return line.removeprefix("(set-info :status ").removesuffix(")")


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_answers(questions: Path) -> None:
    files = [f for f in sorted(questions.rglob("*.smt2")) if status(f) != "unknown"]
    assert len(files) >= 300
    program = "import sys, z3\nfor p in sys.argv[1:]:\n s = z3.Solver()\n s.from_file(p)\n print(s.check())\n"
    done = subprocess.run([sys.executable, "-c", program, *map(str, files)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [status(f) for f in files]


@pytest.mark.slow
def test_another_solver_proves_the_same(questions: Path) -> None:
    """It refutes none, and proves nearly all within its time: some products of quotients take it minutes."""
    pytest.importorskip("cvc5", reason="cvc5 is not installed")
    proved = [f for f in sorted(questions.rglob("*.smt2")) if status(f) == "unsat"][::9]
    said = {path: cvc5_says(path) for path in proved}
    assert [path.read_text(encoding="utf-8") for path, answer in said.items() if answer == "sat"] == []
    assert sum(answer == "unsat" for answer in said.values()) >= 0.9 * len(said) >= 30


def cvc5_says(path: Path) -> str:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("tlimit-per", "2000")
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
    said = []
    while not (command := parser.nextCommand()).isNull():
        said.append(command.invoke(solver, parser.getSymbolManager()).strip())
    return str(said[-1])
