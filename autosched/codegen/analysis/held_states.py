"""What states hold: every call that reads one finds there what the last load brought, and that is what it means.

A call says what must be in a state as a load would (`RegisterRef.holds`). Proved of a kernel, statement by statement:
on each way to the call a load of the state comes before it; what that load read is, for all values of the loops around
both, what the call means; and nothing has been written since to the buffer that the load read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from autosched.codegen.tree.kernel import (
    PRIVATE_SCOPES,
    Assign,
    Chosen,
    For,
    IntrinsicCall,
    Kernel,
    KernelError,
    Lane,
    RegisterRef,
    Stmt,
    bodies,
    statements,
)
from autosched.codegen.tree.text import print_statement
from autosched.codegen.tree.uses import used_variables
from autosched.codegen.tree.value_text import value_text
from autosched.ir.value import Read, Value, reads
from autosched.logic import TRUE, Bool, Int, Var, all_of, any_of, free_vars
from autosched.logic.readings import to_z3
from autosched.logic.solver import own_context, proving, z3

TIMEOUT_MS = 5_000


class StateError(KernelError):
    """A call reads a state that no load has set, or that holds something else than it means."""


@dataclass(frozen=True)
class HeldProof:
    """One call's state: what it means is what its load brought, by `structure`, or by `z3`."""

    state: str
    call: str
    by: str


def prove_states(kernel: Kernel) -> list[HeldProof]:
    """A proof for each call and each state that it reads. StateError, with its place and what would mend it, where one
    is not set before, or set with something else."""
    states = {n for n, b in kernel.buffers.items() if b.scope == "state"}
    if not states:
        return []
    proofs: list[HeldProof] = []
    for function in (*kernel.prepare, kernel.main):
        proofs += _StateWalk(kernel, states).body(function.body, {}, ())
    return proofs


Held = dict[str, Assign]
"""Of each state the load that filled it."""


@dataclass(frozen=True)
class _StateWalk:
    kernel: Kernel
    states: set[str]

    def body(self, body: tuple[Stmt, ...], held: Held, loops: tuple[For, ...]) -> Iterator[HeldProof]:
        """The proofs of statements that begin with `held`, which is what they leave."""
        for stmt in body:
            if isinstance(stmt, Assign) and stmt.buffer in self.states:
                self.load(stmt, loops)
                self.forget(held, {stmt.buffer})
                held[stmt.buffer] = stmt
            elif isinstance(stmt, IntrinsicCall):
                for operand, ref in stmt.operands.items():
                    if ref.buffer in self.states:
                        yield self.call(stmt, operand, ref, held.get(ref.buffer), loops)
                self.forget(held, written((stmt,)))
            else:
                for inner in bodies(stmt):
                    inside = dict(held)
                    if isinstance(stmt, For | Chosen):  # a later turn begins with what an earlier one leaves
                        inside = {n: load for n, load in held.items() if stmt.var not in used_variables((load,))}
                        self.forget(inside, written(inner))
                    yield from self.body(inner, inside, (*loops, stmt) if isinstance(stmt, For) else loops)
                self.forget(held, written((stmt,)))

    def forget(self, held: Held, changed: set[str]) -> None:
        """Leave out the states that are filled by other loads now, under this buffer's name or another's, or whose
        source is not what it was."""
        filled = {self.kernel.buffers[n].origin for n in changed & self.states}
        for name, load in list(held.items()):
            again = self.kernel.buffers[name].origin in filled
            if again or any(r.tensor in changed for r in reads(load.value)):
                del held[name]

    def load(self, load: Assign, loops: tuple[For, ...]) -> None:
        buffer = self.kernel.buffers[load.buffer]
        whole = load.lane.width if load.lane else 1
        if load.valid != TRUE or whole != buffer.elements:
            self.fail(f"the state {load.buffer} is loaded in part", load, loops, "one load fills all of it")
        for read in reads(load.value):
            if self.kernel.buffers[read.tensor].scope not in PRIVATE_SCOPES:
                said = f"the state {load.buffer} is loaded from {read.tensor}, which is in memory"
                self.fail(said, load, loops, "it is loaded from the scratchpad of inputs")

    def call(
        self, stmt: IntrinsicCall, operand: str, ref: RegisterRef, load: Assign | None, loops: tuple[For, ...]
    ) -> HeldProof:
        name = stmt.intrinsic.name
        if ref.holds is None:
            said = f"{name} does not say what it means by {operand}, which the state {ref.buffer} holds"
            self.fail(said, stmt, loops, "state `holds` of the operand")
        if load is None:
            said = f"the state {ref.buffer} is read before it is set: {name} takes {operand} from it"
            mend = f"load {value_text(ref.holds)} into {ref.buffer} in front of the call, or of a loop around it"
            self.fail(said, stmt, loops, mend + " in which nothing else fills it, nor changes what it was loaded from")
        by, place = _same(load.value, ref.holds, load.lane, loops)
        if not by:
            said = f"the state {ref.buffer} holds {value_text(load.value)}, and {name} means "
            said += f"{value_text(ref.holds)} by {operand}" + (f": not the same at {place}" if place else "")
            self.fail(said, stmt, loops, f"load {ref.buffer} again wherever it changes")
        return HeldProof(ref.buffer, print_statement(stmt), by)

    def fail(self, said: str, stmt: Stmt, loops: tuple[For, ...], mend: str) -> NoReturn:
        at = ", ".join(loop.var for loop in loops) or "no loop"
        raise StateError(f"{said}\n  in: {print_statement(stmt)}\n  inside: {at}\nhelp: {mend}")


