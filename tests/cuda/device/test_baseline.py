"""The loops as written, on a card: one thread, which is not unrolled, and not timed where it would take long."""

import re

from autosched.device.cuda.build import printed
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.baseline import literal_plan, measure_baseline
from autosched.tiling.candidate import Candidate

TARGET = load_target("nvidia-h200")


def test_loops_of_one_thread_are_hardly_unrolled():
    text = printed(Candidate(literal_plan(workload("softmax", m=64, n=2048), TARGET), 0), TARGET).source.text
    assert "1 block of 1 threads" in text
    assert max(map(int, re.findall(r"#pragma unroll (\d+)", text))) <= 16


def test_a_card_is_not_kept_by_one_thread():
    class Card:
        name, asked = "cuda", 0

        def build(self, candidate):
            self.asked += 1
            raise LookupError

    card = Card()
    assert measure_baseline(workload("softmax", m=8192, n=2048), TARGET, card) is None
    assert not card.asked
