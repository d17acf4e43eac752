"""Whether mappings compute their program: executed by `tests/fuzz`, in plain Python, beside it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
from fuzz.mapped import Tiles
from fuzz.matches import Findings, compare, counterexample

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tensorize import Catalogue, Intrinsic, Mapping, Match, match, to_json
from autosched.tensorize.spec.load import load_text

CATALOGUE = Catalogue.builtin()


def made_up(semantics: str, numerics: str = "{accumulate: exact}", texts: bool = False) -> Intrinsic:
    """`texts`: with a text, the target's new value."""
    body = "".join(f"      {line}\n" for line in semantics.strip().splitlines())
    text = f"isa: test\nintrinsics:\n  - name: made.up\n    semantics: |\n{body}    numerics: {numerics}\n"
    if texts:
        names = parse(semantics).parameters
        text += f"    operands: {{{', '.join(f'{n}: {{register: {{c: v}}}}' for n in names)}}}\n"
        text += f"    emit: {{c: 'f({', '.join(f'{{{n}}}' for n in names)})'}}\n"
    return load_text(text)[0]


def check(program: Program, intrinsic: Intrinsic, seed: int, numerics: str = "reassociated", most: int = 12) -> Match:
    """What is answered, after executing up to `most` of its mappings."""
    (found,) = match(program, [intrinsic], numerics)
    json.dumps(to_json(found), allow_nan=False)
    findings = Findings()
    if found.reason is not None:
        counterexample(program, found, findings)
    for mapping in found.mappings[:: -(-len(found.mappings) // most) or 1]:
        compare(program, mapping, numerics, Random(seed), findings)
    return found


def execute(mapping: Mapping, arrays: dict[str, Any]) -> Any:
    """The tensor that the mapped stage writes; each tensor of the stage is in `arrays`, what it adds to as well."""
    memory = {name: {at: array[at].item() for at in np.ndindex(array.shape)} for name, array in arrays.items()}
    Tiles(mapping, Random(0)).run(memory, keep_order=False)
    written = arrays[mapping.stage.assign.tensor].copy()
    for at, value in memory[mapping.stage.assign.tensor].items():
        written[at] = value
    return written
