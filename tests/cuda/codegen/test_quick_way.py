"""The quick way through PyTorch's tensors: addresses of exactly those that a kernel takes, by PyTorch's own guards and
without them. Tensors in host memory do: nothing here looks at a device."""

import pytest

from autosched.device.cuda.call.libraries import Torch
from autosched.ir import workload

PROGRAM = workload("matmul", m=64, n=64, k=64, a="f16", b="f16", acc="f32")


class Unguarded(Torch):
    """Of a PyTorch without guards that hold."""

    def _guard(self, arrays):
        return None


@pytest.fixture(params=["with guards", "without"])
def made(request):
    torch = pytest.importorskip("torch")
    library = (Unguarded if request.param == "without" else Torch)(torch)
    right = [torch.zeros(64, 64, dtype=t) for t in (torch.float16, torch.float16, torch.float32)]
    if request.param != "without":
        assert library._guard(right) is not None, "this PyTorch has guards that hold"
    tensors = [PROGRAM.tensors[p] for p in PROGRAM.parameters]
    return torch, right, library.quick(tensors, right).addresses


def test_addresses_of_what_fits(made):
    torch, right, addresses = made
    assert addresses(tuple(right)) == [t.data_ptr() for t in right]
    others = tuple(torch.ones_like(t) for t in right)
    assert addresses(others) == [t.data_ptr() for t in others]
    assert addresses((*right, 2.0)) == [t.data_ptr() for t in right], "scalars follow"


def test_nothing_else_passes(made):
    torch, right, addresses = made
    for number in range(3):
        t = right[number]
        for other in (
            t.t(),
            t[:32],
            t.reshape(-1),
            t.unsqueeze(0),
            t.double(),
            t.view(torch.int16 if number < 2 else torch.int32),
            torch.zeros(64, 128, dtype=t.dtype)[:, ::2],
            torch.zeros(64, 65, dtype=t.dtype)[:, :64],
            t.numpy(),
            None,
            1.0,
        ):
            assert addresses(tuple(other if i == number else r for i, r in enumerate(right))) is None
