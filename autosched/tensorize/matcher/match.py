"""Matching: which intrinsics can compute which stages, decided by proof.

Nothing here, or below, knows an operator or an instruction by name: it compares two small programs. The parts are
`addresses` (proof 1), `body` (proof 2) and `reduction` (proof 3); `explanation` puts the answer in words.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from autosched.errors import UsageError
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Read, Value, is_value, reads
from autosched.logic.questions import written_to
from autosched.logic.solver import proving
from autosched.numerics_levels import DEFAULT_NUMERICS, NUMERICS_LEVELS
from autosched.tensorize.adapters import Adapters
from autosched.tensorize.adapters.selected import CHOSEN
from autosched.tensorize.addresses.axes import (
    Assignment,
    Assignments,
    Candidate,
    tile_of,
    without_symmetric,
)
from autosched.tensorize.addresses.points import condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.addresses.tile import unsupported
from autosched.tensorize.body.equal import SIGN_OF_ZERO
from autosched.tensorize.body.governed import as_choice, as_held, governing, holding
from autosched.tensorize.body.neutral import said_finite
from autosched.tensorize.explanation import amos
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.lengths import at_full_length
from autosched.tensorize.match_types import Mapping, Match, Reason
from autosched.tensorize.matcher.as_adapted import AsAdapted
from autosched.tensorize.matcher.excluded import STRICT, still_open
from autosched.tensorize.matcher.family_answer import carried, kinship
from autosched.tensorize.matcher.form_prover import FormProver
from autosched.tensorize.matcher.proofs import Prover
from autosched.tensorize.matcher.refused import Refused, Unproved
from autosched.tensorize.matcher.roles import role_assignments
from autosched.tensorize.reduction.combine import overwriting_reason
from autosched.tensorize.reduction.update import NotAnUpdate, Update, update_of_intrinsic
from autosched.tensorize.tied import tied
from autosched.tensorize.with_kept import keeping

ADAPTABLE = ("DTYPE", "COMBINE_DIFFERS", "BODY_DIFFERS", "NUMERICS")
"""Reasons after which matching tries the stage again as adapters restate it."""
CHOOSABLE = ("DEPENDS", "BODY_DIFFERS", "NUMERICS")
"""Reasons after which matching tries the stage again with its guards as choices (`a if c else b`) in the body."""
TIMEOUT_MS = 2000
"""Limit of one solver query; past it the answer is `unknown`."""


@proving
def match(
    program: Program,
    intrinsics: Iterable[Intrinsic],
    numerics: str = DEFAULT_NUMERICS,
    stages: Iterable[str] | None = None,
    timeout_ms: int = TIMEOUT_MS,
    rule: str = "superset",
    dump_smt: Path | None = None,
    adapt: bool = True,
) -> list[Match]:
    """One answer for each stage and intrinsic, stages in textual order.

    `rule` is `superset`, or `amos` for the mappings that the published rule counts (see `explanation.amos`). `dump_smt`
    is a folder into which every question to the solver is written. `adapt=False` leaves out adapters.
    `stages` names the stages to match; by default those with a reduction, or all where none has one, and for
    instructions that overwrite their target those without. KeyError for a stage that the program lacks.
    """
    instructions = list(intrinsics)
    summing, writing = default_stages(program), elementwise_stages(program)
    if stages is not None:
        summing = writing = [program.stage(s) for s in stages]
    fitting = {s.name for s in summing}, {s.name for s in writing}
    sums = [i if i.accumulates else tied(i) for i in instructions]
    asked = any(i is not None for i in sums), not all(i.accumulates for i in instructions)
    names = set().union(*(f for f, any_ in zip(fitting, asked, strict=True) if any_))
    chosen = [s for s in program.stages if s.name in names] if stages is None else summing
    prover = Prover(timeout_ms)
    kin: dict[int, int | None] = {}
    numbers: dict[Hashable, int] = {}
    found = []
    with written_to(dump_smt):
        for stage in chosen:
            adapters = Adapters(StageFacts(program, stage, timeout_ms))
            answered: dict[int, Match] = {}
            for given, summing_form in zip(instructions, sums, strict=True):
                intrinsic = summing_form if stage.reduction and summing_form is not None else given
                if stage.name not in fitting[not intrinsic.accumulates]:
                    continue
                if id(intrinsic) not in kin:
                    key = kinship(intrinsic)
                    kin[id(intrinsic)] = None if key is None else numbers.setdefault(key, len(numbers))
                alike = kin[id(intrinsic)]
                if alike is not None and alike in answered:
                    found.append(carried(answered[alike], intrinsic))
                else:
                    found.append(_match(adapters, intrinsic, numerics, prover, rule, adapt))
                    if alike is not None:
                        answered[alike] = found[-1]
    return found


def default_stages(program: Program) -> list[Stage]:
    """The stages worth an instruction: those that reduce, else all."""
    reducing = [s for s in program.stages if s.reduction]
    return reducing or list(program.stages)


def elementwise_stages(program: Program) -> list[Stage]:
    """The stages worth an instruction that overwrites its target: those that do not reduce, else all."""
    return [s for s in program.stages if not s.reduction] or list(program.stages)


def _match(
    adapters: Adapters, intrinsic: Intrinsic, numerics: str, prover: Prover, rule: str, adapt: bool = True
) -> Match:
    if numerics not in NUMERICS_LEVELS:
        raise UsageError(f"unknown numerics level {numerics!r}", hint="levels: " + ", ".join(NUMERICS_LEVELS))
    if rule not in amos.RULES:
        raise UsageError(f"unknown rule {rule!r}", hint="rules: " + ", ".join(amos.RULES))
    started = time.perf_counter()
    facts = adapters.facts
    verdict, mappings, reason, notes = _decide(facts, intrinsic, numerics, prover, rule)
    if verdict == "no" and reason is not None and reason.code in CHOOSABLE and facts.with_choices is not None:
        chosen = _decide(facts.with_choices, intrinsic, numerics, prover, rule)
        # A step that a guard leaves out is no counterexample: the term with its choices has those that are.
        if chosen[0] != "no" or reason.code == "BODY_DIFFERS":
            verdict, mappings, reason, notes = chosen
    adaptable = reason is not None and (reason.code in ADAPTABLE or _settled(intrinsic).governed)
    by_data = intrinsic.chooses or any(map(is_value, facts.guards))
    adaptable |= reason is not None and reason.code == "DEPENDS" and by_data
    if verdict == "no" and adaptable and reason is not None and rule == "superset" and adapt:
        adapted, last = _adapted(adapters, intrinsic, numerics, prover)
        if not adapted and last is not None:
            reason = last
        if adapted:
            plainly = (f"as it stands: no. {reason.message}",) if reason.code == "NUMERICS" else ()
            verdict, mappings, reason, notes = _verdict(adapted), adapted, None, plainly
    if mappings and rule == "superset" and adapt:
        mappings = (*mappings, *_fuller(adapters, intrinsic, numerics, prover, mappings))
    seconds = time.perf_counter() - started
    return Match(facts.program, facts.stage.name, intrinsic, verdict, mappings, reason, seconds, notes)


def _adapted(
    adapters: Adapters, intrinsic: Intrinsic, numerics: str, prover: Prover
) -> tuple[tuple[Mapping, ...], Reason | None]:
    """The mappings of the stage as the first adapters to fit restate it, each once, with their proofs: those without
    conditions, or all where every adapter leaves some. And why the last one does not fit that restates the stage as the
    instruction has it, with conditions that hold or choices of elements."""
    last: Reason | None = None
    found: dict[object, Mapping] = {}
    asking: dict[object, Mapping] = {}
    settled = _settled(intrinsic)
    for made in adapters.fitting(settled):
        for facts, adapted in made:
            if adapted.reorders and numerics == "bitwise":
                continue
            met = what_zeros_meet(facts.program, adapted.zeroed)
            if (adapted.zeroed and numerics == "bitwise") or (len(met) > 1 and numerics in STRICT):
                continue
            _, mappings, reason, _ = _decide(facts, intrinsic, numerics, prover)
            keeps = any(n.startswith("keep ") for n in adapted.names)
            if settled.governed or keeps or CHOSEN in adapted.names:  # what it asks is in its operands then
                # A counterexample in a mask that an adapter made says nothing of the program's own elements.
                made_up = not settled.accumulates and any(n.startswith("mask ") for n in adapted.names)
                last = last if made_up else reason or last
            restated = AsAdapted(adapted.names, adapted.obligations, met, adapted.reorders)
            for mapping in mappings:
                roles = tuple([r.index for r in mapping.operands.values()])
                key = roles, tuple([(x, frozenset(fused)) for x, fused in mapping.axes.items()])
                kind = asking if mapping.conditions else found
                if key not in kind:
                    kind[key] = restated(mapping)
        if found:
            break
    return tuple((found or asking).values()), last


def _fuller(
    adapters: Adapters, intrinsic: Intrinsic, numerics: str, prover: Prover, known: tuple[Mapping, ...]
) -> Iterator[Mapping]:
    """Where all `known` mappings leave an axis of the instruction's sum without a loop: those of the stage as adapters
    restate it that fill more lanes."""
    sums = [a.name for a in intrinsic.reduction if a.extent > 1]
    if any(m.adapters or all(m.axes.get(x) for x in sums) for m in known):
        return
    most = max(m.utilisation for m in known)
    for facts, adapted in adapters.filling(intrinsic):
        _, mappings, _, _ = _decide(facts, intrinsic, numerics, prover)
        restated = AsAdapted(adapted.names, adapted.obligations, (), adapted.reorders)
        yield from (restated(m) for m in mappings if m.utilisation > most)


def what_zeros_meet(program: Program, zeroed: frozenset[Value]) -> tuple[tuple[str, ...], ...]:
    """What is assumed of factors that meet an adapter's zeros, each with the tensors that it names."""
    if not zeroed:
        return ()
    open_ = still_open(program, zeroed)[0]
    finite = [(said, *sorted({r.tensor for r in reads(f)})) for f in open_ for said in said_finite([f])]
    return (SIGN_OF_ZERO,), *sorted(finite)


