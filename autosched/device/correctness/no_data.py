"""What to assume of data that are subscripts, where random ones leave the tensors that they index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from autosched.errors import DataError
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.oracle.indexed import indexed_range, subscripts
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.value import reads


@contextmanager
def data_errors(program: Program) -> Iterator[None]:
    """Says with a DataError what to assume of the program's data."""
    try:
        yield
    except DataError as outside:
        if not (said := _to_assume(program)):
            raise
        text = f"{outside.message}: {said}"
        raise DataError(text, hint=outside.hint, location=outside.location) from None


def _to_assume(program: Program) -> str:
    """Assumptions with which subscripts stay inside; of data for which none was found, what they have to see to."""
    free = replace(program, assumptions=())
    said: dict[str, None] = {}
    for stage in program.stages:
        for tensor, d, index in subscripts(stage):
            place = f"{print_value(index)}, the index of dimension {d} of {tensor},"
            unknown = []
            for name in dict.fromkeys(r.tensor for r in reads(index) if r.tensor in program.inputs):
                inside, (low, high) = indexed_range(program, name), assumed_range(program, name)
                if inside is not None and (low is None or low <= inside[1]) and (high is None or inside[0] <= high):
                    continue  # data are drawn there
                inside = indexed_range(free, name)
                if inside is None:
                    unknown.append(name)
                else:
                    said[f"assume({inside[0]} <= {name} <= {inside[1]}), with which {place} stays inside"] = None
            if unknown:
                last = program.tensors[tensor].extents[d] - 1
                said[f"an assume about {' and '.join(unknown)} that keeps {place} from 0 to {last}"] = None
    return f"the program needs {' and '.join(said)}" if said else ""
