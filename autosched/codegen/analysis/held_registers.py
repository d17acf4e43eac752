"""What the registers of a kernel's workers are held as: an instruction's operand, as its fragment map says, or in turn.

A register that an instruction takes is spread over its lanes by the map; registers that share an assignment with one
lie like it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from autosched.backends import CUDA
from autosched.codegen.tree.kernel import WORKERS, Assign, For, IntrinsicCall, Kernel, Stmt, bodies, statements
from autosched.ir.value import Index, Read, walk
from autosched.logic import Const, Var
from autosched.tensorize.fragment import Fragment
from autosched.tensorize.intrinsic import Intrinsic, Operand

THREADS_OF = {"thread": 1, "warp": CUDA.warp, "warpgroup": CUDA.warpgroup}
"""Threads of one worker of each kind."""


@dataclass(frozen=True)
class Held:
    """What a register is held as: an operand, by so many lanes, of an instruction or for its own sake."""

    operand: Operand
    lanes: int
    intrinsic: Intrinsic | None = None


@dataclass
class HeldRegisters:
    """The register buffers that statements touch (`names`, by first use), their subscripts (`uses`), and for those that
    lie as an instruction's operand does, which."""

    kernel: Kernel
    body: tuple[Stmt, ...]
    lanes: dict[str, int]  # threads of the workers that use a buffer
    names: list[str] = field(default_factory=list)
    operands: dict[str, Held] = field(default_factory=dict)
    uses: dict[str, list[tuple[Index, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = {n: b.fragment for n, b in self.kernel.buffers.items() if b.fragment is not None}
        self.operands |= {n: Held(f.operand, f.lanes) for n, f in made.items()}
        self.workers: set[Index] = {Var(s.var) for s in self.body if isinstance(s, For) and s.kind in WORKERS}
        together: list[set[str]] = []
        for stmt in self.body:
            mine: set[str] = set()
            for name, index in _places(stmt):
                if self.kernel.buffers[name].scope != "register":
                    continue
                if name not in self.uses:
                    self.names.append(name)
                self.uses.setdefault(name, []).append(index)
                if isinstance(stmt, Assign) and stmt.lane is not None and index[-1] == Var(stmt.lane.var):
                    mine.add(name)  # others lie as they like
            if isinstance(stmt, IntrinsicCall):
                for operand, ref in stmt.operands.items():
                    if ref.lane is None:
                        held = Held(stmt.intrinsic.operands[operand], _threads(stmt.intrinsic), stmt.intrinsic)
                        self.operands.setdefault(ref.buffer, held)
            elif isinstance(stmt, Assign) and stmt.lane is not None and len(mine) > 1:
                together.append(mine)
        changed = True
        while changed:
            changed = False
            for group in together:
                known = next((self.operands[n] for n in sorted(group) if n in self.operands), None)
                if known is None:
                    continue
                elements = known.operand.elements
                for name in group - self.operands.keys():
                    if self.kernel.buffers[name].shape[-1] == elements:
                        self.operands[name] = known
                        changed = True

    def holders(self, name: str) -> npt.NDArray[np.int64] | None:
        """The lane that holds each element of a register's last dimension; None where each lane has its own, or
        where the kernel does not say."""
        buffer, known = self.kernel.buffers[name], self.operands.get(name)
        if known is not None:
            return Fragment(known.operand, known.lanes).owners[0] if known.operand.fragment is not None else None
        lanes, run = self.lanes.get(name, 1), buffer.elements_per_thread
        return np.arange(buffer.shape[-1]) // run % lanes if run and lanes > 1 else None


def held_registers(kernel: Kernel, body: tuple[Stmt, ...], lanes: int = 1) -> HeldRegisters:
    """Those of a function's body; `lanes` threads run what no worker does."""
    return HeldRegisters(kernel, tuple(statements(body)), threads_around(kernel, body, lanes))


def _threads(intrinsic: Intrinsic) -> int:
    return CUDA.threads_of(intrinsic.scope)


def threads_around(kernel: Kernel, body: tuple[Stmt, ...], lanes: int) -> dict[str, int]:
    """Threads of the workers around the statements that name each register buffer."""
    found: dict[str, int] = {}
    for stmt in body:
        here = THREADS_OF.get(stmt.kind, lanes) if isinstance(stmt, For) else lanes
        for name, _ in _places(stmt):
            found[name] = max(here, found.get(name, 1))
        for inner in bodies(stmt):
            for name, n in threads_around(kernel, inner, here).items():
                found[name] = max(n, found.get(name, 1))
    return found


def _places(stmt: Stmt) -> Iterator[tuple[str, tuple[Index, ...]]]:
    """Buffers that a statement itself names, with subscripts; a whole register gets a last subscript of 0."""
    match stmt:
        case Assign():
            yield stmt.buffer, stmt.index
            yield from ((n.tensor, n.index) for n in walk(stmt.value) if isinstance(n, Read))
        case IntrinsicCall():
            yield from ((r.buffer, (*r.index, Const(0)) if r.lane is None else r.index) for r in stmt.operands.values())
