"""Memory transactions of one access of a warp: lines of a global access, wavefronts of a shared one.

Both follow from the addresses: the lanes of a warp take neighbouring values of the loop that is distributed to threads.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from autosched.codegen.analysis.access import flat_offset
from autosched.codegen.tree.kernel import Buffer
from autosched.device.simulator.walk.facts import Level, Touch
from autosched.logic import Binary, Const, Int, evaluate, free_vars

HELD = 16  # addresses that a thread keeps rather than computes again (a round figure)
DIVISION = 6  # instructions of a division by a constant, or of its remainder
LINE, SECTOR, BANKS, WORD = 128, 32, 32, 4
"""Bytes of a line of L1 and of its sectors; banks of shared memory, and bytes of each (CUDA programming guide 12.9)."""


def wavefronts(touch: Touch, buffer: Buffer, lanes: int) -> float:
    """Cycles of the memory of a core for one access by each lane of a warp, `touch.lane` being one lane's vector."""
    starts, size = _places(touch, buffer, lanes)
    return float(shared_turns(starts, size) if touch.scope == "shared" else lines(starts, size))


def fetched(touch: Touch, buffer: Buffer, lanes: int) -> float:
    """Bytes of the sectors that one access by each lane of a warp touches."""
    starts, size = _places(touch, buffer, lanes)
    return float(SECTOR * len({int(s) for end in (0, size - 1) for s in (starts + max(end, 0)) // SECTOR}))


def address_instructions(touch: Touch, threads: float) -> float:
    """Instructions by which one of so many threads computes its next address: those of the terms that the loop over
    threads changes; none where a few addresses stay in registers from slice to slice."""
    dealt = dealt_to_lanes(touch)
    if dealt is None or dealt.trips / threads <= HELD:
        return 0.0
    return float(sum(_instructions(part, dealt.var) for part in touch.index))


def _instructions(node: Int, moved: str) -> int:
    if not isinstance(node, Binary) or moved not in free_vars(node):
        return 0
    inside = _instructions(node.left, moved) + _instructions(node.right, moved)
    by = node.right.value if isinstance(node.right, Const) else 0
    return inside + (DIVISION if node.op in ("//", "%") and by & (by - 1) else 1)


def _places(touch: Touch, buffer: Buffer, lanes: int) -> tuple[npt.NDArray[np.int64], int]:
    """The first byte of each lane's access, and the bytes of each."""
    size = int((touch.lane.width if touch.lane else 1) * touch.bytes)
    dealt = dealt_to_lanes(touch)
    if dealt is None:
        return np.zeros(lanes, np.int64), size
    env = {level.var: level.value for level in touch.path}
    first = touch.lane.var if touch.lane is not None else ""
    places = env | {first: 0, dealt.var: dealt.value // lanes * lanes + np.arange(lanes)}
    found = np.broadcast_to(np.asarray(evaluate(flat_offset(buffer, touch.index), places)), (lanes,))
    return np.floor(found * touch.bytes).astype(np.int64), size


def dealt_to_lanes(touch: Touch) -> Level | None:
    """The loop whose values the lanes of a warp take: that over threads, else the innermost serial one."""
    threads = [level for level in touch.path if level.kind == "thread"]
    inner = [level for level in touch.path if level.kind == "serial"]
    return next(iter([*threads, *reversed(inner)]), None)


def lines(starts: npt.NDArray[np.int64], size: int) -> int:
    """Lines that accesses of `size` bytes touch."""
    return len({int(line) for end in (0, size - 1) for line in (starts + max(end, 0)) // LINE})


def shared_turns(starts: npt.NDArray[np.int64], size: int) -> int:
    """Wavefronts of a shared access: as many lanes at a time as fill the banks once; words of one bank one by one."""
    words = max(1, -(-size // WORD))
    together = max(1, BANKS // words)
    turns = 0
    for k in range(0, len(starts), together):
        asked = {int(s) // WORD + w for s in starts[k : k + together] for w in range(words)}
        turns += max(Counter(word % BANKS for word in asked).values())
    return turns
