"""Misspelt features and isas: a `requires` that names none of its backend's, and nearly names one; `isa: x68`.

An instruction of one's own may require a feature of one's own, which a target's file then lists. So a name is refused
only where a feature that exists is spelt nearly the same, or has it as one of its words. Isas without a backend of
their own have the features that their files say.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from autosched.backends import BACKENDS, backend_of
from autosched.backends.plugged import plugged_isas

ALIKE = 0.8
"""Similarity (difflib's) from which an unknown name is a misspelling."""
SHORT = 4
"""Letters from which a name that differs by one of them is a misspelling, too."""


def misspelt(feature: str, isa: str) -> str | None:
    """The feature of this isa that must be meant; None where `feature` is one, or may be one of the user's own.

    >>> [misspelt(name, "x86") for name in ("avx512vnni", "axv2", "avx2", "matrix_engine")]
    ['avx512_vnni', 'avx2', None, None]
    """
    backend = backend_of(isa)
    known = backend.features
    if feature in known or re.fullmatch(backend.numbered, feature):
        return None
    plain = {name.replace("_", ""): name for name in sorted(known)}
    asked = re.sub("[-_.]", "", feature.lower())
    close = get_close_matches(asked, plain, n=1, cutoff=ALIKE) or [p for p in plain if _one_slip(asked, p)]
    if close:
        return plain[close[0]]
    return next((name for name in sorted(known) if feature.lower() in name.split("_")[1:]), None)


def _one_slip(name: str, known: str) -> bool:
    """Whether short names differ by one letter, or by two neighbours in the other order; other digits are another
    machine's."""
    if min(len(name), len(known)) < SHORT or re.sub(r"\D", "", name) != re.sub(r"\D", "", known):
        return False
    differs = [k for k, (a, b) in enumerate(zip(name, known, strict=False)) if a != b]
    if len(name) == len(known):
        swapped = len(differs) == 2 and differs[1] == differs[0] + 1 and sorted(name) == sorted(known)
        return swapped or len(differs) == 1
    longer, shorter = sorted((name, known), key=len, reverse=True)
    return any(longer[:k] + longer[k + 1 :] == shorter for k in range(len(longer)))


def misspelt_isa(isa: str) -> str | None:
    """The question that names the isa which must be meant: one that has these letters in another order, one more or
    one less, or whose machines are called so. None of a known isa, and of one that may be the user's own.

    >>> misspelt_isa("x68"), misspelt_isa("amd64"), misspelt_isa("x86"), misspelt_isa("npu")
    ("did you mean 'x86'?", "did you mean 'x86'?", None, None)
    """
    if isa in BACKENDS or isa in (others := plugged_isas()):
        return None
    names = {name: of.isa for of in BACKENDS.values() for name in (of.isa, *of.machines)} | {n: n for n in others}
    swapped = [name for name in names if sorted(name) == sorted(isa)]
    alike = [isa] if isa in names else swapped or get_close_matches(isa, sorted(names), n=1, cutoff=ALIKE)
    return f"did you mean {names[alike[0]]!r}?" if alike else None


def isa_hint(meant: str) -> str:
    """What helps where an isa is misspelt."""
    known = ", ".join(sorted({*BACKENDS, *plugged_isas()}))
    return f"{meant} known: {known}; a machine of your own needs a name that is less like these"
