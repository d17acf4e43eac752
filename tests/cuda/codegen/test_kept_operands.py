"""What ptxas makes of operands that a loop keeps in registers: nothing else may be written to them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.cards.block_chains import F16, H200, BlockChain, holding
from support.cards.nvrtc import compiled, needs_disassembler

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.device.cuda.compile.sass import disassemble

LABEL = re.compile(r"^\s*\.?(L_x_\d+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?);")
BACK = re.compile(r"BRA.*\(\.?(L_x_\d+)\)")
TAKEN = re.compile(r"HGMMA\S* R\d+, R(\d+), gdesc")
WRITTEN = re.compile(r"^(?:@!?U?P\d+ )?([A-Z0-9_.]+) R(\d+)\b")
STORES = ("ST", "RED", "BRA", "BAR", "HGMMA")


def loops_of_products(text: str) -> list[list[str]]:
    """The instructions of each innermost loop around products."""
    found: list[str] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if (label := LABEL.match(line)) is not None:
            labels[label[1]] = len(found)
        elif (one := INSTRUCTION.search(line)) is not None:
            found.append(one[1])
    ends = {n: labels[b[1]] for n, line in enumerate(found) if (b := BACK.search(line)) and b[1] in labels}
    loops = set[tuple[int, int]]()
    for product in (n for n, line in enumerate(found) if "HGMMA" in line):
        around = [(n, b) for n, b in ends.items() if b <= product < n]
        loops |= {min(around, key=lambda loop: loop[0] - loop[1])} if around else set()
    return [found[begin : end + 1] for end, begin in sorted(loops)]


def overwritten(loop: list[str]) -> set[int]:
    """Registers that a product takes from before the iteration, and something in the loop writes."""
    written: set[int] = set()
    kept: set[int] = set()
    for line in loop:
        if (operand := TAKEN.search(line)) is not None:
            kept |= {int(operand[1]) + k for k in range(4)} - written
        elif (one := WRITTEN.match(line)) is not None and not one[1].startswith(STORES):
            written.add(int(one[2]))
    return kept & written


SIZES: dict[str, dict[str, Any]] = {
    "swiglu": {"m": 1024, "tile": 64, "k": 128, "f": 1024, "block": 64, "n": 64},
    "causal": {"h": 4, "n": 512, "l": 512, "d": 64, "tile": 128, "block": 64},
    "flash": {"h": 4, "n": 512, "l": 512, "d": 64, "tile": 64, "block": 64},
}


LOOPS = {"causal": 2}
"""One for the blocks that a mask leaves whole."""


@pytest.mark.slow
@pytest.mark.parametrize("chain", SIZES)
def test_registers_that_a_loop_keeps_are_not_written(chain: str) -> None:
    """With the rows of its input from registers for two products, or for one behind another from shared memory, ptxas
    12.9 wrote SwiGLU's third operand over them."""
    needs_disassembler()
    plan = BlockChain(chain, H200, F16 | SIZES[chain]).plan
    for row in holding(plan, 6, 3):
        schedule = plan.space.schedule(row)
        text = disassemble(compiled(print_cuda(lower(plan, schedule), plan.target)).code)
        loops = loops_of_products(text)
        assert len(loops) >= LOOPS.get(chain, 1)
        assert not any(map(overwritten, loops)), schedule