def _settled(intrinsic: Intrinsic) -> Intrinsic:
    """The instruction at its full length, where it has one."""
    whole = at_full_length(intrinsic)
    return intrinsic if whole is None else whole[0]


def _verdict(mappings: tuple[Mapping, ...]) -> str:
    return "match" if any(not m.conditions for m in mappings) else "conditional"


_Roles = frozenset[tuple[str, Read]]
_Decision = tuple[str, tuple[Mapping, ...], Reason | None, tuple[str, ...]]


def _decide(
    facts: StageFacts, intrinsic: Intrinsic, numerics: str, prover: Prover, rule: str = "superset"
) -> _Decision:
    whole = at_full_length(intrinsic)
    if whole is not None:
        # A program with numbers for the lengths fits with these; else they go with the commands.
        found = _at_length(facts, intrinsic, numerics, prover, rule) if facts.numbers else None
        if found is not None and found[0] != "no":
            return found
        verdict, mappings, reason, notes = _with_mask(facts, whole[0], numerics, prover, rule)
        return verdict, tuple(m.adapted((), (whole[1],)) for m in mappings), reason, notes
    return _with_mask(facts, intrinsic, numerics, prover, rule)


def _with_mask(facts: StageFacts, intrinsic: Intrinsic, numerics: str, prover: Prover, rule: str) -> _Decision:
    """The answer for an intrinsic whose lengths are settled: as it is, or with what its mask keeps as an operand."""
    found = _at_length(facts, intrinsic, numerics, prover, rule)
    form = keeping(intrinsic) if found[0] == "no" else None
    if form is None:
        return found
    with_kept = _at_length(facts, form, numerics, prover, rule)
    return found if with_kept[0] == "no" and found[2] is not None and found[2].code != "UNSUPPORTED" else with_kept


