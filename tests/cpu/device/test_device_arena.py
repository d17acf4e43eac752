"""Guarded buffers: what one candidate leaves behind says nothing to the next one, which may get its pages."""

import gc
import os

import pytest

from autosched.device.cpu.arena import CANARY, FreePages, Guarded

pytestmark = pytest.mark.skipif(os.name != "posix", reason="memory protection needs POSIX")


def test_pages_come_back_as_if_new():
    free = FreePages()
    first = Guarded(10_000, 64, free)
    place = first._pages.inside
    first.view[:] = 7
    first._before[:1] = 0
    first.freeze()
    del first
    gc.collect()
    again = Guarded(9_000, 64, free)  # of as many pages
    assert again._pages.inside == place
    assert (again.address + 9_000) % 64 == 9_000 % 64
    assert (again.view == CANARY).all()
    again.view[:] = 1  # it may be written
    assert again.intact()


def test_two_that_live_share_nothing():
    one, two = Guarded(5_000), Guarded(5_000)
    one.view[:], two.view[:] = 1, 2
    assert (one.view == 1).all()
    assert one.intact()
    assert two.intact()


@pytest.mark.slow
def test_what_is_kept_is_bounded():
    free = FreePages(40_000)
    for size in range(1_000, 60_000, 4_096):
        Guarded(size, free=free)
        gc.collect()
    assert 0 < free.bytes <= 40_000
