"""Printed kernels on a card: the conformance suite of devices, every tier's rows, and calls on PyTorch's tensors."""

import numpy as np
import pytest
from conformance.device import DeviceConformance
from support.cards.card import card

from autosched.device.cuda.device import CudaDevice
from autosched.errors import UsageError
from autosched.ir import resolve
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.variants.conditional import candidates_of

ARCH, WHY = card()
pytestmark = pytest.mark.skipif(ARCH != "sm_90", reason=WHY or f"these rows are for sm_90, and the card is {ARCH}")
S8 = {"a": "s8", "b": "s8", "acc": "s32"}
TIERS = {
    "dp4a": ("matmul", {"m": 96, "n": 80, "k": 64, **S8}),
    "wmma.m16n16k16.f16.f32": ("matmul_nt", {"m": 96, "n": 80, "k": 64, "t": "f16"}),
    "mma.m16n8k16.bf16.bf16.f32": ("matmul_nt", {"m": 100, "n": 72, "k": 56, "t": "bf16", "out": "bf16"}),
    "wgmma.m64n64k16.bf16.f32": ("matmul_nt", {"m": 256, "n": 192, "k": 128, "t": "bf16", "out": "bf16"}),
    "wgmma.m64n128k32.s8.s8.s32": ("matmul_nt", {"m": 256, "n": 256, "k": 256, **S8}),
}


def candidates(tier, count, seed=0):
    name, sizes = TIERS[tier]
    program, target = resolve(name, sizes), load_target("nvidia-h200")
    found = match(program, usable(Catalogue.builtin(), target, "cuda", [f"{tier}*"]))
    plan = make_plans(program, target, candidates_of(found))[0]
    rows = np.unique(np.ravel(plan.space.sample(count, np.random.default_rng(seed))))
    return program, [Candidate(plan, int(row)) for row in rows]


@pytest.fixture(scope="module")
def dp4a():
    program, chosen = candidates("dp4a", 3)
    with CudaDevice(program, load_target("nvidia-h200")) as device:
        yield device, chosen


class TestCuda(DeviceConformance):
    @pytest.fixture
    def device(self, dp4a):
        return dp4a[0]

    @pytest.fixture
    def candidates(self, dp4a):
        return dp4a[1]


@pytest.mark.parametrize("tier", TIERS)
def test_rows_of_every_tier_are_right(tier):
    program, chosen = candidates(tier, 12, seed=1)
    with CudaDevice(program, load_target("nvidia-h200"), cache="cold") as device:
        found = [device.measure(b) for b in device.build_all(chosen)]
    assert [(m.status, m.message) for m in found] == [("ok", "")] * len(chosen)


def test_a_kernel_is_a_function_of_arrays(dp4a):
    device, chosen = dp4a
    kernel = device.callable(chosen[0])
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((96, 64), (64, 80)))
    want = a.astype(np.int32) @ b.astype(np.int32)
    assert (kernel(a, b) == want).all()
    torch = pytest.importorskip("torch")
    out = torch.empty(96, 80, dtype=torch.int32, device="cuda")
    assert kernel(torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda(), out) is out
    assert (out.cpu().numpy() == want).all()
    with pytest.raises(UsageError, match="not contiguous"):
        kernel(torch.from_numpy(a.T.copy()).cuda().t(), torch.from_numpy(b).cuda(), out)