def _at_length(
    facts: StageFacts, intrinsic: Intrinsic, numerics: str, prover: Prover, rule: str = "superset"
) -> _Decision:
    """The answer for an intrinsic whose lengths are settled, or held by numbers of the program."""
    facts = facts if intrinsic.accumulates else facts.as_assignment
    first, *others = _instructions(facts, intrinsic)
    found = _decide_form(facts, intrinsic, first, numerics, prover, rule)
    for form in others:
        found = found if found[0] != "no" else _decide_form(facts, intrinsic, form, numerics, prover, rule)
    return found


def _decide_form(
    facts: StageFacts, intrinsic: Intrinsic, form: _Instruction, numerics: str, prover: Prover, rule: str
) -> _Decision:
    """The answer for an intrinsic in one form."""
    facts, update = facts.as_choice if form.masked else facts, form.update
    early = _whole_stage(facts, intrinsic, update)
    if isinstance(early, Reason):
        return "no", (), early, ()
    if early is not None:
        return "unknown", (), None, (f"not proved within the limit: {early.statement}",)
    assert update is not None
    tile = tile_of(update)
    if rule == "amos":
        tile = amos.without_symmetries(tile)
    published: amos.AmosRule | None = None
    one = FormProver(prover, facts, intrinsic, update, tile, numerics, form.held)
    reasons: list[Reason] = []
    notes: list[str] = []
    groups: list[tuple[dict[str, Read], Assignments]] = []
    for roles in role_assignments(update, facts.update):
        result = one.assignments(roles)
        if not result.complete:
            notes.append(f"more than {prover.limit} axis maps: only those of the innermost axes were looked at")
        if not result.found and result.complete:
            reasons.append(_no_axis(facts, intrinsic, result.stuck))
        if rule == "amos":
            if published is None:  # the first roles are those as written
                published = amos.rule_of(facts, intrinsic, update, tile, roles)
            kept = tuple(a for a in result.found if published.accepts(a, roles))
            if result.found and not kept:
                reasons.append(_not_published(intrinsic))
            result = replace(result, found=kept)
        groups.append((roles, result))

    def cost(assignment: Assignment, roles: dict[str, Read]) -> int:
        """Operands that the instruction cannot broadcast by itself and that would be written out instead."""
        copies = one.replicated(assignment, roles)
        return sum(x not in intrinsic.operands[o].broadcast for o, axes in copies.items() for x in axes)

    refused: set[_Roles] = set()

    def candidates() -> Iterator[Candidate]:
        for roles, result in groups:
            if not result.found or one.adds_nothing(roles, max((r.rank for r in reasons), default=None)):
                continue
            key = frozenset(roles.items())
            for assignment in result.found:
                if key in refused:
                    break
                yield assignment, roles

    mappings: list[Mapping] = []
    undecided = []
    for assignment, roles in without_symmetric(tile, candidates(), cost):
        answer = one.mapping(assignment, roles)
        match answer:
            case Mapping():
                mappings.append(answer)
            case Refused(Unproved(statement)):
                undecided.append(f"not proved within the limit: {statement}")
            case Refused(Reason() as reason):
                reasons.append(reason)
        if isinstance(answer, Refused) and answer.whatever_axes:
            refused.add(frozenset(roles.items()))
    notes = list(dict.fromkeys((*notes, *undecided)))
    if mappings:
        verdict = _verdict(tuple(mappings))
        if rule == "superset":
            notes += amos.compared(amos.rule_of(facts, intrinsic, update, tile, groups[0][0]), tile, mappings)
        return verdict, tuple(mappings), None, tuple(notes)
    if undecided or notes:
        return "unknown", (), None, tuple(notes)
    furthest = max(reasons, key=lambda r: r.rank, default=None)
    if furthest is None:
        furthest = Reason("BODY_DIFFERS", f"the program's term reads no tensor, {intrinsic.name} multiplies operands")
    return "no", (), furthest, ()


