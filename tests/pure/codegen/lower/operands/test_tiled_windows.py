"""Windows over tiles of lines: rows at a border are computed outside the loop, and kernels compute the program."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from fuzz.row_chains import random_row_chain
from fuzz.windows import chain, random_chain
from hypothesis import event, given
from hypothesis import strategies as st
from support.cards.gpu_plans import H200
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.paths import ROOT, TESTS
from support.plans import machine
from support.programs.products_in_tiles import PRODUCTS_IN_TILES, random_products
from support.tiles import check_tiles

from autosched.ir import parse, random_inputs, run
from autosched.ir.program import Program
from autosched.ir.rewrites.tiles.tiled_rows import tiled_rows
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import TileLoopsPart
from autosched.tiling.variants.shared_runs import runs, shared_runs


def tiled(program: Program, tile: int) -> Program:
    """In tiles of lines of their own."""
    found, *_ = shared_runs(program, 0)
    assert (found.extent, found.again) == (program.tensors["Y"].extents[0], 0)
    after = tiled_rows(program, found.run, tile)
    assert after is not None
    return after


def test_a_chain_in_tiles_is_printed() -> None:
    golden = TESTS / "golden" / "tiled_windows.txt"
    assert str(tiled(chain(10), 2)) == golden.read_text(encoding="utf-8")


def test_rows_of_the_border_are_computed_outside_the_loop() -> None:
    text = str(tiled(chain(10), 2))
    assert text.count("for y_tile in range(3)") == 1
    loop = text[text.index("y_tile in range") :].split("\n    for")[0]
    assert "x_7 + s_3 - 1 < 6" in loop
    assert "0 <= y_tile" not in loop
    assert "A_2: f32[2, 6, 4]" in text  # each tile hands on what is its own
    assert "A_3: f32[3, 2, 6, 4]" in text


@examples(15)
@given(st.data())
def test_tiles_compute_the_program(data: st.DataObject) -> None:
    tiles_compute_a_chain(data)


@pytest.mark.slow
@examples(60)
@given(st.data())
def test_tiles_compute_more_programs(data: st.DataObject) -> None:
    tiles_compute_a_chain(data)


def tiles_compute_a_chain(data: st.DataObject) -> None:
    program = random_chain(data.draw(st.integers(0, 10**6)))
    after = tiled(program, data.draw(st.integers(1, program.tensors["Y"].extents[0])))
    assert parse(str(after), filename="f.py") == after
    inputs = random_inputs(program, np.random.default_rng(data.draw(st.integers(0, 99))))
    assert np.array_equal(run(after, inputs)["Y"], run(program, inputs)["Y"])
    event("loop without a guard on rows" if len(after.stages) > len(program.stages) else "no row apart")


@pytest.mark.slow
@examples(30)
@given(st.integers(0, 10**6))
def test_random_chains(seed: int) -> None:
    check_kernels(random_chain(seed), 1, seed, least=0)


@pytest.mark.sampled("stride-1")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "program",
    [
        chain(12, c=16, co=16),
        chain(13, 0, 1, stride=2, c=16, co=20),
        chain(11, 0, 0, c=16, co=16),
        chain(14, 2, 2, dilation=2, w=5, c=12, co=16),
    ],
    ids=["border", "stride", "no padding", "dilation"],
)
def test_kernels_compute_the_program(program: Program, threads: int) -> None:
    check_kernels(program, threads, threads, least=1)


def check_kernels(program: Program, threads: int, seed: int, least: int) -> None:
    """Kernels of plans in tiles, on a machine of caches so small that these pay, compute the program."""
    small = tuple(replace(m, bytes=2 << 10) if m.name in ("L1", "L2") else m for m in machine().memories)
    target, catalogue = replace(machine(), memories=small), Catalogue.builtin()
    found = plan_program(program, target, catalogue, usable(catalogue, target, "cpu", ()), threads=threads)
    plans = [p for p in found.every if any(isinstance(q, TileLoopsPart) for q in p.parts)]
    assert len(plans) >= least
    for plan in plans[:2]:
        ids = plan.space.sample(3, np.random.default_rng(seed))
        assert disagreement(plan, ids.tolist(), expect(program)) is None


def test_stages_that_fuse_in_registers_need_no_tiles() -> None:
    program = chain(12)
    (found,) = shared_runs(program, 0)
    assert found.members == ("A", "B", "Y")
    assert not shared_runs(replace(program, body=program.body[:2]), 0)  # the ramp follows on each sum


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("tile", [1, 2, 3])
def test_depthwise_after_pointwise(stride: int, tile: int) -> None:
    """1x1, then depthwise 3x3: a tile of channels reads no other tile's, and one of lines reads a border of others."""
    program = residual({"h": 7, "w": 5, "st": stride, "ci": 3, "c": 4, "co": 2})
    channels, lines = shared_runs(program, 0)
    assert (channels.extent, channels.members) == (4, ("F", "G", "A", "B"))  # Y sums over channels
    after = tiled_rows(program, channels.run, tile)
    assert after is not None
    inputs = random_inputs(program, np.random.default_rng(tile))
    assert np.array_equal(run(after, inputs)["Y"], run(program, inputs)["Y"])
    assert (lines.extent, lines.members) == (7, ("F", "G", "A", "B", "Y"))
    assert lines.again == (2 if stride == 1 else 0.5)


