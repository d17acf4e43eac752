"""Whether a target and the catalogue speak of the same things: names in one that the other lacks are mistakes."""

from __future__ import annotations

from difflib import get_close_matches

from autosched.errors import SpecError, nearest
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
