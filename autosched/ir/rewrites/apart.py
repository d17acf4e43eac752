"""`kept_apart`: for each stage that reads another's result, what keeps the two apart, or which rewrite joins them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autosched.errors import Location
from autosched.ir.nodes import Stage
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.listing import accepted
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Read, is_value, reads
from autosched.ir.variables import index_vars
from autosched.logic import Var
from autosched.numerics_levels import DEFAULT_NUMERICS


@dataclass(frozen=True)
class Dependence:
    """`second` reads `first`'s result as `read` says; `needs` is how much of it has to be there; `answer` is what
    joins the two, or why nothing does."""

    first: str
    second: str
    read: str
    needs: str
    answer: str
    location: Location | None

    @property
    def asked(self) -> str:
        """What the second stage reads, and how much of it has to be there."""
        where = "" if self.location is None else f" ({self.location})"
        return f"{self.second}{where} reads {self.read}, {self.needs}"

    def __str__(self) -> str:
        return f"{self.asked}: {self.answer}"


def kept_apart(
    program: Program, verdicts: Sequence[RewriteVerdict], numerics: str = DEFAULT_NUMERICS
) -> list[Dependence]:
    """Each pair of stages of which the second reads the first's result, in the order of the text; `numerics` is the
    weakest level that is accepted."""
    return list(_dependences(program, verdicts, numerics))


def _dependences(program: Program, verdicts: Sequence[RewriteVerdict], numerics: str) -> Iterator[Dependence]:
    for n, second in enumerate(program.stages):
        started = () if second.init is None else reads(second.init)
        seen: set[str] = set()
        for read in (*second.reads, *started):
            writers = [s for s in program.stages[:n] if s.assign.tensor == read.tensor]
            if not writers or read.tensor in seen:
                continue
            seen.add(read.tensor)
            first = writers[-1]
            needs, alike = _needs(first, second, read)
            joined = _joined(first, second, verdicts, numerics)
            answer = joined or _refusal(first, second, verdicts) or alike
            yield Dependence(first.name, second.name, print_value(read), needs, answer, second.assign.location)


def _needs(first: Stage, second: Stage, read: Read) -> tuple[str, str]:
    """How much of the first's result one element of the second needs, and what that means where no rewrite is about
    the two."""
    along = [a.name for a in second.reduction if a.name in index_vars(read.index)]
    if any(is_value(i) for i in read.index):
        return "at places from data", f"all of {first.name} is computed before"
    if along:
        what = f"for every {', '.join(along)}"
        return what, f"{first.name} is kept whole, or computed a block at a time in a pass (--tile) or a chain"
    plain = all(isinstance(i, Var) for i in read.index) and len(set(read.index)) == len(read.index)
    if first.reduction and second.reduction:
        over = ", ".join(a.name for a in first.reduction)
        return f"known after all of {over}", _why_two_passes(first, second, read, plain)
    if plain and not second.reduction:
        return "element by element", f"nothing keeps them apart: {second.name} can be computed behind {first.name}"
    return "element by element", f"{first.name} is kept for it"


def _why_two_passes(first: Stage, second: Stage, read: Read, plain: bool) -> str:
    """Why sums, maxima, … that read each other are no cascade."""
    mine, theirs = ([(a.lower, a.upper) for a in s.reduction] for s in (second, first))
    if not plain:
        return f"two passes, as {print_value(read)} is read at no row that loops of {second.name} count"
    if mine != theirs:
        return f"two passes, as {first.name} and {second.name} go over axes of different bounds"
    return "two passes"


def _joined(first: Stage, second: Stage, verdicts: Sequence[RewriteVerdict], numerics: str) -> str | None:
    for verdict in verdicts:
        together = {first.name, second.name} <= set(verdict.stages)
        if verdict.reason is not None or verdict.after is None:
            continue
        if verdict.name == "online" and together:
            return f"one pass over {verdict.axis} computes both ({_level(verdict, numerics)})"
        gone = first.assign.tensor not in verdict.after.tensors and second.name in verdict.stages
        filled = verdict.name == "inline" and first.name in verdict.stages
        if filled or (verdict.name == "online" and gone):
            return f"computed where it is read ({_level(verdict, numerics)})"
    return None


def _level(verdict: RewriteVerdict, numerics: str) -> str:
    """A rewrite's name and level, and what opens it where that is more than is accepted."""
    fix = "" if accepted(verdict, numerics) else f"; fix: --numerics {verdict.numerics}"
    return f"{verdict.name}, {verdict.numerics}{fix}"


def _refusal(first: Stage, second: Stage, verdicts: Sequence[RewriteVerdict]) -> str | None:
    """Why a pass that both are part of is refused: at the second, if it says so."""
    for verdict in verdicts:
        reason = verdict.reason
        if reason is not None and {first.name, second.name} & set(verdict.stages) and reason.stage == second.name:
            other = "" if reason.level is None else f"; fix: --numerics {reason.level}, where one does"
            return f"no pass computes both, {reason.code}: {reason.message}{other}"
    return None