@dataclass(frozen=True)
class _Instruction:
    """An intrinsic in normal form, with the elements of the program that some of its masks and lengths hold (`held`);
    `masked`: a mask is among its operands, as a choice of what is added. `update` is None where there is none."""

    update: Update | None
    held: dict[str, Read] = field(default_factory=dict)
    masked: bool = False


def _instructions(facts: StageFacts, intrinsic: Intrinsic) -> list[_Instruction]:
    """The forms of an intrinsic: with numbers of the program in its lengths, then in as many masks as can be, too."""
    try:
        update = update_of_intrinsic(intrinsic)
    except NotAnUpdate:
        return [_Instruction(None)]
    if not update.guards:
        return [_Instruction(update)]
    found: list[_Instruction] = []
    conditions = governing(update)
    computed = {r.tensor for r in update.operands}  # with these it computes: their number would be another term
    conditions = {o: counts for o, counts in conditions.items() if o not in computed}
    for wanted in ([o for o, counts in conditions.items() if counts], [*conditions]):
        held = holding(update, {o: intrinsic.operands[o].dtype for o in wanted}, facts.numbers)
        left = as_held(update, {o: facts.numbers[read] for o, read in held.items()})
        made = _Instruction(as_choice(left), held, bool(left.guards))
        found += [made] if made not in found else []
    return found