@pytest.mark.slow
@pytest.mark.sampled("1")
@pytest.mark.parametrize("stride", [1, 2])
def test_kernels_in_tiles_of_channels_compute_the_program(stride: int) -> None:
    check_kernels(residual({"h": 7, "w": 6, "st": stride, "ci": 8, "c": 32, "co": 16}), 1, stride, least=1)


@pytest.mark.slow
@pytest.mark.sampled("2-kept")
@pytest.mark.parametrize("kept", [False, True], ids=["twice", "kept"])
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_with_windows_that_overlap_compute_the_program(threads: int, kept: bool) -> None:
    """Every stage by lines: a tile of the last needs a border of the first."""
    program = residual({"h": 13, "w": 6, "st": 1, "ci": 8, "c": 16, "co": 16})
    _, lines = shared_runs(program, 0)
    for tile in (2, 5):
        assert check_tiles(program, lines, tile, kept, threads) == "as tile loops"


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True], ids=["twice", "kept"])
def test_kernels_of_a_grid_compute_the_program(kept: bool) -> None:
    """Blocks of a GPU's grid have tiles of their own; one block has all that keep rows."""
    program = residual({"h": 8, "w": 8, "st": 1, "ci": 16, "c": 16, "co": 16})
    _, lines = shared_runs(program, 0)
    assert check_tiles(program, lines, 2, kept, 1, replace(H200, cores=3)) == "as tile loops"


@pytest.mark.slow
@examples(40)
@given(st.integers(0, 10**6))
def test_kernels_of_random_chains_over_lines(seed: int) -> None:
    program = random_row_chain(seed)
    for found in runs(program, 0):
        tile = random.Random(seed).randint(1, max(1, found.extent // 2))
        event(check_tiles(program, found, tile, False, threads=1 + seed % 2))
        if found.keeping is not None:
            event(f"kept, {check_tiles(program, found, tile, True, threads=2 - seed % 2)}")


TRIANGLE = """
def f(X: s32[12, 4], T: s32[5, 4]):
    A: s32[12, 4]
    B: s32[12, 4]
    for y, o in grid(12, 4):
        A[y, o] = 0
        for u in range(y + 1):
            A[y, o] += X[u, o]
    for y_2, o_2 in grid(12, 4):
        B[y_2, o_2] = max(A[y_2, o_2], -3)
    for y_3, o_3 in grid(5, 4):
        T[y_3, o_3] = 0
        for r in range(3):
            T[y_3, o_3] += B[y_3 * 2 + r, o_3]
"""


@pytest.mark.sampled("1-twice", "2-kept")
@pytest.mark.parametrize("kept", [False, True], ids=["twice", "kept"])
@pytest.mark.parametrize("tile", [1, 2])
def test_a_loop_as_long_as_the_line_says(tile: int, kept: bool) -> None:
    """Sums of what comes again for every tile stand outside of the tiles, unless a tile says how long they are."""
    program = parse(TRIANGLE)
    for found in runs(program, 0):
        if not kept or found.keeping is not None:
            assert check_tiles(program, found, tile, kept, 1) != "no tiles"


def residual(sizes: dict[str, int]) -> Program:
    text = (ROOT / "examples" / "fused" / "separable.py").read_text(encoding="utf-8")
    return parse(text, "separable.py", "inverted_residual", sizes)


@pytest.mark.sampled("3-three")
@pytest.mark.parametrize("name", PRODUCTS_IN_TILES)
@pytest.mark.parametrize("threads", [1, 3])
def test_products_in_tiles_compute_the_program(name: str, threads: int) -> None:
    program = PRODUCTS_IN_TILES[name]
    found = list(runs(program, 0))
    assert found
    for one in found:
        assert check_tiles(program, one, max(1, one.extent // 4), False, threads) == "as tile loops"


@pytest.mark.slow
@examples(8)
@given(random_products(), st.integers(1, 9), st.integers(1, 3))
def test_random_products_in_tiles(text: str, tile: int, threads: int) -> None:
    program = parse(text, filename="f.py")
    for found in runs(program, 0):
        event(check_tiles(program, found, min(tile, found.extent), False, threads))
