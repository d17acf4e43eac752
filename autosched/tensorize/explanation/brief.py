"""The answer in some lines: the mappings, best first, with how well each fills the instruction; no proofs."""

from __future__ import annotations

from autosched.tensorize.explanation.text import verdict_in_words, where, why_not
from autosched.tensorize.match_types import Mapping, Match

_MAPPINGS = 8


def brief(match: Match) -> str:
    """Readable text of some twenty lines at most, without a trailing newline."""
    lines = [f"{match.program.name}, stage {match.stage}, on {match.intrinsic.name}: {verdict_in_words(match)}"]
    if match.reason is not None:
        lines += why_not(match.reason, proofs=False)
    shown = match.ranked[:_MAPPINGS]
    lines += [f"  {n}: {where(m)}{filling(m)}{_by(m)}" for n, m in enumerate(shown, 1)]
    if len(match.ranked) > _MAPPINGS:
        lines.append(f"  … and {len(match.ranked) - _MAPPINGS} more")
    levels = dict.fromkeys(
        m.numerics + (f", error at most {m.certificate.error_bound}" if m.certificate.error_bound else "")
        for m in match.mappings
    )
    lines += [f"  numerics: {level}" for level in levels]
    lines += dict.fromkeys(f"  if {c.text}" for m in match.ranked for c in m.conditions)
    lines += dict.fromkeys(f"  assumes: {a}" for m in match.ranked for a in m.certificate.assumptions)
    lines += [f"  {n}" for n in match.notes if n.startswith("fix: ") or match.verdict == "unknown"]
    return "\n".join(lines)


def filling(mapping: Mapping) -> str:
    """`; 75.0 % of the lanes (k: 3 of 4)`, and nothing of a mapping that wastes none."""
    padded = [f"{x}: {n} of {whole}" for x, (n, whole) in mapping.issued.items() if n != whole]
    return f"; {100 * mapping.utilisation:.3g} % of the lanes useful ({', '.join(padded)})" if padded else ""


def _by(mapping: Mapping) -> str:
    return f"; adapters: {', '.join(mapping.adapters)}" if mapping.adapters else ""