def _whole_stage(facts: StageFacts, intrinsic: Intrinsic, update: Update | None) -> Reason | Unproved | None:
    """What refuses a stage, or an intrinsic, whatever the mapping."""
    if intrinsic.kind != "compute":
        return Reason("UNSUPPORTED", f"{intrinsic.name} is of kind {intrinsic.kind}: it computes nothing")
    if len(intrinsic.program.stages) != 1:
        return Reason("UNSUPPORTED", f"the semantics of {intrinsic.name} has more than one stage")
    try:
        problem = unsupported(intrinsic, update or update_of_intrinsic(intrinsic))
        _ = facts.update
    except NotAnUpdate as e:
        return Reason("UNSUPPORTED", e.message, fix=e.hint)
    if problem is not None:
        return Reason("UNSUPPORTED", f"the semantics of {intrinsic.name} {problem}")
    if not intrinsic.accumulates:
        guarded = frozenset[str]().union(*map(condition_axes, facts.guards))
        if reason := overwriting_reason(facts.update, facts.exact, guarded):
            return _as_a_sum(reason, intrinsic)
    if facts.idle is not None:
        text = f"the loop over {facts.idle} never runs: there is nothing to compute"
        return Reason("UNSUPPORTED", text, fix=f"give {facts.idle} a range of one value at least")
    alias, known = facts.alias
    if not known:
        return Unproved("that the stage reads nothing it writes")
    if alias is not None:
        return alias
    writes = facts.distinct_writes
    if writes.holds is None:
        return Unproved(writes.obligation.statement)
    if not writes.holds:
        return facts.write_conflict
    return None


def _as_a_sum(reason: Reason, intrinsic: Intrinsic) -> Reason:
    """The reason, with what makes an instruction a sum whose description leaves open that it is one."""
    if not intrinsic.written_out or reason.code != "COMBINE_DIFFERS":
        return reason
    keys = ", ".join(f"{name}: {{}}" for name in intrinsic.written_out)
    fix = f"in the description of {intrinsic.name}, `operands: {{{keys}}}` says that it sums elements of one operand"
    return replace(reason, fix=fix)


def _no_axis(facts: StageFacts, intrinsic: Intrinsic, stuck: tuple[str, ...]) -> Reason:
    text = "no axis of the program can fill one of the intrinsic's"
    if stuck:
        text = f"no program axis of extent above one has the operand pattern of {', '.join(stuck)} of {intrinsic.name}"
    return Reason("NO_AXIS", text)


def _not_published(intrinsic: Intrinsic) -> Reason:
    text = f"the AMOS rule has no base point for {intrinsic.name} among the mappings with these operand roles"
    return Reason("NO_AXIS", text, fix="ask for --rule superset")
