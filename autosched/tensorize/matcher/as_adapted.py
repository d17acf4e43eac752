"""Mappings of a program that adapters made from another one, as mappings of that one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from autosched.tensorize.conditions.origin import at_origin
from autosched.tensorize.match_types import Certificate, Mapping, Obligation


@dataclass
class AsAdapted:
    """Adds to mappings which adapters led there (`names`), what was proved of them, what is assumed of what meets their
    zeros (`met`: each with the tensors that it names), and that they sum in another order (`reorders`). Many mappings
    share a certificate, and still do so then."""

    names: tuple[str, ...]
    proved: tuple[Obligation, ...]
    met: tuple[tuple[str, ...], ...]
    reorders: bool
    _known: dict[int, tuple[Certificate, Certificate]] = field(default_factory=dict, repr=False)

    def __call__(self, mapping: Mapping) -> Mapping:
        return replace(
            mapping,
            conditions=tuple([at_origin(mapping.program, c) for c in mapping.conditions]),
            adapters=(*self.names, *mapping.adapters),
            certificate=self._certificate(mapping.certificate),
            met=tuple(dict.fromkeys((*mapping.met, *self.met))),
            finite=tuple(sorted({*mapping.finite, *(t for _, *tensors in self.met for t in tensors)})),
        )

    def _certificate(self, before: Certificate) -> Certificate:
        if id(before) not in self._known:
            weaker = (self.reorders or self.met) and before.numerics == "bitwise"
            after = replace(
                before,
                obligations=(*self.proved, *before.obligations),
                numerics="reassociated" if weaker else before.numerics,
                assumptions=tuple(dict.fromkeys((*before.assumptions, *(said for said, *_ in self.met)))),
            )
            self._known[id(before)] = before, after  # kept, so that no other object takes its place
        return self._known[id(before)][1]
