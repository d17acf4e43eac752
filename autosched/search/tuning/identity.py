"""Which study a request is of: its name and key, and the way back from a stored study to the request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autosched.costmodel.analytic import clock as clocks
from autosched.costmodel.features import FEATURE_VERSION
from autosched.ir import parse
from autosched.ir.data import prepared_data
from autosched.ir.program import KnownData, Program
from autosched.machine.catalogue import target_yaml
from autosched.machine.spec import target_from_yaml
from autosched.machine.target import Target
from autosched.numerics_levels import of_mappings
from autosched.search.request import TuneRequest
from autosched.store.records import StudyRecord
from autosched.tensorize.explanation.certificate import certificate_json
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.plans.plan import Plan
from autosched.version import __version__

USUAL = {"numerics": "reassociated", "conditions": "guard"}
"""Of studies whose key does not name it."""


def versions_of(plans: Sequence[Plan]) -> dict[str, str]:
    """What the rows of these plans mean depends on: fields of a study's key."""
    return {
        "intrinsics": _digest(f"{i.name} {i.version}" for p in plans for i in _intrinsics(p)),
        "spaces": _digest(f"{p.name} {p.space.version}" for p in plans),
    }


def study_record(request: TuneRequest, described: Mapping[str, Any], plans: Sequence[Plan]) -> StudyRecord:
    """The study's name and key: everything that its results depend on. `described`: what its device says of itself."""
    program, target = request.program, request.target
    key = {
        "program": str(program),
        "target": f"{target.name} {target.version}",
        "device": " ".join(f"{k}={v}" for k, v in sorted(described.items())),
        **versions_of(plans),
        "clock": clocks.version(target),
        "autosched": __version__,
    }
    # What is accepted and what is assumed decides which steps a kernel of the same plan and row may leave out.
    # A rewrite that only `rescaled` allows makes plans of its own, which `spaces` tells.
    asked = {"numerics": of_mappings(request.numerics), "conditions": request.conditions}
    key |= {option: value for option, value in asked.items() if value != USUAL[option]}
    if program.data:
        key["data"] = " ".join(f"{name}={d.sha256}" for name, d in sorted(program.data.items()))
    return StudyRecord(
        name=study_name(program, target, str(described.get("name", request.device)), key),
        key=key,
        program=str(program),
        program_name=program.name,
        target=target.name,
        device=str(described.get("name", request.device)),
        seed=request.seed,
        settings={
            "threads": request.threads,
            "cache": request.cache,
            "objective": request.objective,
            "only": list(request.only),
            "families": list(request.families),
            "numerics": request.numerics,
            "features": FEATURE_VERSION,
            "warm_from": [name for e in request.earlier for name in e.studies],
            "intrinsics": list(request.intrinsic_paths),
            "target": target_yaml(target),
            "certificates": {p.name: [certificate_json(m) for m in p.mappings] for p in plans},
            "rewrites": {p.name: [r.as_json() for r in p.rewrites] for p in plans if p.rewrites},
            "conditions": request.conditions,
            "data": data_of(program, plans),
        },
    )


def study_name(program: Program, target: Target, device: str, key: dict[str, str]) -> str:
    """A readable name that ends in a digest of the key: program, sizes and dtypes, target, device.

    The same command gives the same name; results that must not be mixed (another version, other instructions, an edited
    program) get a study of their own, and nothing is lost.
    """
    sizes = [f"{k}{v}" for k, v in program.sizes.items()]
    dtypes = list(dict.fromkeys(program.dtypes.values())) or list(
        dict.fromkeys(program.tensors[p].dtype.name for p in program.parameters if p in program.tensors)
    )
    parts = [program.name, "-".join([*sizes, *dtypes])]
    digest = _digest(f"{k}={v}" for k, v in key.items())[:6]
    return "-".join(p for p in parts if p) + f"@{target.name}-{device}-{digest}"


def reopen(record: StudyRecord, catalogue: Catalogue) -> TuneRequest:
    """The request that a stored study came from, as far as plans depend on it: enough to lower any of its trials.

    `catalogue` must hold the study's own intrinsics (`record.settings["intrinsics"]` are their files).
    """
    settings = record.settings
    program = with_stored_data(parse(record.program, filename=record.name), settings.get("data", {}))
    return TuneRequest(
        program,
        target_from_yaml(settings["target"], record.name),
        device=record.device,
        threads=int(settings["threads"]),
        cache=settings["cache"],
        objective=settings.get("objective", "latency"),
        only=tuple(settings["only"]),
        families=tuple(settings.get("families", ())),
        numerics=settings["numerics"],
        catalogue=catalogue,
        seed=record.seed,
        conditions=settings.get("conditions", "refuse"),
    )


def data_of(program: Program, plans: Iterable[Plan]) -> dict[str, dict[str, Any]]:
    """What is known of constant data and of what is prepared from it, as plain values for a stored study."""
    found: dict[str, KnownData] = dict(program.data)
    for plan in plans:
        found |= prepared_data(plan.program) if plan.program.data else {}
    return {
        name: {"sha256": d.sha256, "low": d.low, "high": d.high, "holds": dict(d.holds)} for name, d in found.items()
    }


def with_stored_data(program: Program, data: Mapping[str, Mapping[str, Any]]) -> Program:
    """The program with what a stored study knew of its data: enough to lay out the same plans without the values."""
    known = {n: KnownData(d["sha256"], d["low"], d["high"], None, dict(d["holds"])) for n, d in data.items()}
    return replace(program, data=known) if known else program


def _intrinsics(plan: Plan) -> list[Intrinsic]:
    """What times depend on too: a chip's copies, functions and configs, and what finishes sums."""
    units = plan.units
    beside = (*units.copies, *units.functions, *units.configs, *units.finishing.values())
    return [*(p.nest.intrinsic for p in plan.tensor_parts), *beside]


def _digest(lines: Any) -> str:
    return hashlib.sha256("\n".join(sorted(set(lines))).encode()).hexdigest()[:16]
