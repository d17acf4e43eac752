"""Misspelt features: a `requires` that names none of its backend's, and nearly names one.

An instruction of one's own may require a feature of one's own, which a target's file then lists. So a name is refused
only where a feature that exists is spelt nearly the same, or has it as one of its words. Isas without a backend of
their own have the features that their files say.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from autosched.backends import backend_of

ALIKE = 0.8
"""Similarity (difflib's) from which an unknown name is a misspelling."""


def misspelt(feature: str, isa: str) -> str | None:
    """The feature of this isa that must be meant; None where `feature` is one, or may be one of the user's own.

    >>> misspelt("avx512vnni", "x86"), misspelt("avx2", "x86"), misspelt("matrix_engine", "x86")
    ('avx512_vnni', None, None)
    """
    backend = backend_of(isa)
    known = backend.features
    if feature in known or re.fullmatch(backend.numbered, feature):
        return None
    plain = {name.replace("_", ""): name for name in sorted(known)}
    close = get_close_matches(re.sub("[-_.]", "", feature.lower()), plain, n=1, cutoff=ALIKE)
    if close:
        return plain[close[0]]
    return next((name for name in sorted(known) if feature.lower() in name.split("_")[1:]), None)
