"""Outputs compared on a card: the verdicts of `device.correctness.compare`, for every type, and nothing downloaded for
them."""

import numpy as np
import pytest
from support.cards.host_card import HostCard, array, boxed, unsampled
from support.cards.host_compare import host_compare
from support.cards.nvrtc import needs_nvrtc

from autosched.device.correctness import oracle as oracles
from autosched.device.correctness.compare import Wrong, compare
from autosched.device.correctness.sampled import write_data
from autosched.device.cuda.comparing import BITS, DOUBLES, ELEMENTS, TEXT, Comparer, Wanted
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.data import CudaData
from autosched.device.cuda.driver import CudaError
from autosched.ir import parse, workload
from autosched.ir.dtypes import DTYPES

INF, NAN = np.inf, np.nan


@pytest.fixture
def card():
    return HostCard({"compare": host_compare()})


@pytest.fixture
def comparer(card):
    return Comparer(card, b"good")


def found(card, comparer, got, want, tolerance):
    """By the card: (elements wrong, the nearest)."""
    address = card.allocate(got.nbytes)
    card.upload(address, got)
    how = BITS if tolerance is None else DOUBLES
    allowed = 0 if tolerance is None else comparer.put(tolerance)
    wanted = Wanted(got.size, how, comparer.put(want), allowed)
    answer = comparer(address, got.dtype.name, wanted)
    return answer.wrong, answer.nearest


@pytest.mark.parametrize("dtype", sorted(n for n in DTYPES if n not in ("b1", "u4", "s4", "e8m0")))
def test_verdicts_are_those_of_the_host(card, comparer, dtype):
    kind, rng = np.dtype(DTYPES[dtype].numpy), np.random.default_rng(1)
    for number in range(20):
        want = rng.integers(0, 100, 37).astype(np.float64) if kind.kind in "iu" else rng.normal(size=37)
        with np.errstate(all="ignore"):
            got = want.astype(kind)
            want = got.astype(np.float64) + rng.normal(size=37) * 1e-2
        tolerance = rng.uniform(1e-2 if number % 2 else 5e-2, 6e-2, 37)
        tolerance[3], want[3] = 0.0, float(got[3])
        said = compare(got, want, tolerance)
        wrong, nearest = found(card, comparer, got, want, tolerance)
        assert wrong == said.wrong
        if said.ok:
            assert nearest == said.index


@pytest.mark.parametrize(
    ("got", "want", "tolerance"),
    [
        (NAN, NAN, 1.0),
        (NAN, 1.0, 1.0),
        (1.0, NAN, 1.0),
        (INF, INF, 0.0),
        (-INF, INF, 1.0),
        (INF, 1.0, 1.0),
        (1.0, INF, INF),
        (1.0, 2.0, INF),
        (1.0, 2.0, 0.0),
        (1.0, 2.0, NAN),
        (0.0, -0.0, 0.0),
    ],
)
def test_what_is_not_finite_is_compared_as_on_the_host(card, comparer, got, want, tolerance):
    given = np.full(5, got, np.float32), np.full(5, want), np.full(5, tolerance)
    assert found(card, comparer, *given)[0] == compare(*given).wrong


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64])
def test_integers_are_compared_to_the_bit(card, comparer, dtype):
    want = np.arange(50).astype(dtype)
    want[7] = np.iinfo(dtype).max
    got = want.copy()
    assert found(card, comparer, got, want, None) == (0, 0)
    got[[7, 20]] -= 1
    assert found(card, comparer, got, want, None)[0] == 2


def test_an_output_beside_another_within_some_room(card, comparer):
    known, got = np.arange(9, dtype=np.float16), np.arange(9, dtype=np.float16) + np.float16(0.25)
    addresses = [card.allocate(a.nbytes) for a in (known, got)]
    for address, values in zip(addresses, (known, got), strict=True):
        card.upload(address, values)
    for room, wrong in ((0.25, 0), (0.2, 9)):
        wanted = Wanted(9, ELEMENTS, addresses[0], room=room)
        assert comparer(addresses[1], "float16", wanted).wrong == wrong


PROGRAM = """
def scale(A: f32[m, n], B: f32[m, n], *, m=20, n=30):
    for i, j in grid(m, n):
        B[i, j] = 3 * A[i, j]
"""


def test_whole_outputs_are_not_downloaded_where_they_are_right(card, comparer, tmp_path, monkeypatch):
    program = parse(PROGRAM)
    oracle = oracles.compute(program, 0)
    data = CudaData(card, tmp_path, write_data(program, oracle, tmp_path)[0], (), comparer)
    sizes = []
    downloads = card.download
    monkeypatch.setattr(card, "download", lambda to, address: (sizes.append(to.nbytes), downloads(to, address)))
    right = oracle.wants["B"].reshape(-1)
    output = array(data.addresses["B"], 600, np.float32)
    output[:] = right
    output[5] += 1e-7 * abs(right[5])
    here = compare(output.copy(), np.asarray(right, np.float64), np.asarray(oracle.tolerances["B"]).reshape(-1))
    assert data.verify(data.addresses) == here
    assert max(sizes) <= 24
    output[411] += 1
    with pytest.raises(Wrong, match=r"B\[13, 21\] is .* 1 of 600 elements compared are wrong"):
        data.verify(data.addresses)


def test_boxes_and_the_rest_are_compared_on_the_card(card, comparer, tmp_path, monkeypatch):
    program = workload("matmul", m=200, n=150, k=64)
    boxes, name, whole = boxed(program)
    data = CudaData(card, tmp_path, *write_data(program, boxes, tmp_path), comparer)
    output = array(data.addresses[name], whole.size, np.float32)
    output[:] = whole.reshape(-1)
    sizes = []
    downloads = card.download
    monkeypatch.setattr(card, "download", lambda to, address: (sizes.append(to.nbytes), downloads(to, address)))
    data.verify(data.addresses)
    data.keep(data.addresses)
    data.verify_whole(data.addresses)
    assert max(sizes) <= 24
    stray = unsampled(whole, boxes.boxes[name])
    output[np.ravel_multi_index(stray, whole.shape)] += 1
    data.verify(data.addresses)
    with pytest.raises(Wrong, match="a plain kernel, right in all boxes, says"):
        data.verify_whole(data.addresses)
    (low, _), (at, _) = boxes.boxes[name][-1]
    output[low * 150 + at] += 1
    with pytest.raises(Wrong, match=rf"\[{low}, {at}\] is"):
        data.verify(data.addresses)
    data.close()
    assert not card.memory


def test_where_the_card_has_no_room_the_host_compares(card, tmp_path):
    class Full(Comparer):
        def put(self, values):
            raise CudaError("CUDA_ERROR_OUT_OF_MEMORY", "allocating")

    program = parse(PROGRAM)
    oracle = oracles.compute(program, 0)
    data = CudaData(card, tmp_path, write_data(program, oracle, tmp_path)[0], (), Full(card, b"good"))
    array(data.addresses["B"], 600, np.float32)[:] = oracle.wants["B"].reshape(-1)
    assert data.verify(data.addresses).ok
    assert data.comparer is None


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
def test_the_text_compiles(arch):
    needs_nvrtc(arch)
    made = compile_cuda(TEXT, arch).kernels["compare"]
    assert not made.spill_store_bytes
    assert not made.stack_bytes
