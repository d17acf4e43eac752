"""Programs with groups side by side: where a group's own depth fills a part of an instruction, or of a line of memory
(`tensorize.adapters.block_diagonal`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autosched.ir.program import Program
from autosched.ir.value import reads
from autosched.tensorize import match_types
from autosched.tensorize.adapters.block_diagonal import block_diagonal, groups_of, met_by_zeros
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.equal import SIGN_OF_ZERO
from autosched.tensorize.body.neutral import said_finite
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.excluded import STRICT, still_open
from autosched.tensorize.matcher.match import match
from autosched.tiling.variants.adapted import Variant

LINE_BYTES = 128
"""Of memory, and of a row of the widest slices that instructions read in shared memory."""
MOST = 2
"""How many numbers of groups in one product are tried for a stage, the greatest first."""


def block_diagonal_programs(program: Program, matches: Sequence[Match], numerics: str) -> Iterator[Variant]:
    """Variants of each stage of small groups whose operands an instruction reads from shared memory: as many groups in
    one product as fill a line with their terms, and fewer."""
    by_stage: dict[str, list[match_types.Mapping]] = {}
    for found in matches:
        plain = [m for m in found.mappings if not m.adapters and not m.conditions and m.intrinsic.shared_memory]
        by_stage.setdefault(found.stage, []).extend(plain)
    for name, mappings in by_stage.items():
        facts = StageFacts(program, program.stage(name))
        groups = groups_of(facts) if mappings else None
        met = met_by_zeros(facts, groups) if groups is not None else None
        if groups is None or met is None:
            continue
        of_floats = facts.update.target.dtype.is_float
        finite = still_open(program, met)[0]
        if (finite and numerics in STRICT) or (of_floats and numerics == "bitwise"):
            continue
        fill = LINE_BYTES * 8 // (groups.term.extent * groups.dense.dtype.bits)
        intrinsics = {m.intrinsic.name: m.intrinsic for m in mappings}
        counts = [n for n in range(fill, 1, -1) if groups.group.extent % n == 0]
        for together in counts[:MOST]:
            made = block_diagonal(facts, groups, together)
            if made is None:
                continue
            again = tuple(match(made.rewrite.after, list(intrinsics.values()), numerics, [made.stage.name]))
            mapping = next((m for answer in again for m in answer.mappings if not m.adapters), None)
            if mapping is not None:
                how = mapping.adapted(made.names, made.obligations)
                said = (*said_finite(finite), SIGN_OF_ZERO) if of_floats else ()
                tensors = tuple(sorted({r.tensor for factor in finite for r in reads(factor)}))
                yield Variant(made.rewrite.after, again, made.names, {made.stage.name: how}, said, tensors)
