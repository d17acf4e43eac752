"""Whether a target and the catalogue speak of the same things: names in one that the other lacks are mistakes."""

from __future__ import annotations

from difflib import get_close_matches

from autosched.errors import SpecError, UsageError, nearest
from autosched.machine.target import Target
from autosched.tensorize.spec.catalogue import Catalogue

_ALIKE, _ALIKE_OWN = 0.9, 0.75
"""Similarity (difflib's) from which a feature that nothing requires is a misspelling. Of the isas that are built in,
features that no instruction requires are real ones too (`avx` and `avx2` have 0.86), of one's own they are not."""


def refuse_misspelt(target: Target, known: Catalogue) -> None:
    """SpecError for a rate or an energy of an instruction that nobody describes, and for a feature that nothing
    requires where one that is required, and that the target lacks, is spelt nearly the same."""
    for part, names in (("rates", target.rates), ("energy", target.energy)):
        for name in names:
            if "/" in name and name not in known:
                close = nearest(name, known)
                hint = f"did you mean {close!r}? " if close else ""
                said = f"target {target.name}: units.{part}: no instruction is called {name!r}"
                raise SpecError(said, hint=hint + "give its description with --intrinsics, or leave the figure out")
    own = [o for o in known.outlines() if o.isa == target.isa]
    required = {feature for o in own for feature in o.requires}
    cutoff = _ALIKE if any(o.isa == target.isa for o in Catalogue.builtin().outlines()) else _ALIKE_OWN
    for feature in sorted(target.features - required):
        alike = get_close_matches(feature, sorted(required - target.features), n=1, cutoff=cutoff)
        if alike:
            needs = next(o for o in own if alike[0] in o.requires)
            said = f"target {target.name}: no instruction of {target.isa} requires the feature {feature!r}"
            raise SpecError(said, hint=f"did you mean {alike[0]!r}, which {needs.name} requires? Spell both alike")


def refuse_unknown(target: Target, known: Catalogue) -> None:
    """UsageError for a chip without a host of which no instruction is known: none is given, or those given are of
    another isa, or ask for features that it does not state."""
    own = [o for o in known.outlines() if o.isa == target.isa]
    if target.host or any(target.has(o.requires) for o in own):
        return
    builtin = Catalogue.builtin()
    others = [o for o in known.outlines() if o.isa != target.isa and o.name not in builtin]
    if own:
        lacking = min((o.requires - target.features for o in own), key=len)
        there = ", ".join(sorted(target.features)) or "none"
        hint = f"they require {' and '.join(sorted(lacking))}, and the features of {target.name} are: {there}. "
        raise UsageError(_UNUSABLE.format(own[0].name, len(own) - 1, target.name), hint=hint + "Spell both alike")
    said = f"{target.name} has no host, and no instruction of its isa ({target.isa}) is known"
    if others:
        isas = ", ".join(sorted({o.isa for o in others}))
        raise UsageError(said, hint=f"the files of --intrinsics are of isa {isas}: spell `isa` alike in all files")
    raise UsageError(said, hint="give the file that describes them with --intrinsics")


_UNUSABLE = "{0} and {1} more instructions are known, and {2}, which has no host, can use none of them"
