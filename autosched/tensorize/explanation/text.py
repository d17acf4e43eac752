"""The answer in words: what maps where, what was proved and how, or why not and what would change it."""

from __future__ import annotations

from autosched.ir.program import Program
from autosched.ir.value import is_value, reads
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.explanation.certificate import left_out
from autosched.tensorize.explanation.chains import chains, fill_in_words, fill_of
from autosched.tensorize.explanation.numerics_text import numerics_lines
from autosched.tensorize.match_types import Mapping, Match, Reason
from autosched.tensorize.matcher.staging import fills_in_words
from autosched.tensorize.reduction.first_step import first_step

_SHOWN = 4
"""Mappings written out whole; the others get a line each."""
_LISTED = 16


def explain(match: Match) -> str:
    """Readable text, without a trailing newline."""
    head = f"{match.program.name}, stage {match.stage}, on {match.intrinsic.name}: {verdict_in_words(match)}"
    lines = [head]
    if match.reason is not None:
        lines += why_not(match.reason)
    written: list[Program] = []
    for number, mapping in enumerate(match.ranked[:_SHOWN], 1):
        whole = not any(mapping.program is p for p in written)
        lines += ["", f"mapping {number}: {where(mapping)}", *_details(mapping, whole)]
        written.append(mapping.program)
    rest = match.ranked[_SHOWN:]
    if rest:
        lines += ["", *(f"mapping {n}: {where(m)}" for n, m in enumerate(rest[:_LISTED], _SHOWN + 1))]
    if len(rest) > _LISTED:
        lines.append(f"… and {len(rest) - _LISTED} more")
    lines += [f"  {note}" if note.startswith("fix: ") else f"note: {note}" for note in match.notes]
    return "\n".join(lines)


def verdict_in_words(match: Match) -> str:
    """`match, 3 mappings`."""
    count = f"{match.mapping_count} mapping{'' if match.mapping_count == 1 else 's'}"
    return {
        "match": f"match, {count}",
        "conditional": f"conditional, {count}, each with a condition",
        "no": "no",
        "unknown": "unknown (a limit was met)",
    }[match.verdict]


def where(mapping: Mapping) -> str:
    """A mapping in one line: `i ← j; k ← p; outside: i`."""
    outside = ", ".join(mapping.outer)
    return axes_in_words(mapping.axes) + (f"; outside: {outside}" if outside else "")


def axes_in_words(axes: dict[str, tuple[str, ...]]) -> str:
    """`i ← j; k ← p × q`."""
    parts = [f"{x} ← {' × '.join(fused) if fused else '(padded from 1)'}" for x, fused in axes.items()]
    return "; ".join(parts or ["one element at a time"])


def _details(mapping: Mapping, whole: bool = True) -> list[str]:
    lines = [f"  adapters: {', '.join(mapping.adapters)}"] if mapping.adapters else []
    if mapping.adapters and whole:
        lines += ["  the program becomes", *(f"    {line}" for line in str(mapping.program).splitlines())]
    told = chains(mapping)
    for operand, read in mapping.operands.items():
        words = f"  {operand} holds {show_leaf(read)}"
        through = dict.fromkeys(r.tensor for i in read.index if is_value(i) for r in reads(i))
        if through:
            words += f", gathered through {', '.join(through)}"
        if operand in mapping.replicated:
            words += f", replicated along {', '.join(mapping.replicated[operand])}"
        if operand in mapping.guards:
            value = fill_in_words(mapping, operand, "zero")
            words += f", {value} where {' and '.join(show_leaf(g) for g in mapping.guards[operand])} fails"
        lines.append(words)
        lines += [f"    {step.kind}: {step.text}" for step in told[operand]]
    for axis, (extent, rounded) in mapping.padding.items():
        if extent != rounded:
            more = 100 * (rounded - extent) / extent
            held = {o: fill for o in mapping.padded.get(axis, ()) if (fill := fill_of(mapping, o)).value}
            lines.append(f"  {axis}: {extent} padded to {rounded} with {fills_in_words(held)}, {more:.1f} % more work")
    if mapping.utilisation < 1:
        lines.append(f"  {100 * mapping.utilisation:.3g} % of the lanes are useful")
    lines += [f"  left out: steps where {guard} fails" for guard in left_out(mapping)]
    proved = mapping.certificate.obligations
    lines += [f"  ok {o.part}: {o.statement} ({o.method}, {1e3 * o.seconds:.1f} ms)" for o in proved]
    lines += numerics_lines(mapping)
    lines += [f"  {started}"] if (started := first_step(mapping)) else []
    lines += [f"  if {c.text}" + (" (no weaker bound will do)" if c.tight else "") for c in mapping.conditions]
    lines += [f"  or if {other}" for c in mapping.conditions for other in c.alternatives]
    return lines + [f"  assumes: {a}" for a in mapping.certificate.assumptions]


def why_not(reason: Reason, proofs: bool = True) -> list[str]:
    """Why there is no mapping; with `proofs` what held before."""
    lines = []
    if reason.tried:
        lines.append(f"  furthest with {axes_in_words(reason.tried)}")
    lines += [f"  ok   {o.part}: {o.statement}" for o in reason.proved if proofs]
    lines.append(f"  FAIL {reason.code}: {reason.message}")
    example = reason.counterexample
    if example is not None:
        inputs = ", ".join(f"{k} = {v}" for k, v in example["inputs"].items())
        lines.append(f"  for {inputs}: the program has {example['program']}, the intrinsic {example['intrinsic']}")
    if reason.fix is not None:
        lines.append(f"  fix: {reason.fix}" + (" (verified: then it matches)" if reason.verified else ""))
    return lines