def written(body: tuple[Stmt, ...]) -> set[str]:
    """Buffers that assignments and calls write."""
    found: set[str] = set()
    for stmt in statements(body):
        match stmt:
            case Assign():
                found.add(stmt.buffer)
            case IntrinsicCall():
                found.add(stmt.operands[stmt.intrinsic.accumulator.name].buffer)
            case _:
                pass
    return found


def _same(loaded: Value, meant: Value, lane: Lane | None, loops: tuple[For, ...]) -> tuple[str, str]:
    """How it is known that two elements are the same one, all over the loops; else nothing, and a place where they are
    not (nothing, where none was found)."""
    if loaded == meant:
        return "structure", ""
    if not (isinstance(loaded, Read) and isinstance(meant, Read) and loaded.tensor == meant.tensor):
        return "", ""
    pairs = list(zip(loaded.index, meant.index, strict=True))
    names = [loop.var for loop in loops]
    if len(set(names)) < len(names) or not all(isinstance(a, Int) and isinstance(b, Int) for a, b in pairs):
        return "", ""
    differ = any_of(*(~a.eq(b) for a, b in pairs if isinstance(a, Int) and isinstance(b, Int)))
    box = [b for loop in loops for b in (Var(loop.var) >= loop.lower, Var(loop.var) < loop.upper)]
    if lane is not None:
        box += [Var(lane.var) >= 0, Var(lane.var) < lane.width]
    answer = _place(all_of(*box, differ), tuple(names))
    return ("z3", "") if answer is None else ("", answer)


@proving
def _place(condition: Bool, shown: tuple[str, ...]) -> str | None:
    """Where a condition holds, as `jt = 1`; None where it never does; an empty text where that is not known."""
    context = own_context()
    solver = z3.Solver(ctx=context)
    solver.set("timeout", TIMEOUT_MS)
    env = {n: z3.Int(n, context) for n in free_vars(condition)}
    solver.add(to_z3(condition, env, context))
    answer = solver.check()
    if answer == z3.unsat:
        return None
    if answer != z3.sat:
        return ""
    model = solver.model()
    return ", ".join(f"{n} = {model.eval(env[n], model_completion=True)}" for n in shown if n in env)
