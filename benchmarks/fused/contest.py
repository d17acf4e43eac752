"""A tuned chain against its peers, its parts as kernels of ours, and a roofline, interleaved in one process.

Every other side is timed next to the chain: other, chain, next other, chain, … over rounds, in alternating order. A
ratio is the median of ratios of neighbours in time, as speeds (operations a second): above 1 the chain is faster. Both
samples of a pair last as long: on a busy machine the shorter ones escape other processes' turns, and would look faster.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

from autosched.ir.program import Program
from benchmarks.common import contest, cpus
from benchmarks.common.sampling import SAMPLE_S, Times, quartiles, repeats_of, time_calls
from benchmarks.fused.cases import Apart, Case, Part
from benchmarks.peers.task import Array, Contender, Task

LIMIT_S = 3600.0
LEAST_ROUNDS = 3
"""Of a comparison whose calls take so long that its budget is soon spent."""
PEER, OWN, BOUND = "peer", "own", "bound"


@dataclass(frozen=True)
class Bout:
    """`study` is the chain's, `apart` those of the parts by the name of what they are parts of. After `budget_s` no
    round begins, but for the first few."""

    case: Case
    store: str
    study: str
    apart: dict[str, list[str]]
    threads: int
    rounds: int
    budget_s: float


@dataclass(frozen=True)
class Against:
    """`kind`: a library, kernels of ours, or a limit of the machine. `seconds` are of its own operations; `ratio` is of
    speeds. `asked`: the least that is asked, 0 for nothing."""

    name: str
    kind: str
    seconds: Times
    ratio: Times
    asked: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """`notes`: peers that are missing and why; `wrong`: sides whose results differ from the chain's, which are not
    timed. `roofline`: what the bound counts."""

    seconds: Times
    operations: float
    against: list[Against]
    rounds: int
    peak_ops: float
    peak_name: str
    cpu: str
    versions: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    roofline: str = ""


def compare(bout: Bout) -> Outcome | str:
    """The outcome, or why there is none."""
    found = contest.ask("benchmarks.fused.contest", asdict(bout), bout.threads, LIMIT_S)
    return found if isinstance(found, str) else outcome_from(found)


def outcome_from(data: dict[str, Any]) -> Outcome:
    against = [Against(**a | {"seconds": tuple(a["seconds"]), "ratio": tuple(a["ratio"])}) for a in data["against"]]
    return Outcome(**data | {"seconds": tuple(data["seconds"]), "against": against})


def case_from(data: dict[str, Any]) -> Case:
    apart = [Apart(**a | {"parts": tuple(Part(**p) for p in a["parts"])}) for a in data["apart"]]
    return Case(**data | {"apart": tuple(apart)})


def bout_from(data: dict[str, Any]) -> Bout:
    return Bout(**data | {"case": case_from(data["case"])})


def prepared(program: Program, arrays: Mapping[str, Array]) -> None:
    """Scales of weights are positive, and 8-bit weights with one scale a column have no zero point, as libraries have
    them: the same program on data that all sides can take."""
    if {"W", "S", "Z"} <= arrays.keys():
        arrays["S"][...] = 0.5 + np.abs(arrays["S"]) / 2
        if len(arrays["Z"]) == 1 and program.tensors["Z"].dtype.bits == 8:
            arrays["Z"][...] = 0


@dataclass(frozen=True)
class _Side:
    """`pair` times it and the chain, in this order. `share`: the chain's operations over this side's."""

    name: str
    kind: str
    pair: Callable[[], tuple[float, float]]
    share: float = 1.0
    asked: float = 0.0


def _compare(bout: Bout) -> Outcome:
    from autosched.machine.detect import cpu_model

    own = cpus.chosen(bout.threads)
    cpus.hold(own)  # before torch is loaded, which starts threads
    from benchmarks.common.kernel import load_kernel
    from benchmarks.common.peak import Peak
    from benchmarks.fused import torch_peers
    from benchmarks.peers import torch_peer

    case = bout.case
    peers: list[Contender] = []
    notes: dict[str, str] = {}

    def meet(program: Program, arrays: dict[str, Array]) -> None:
        prepared(program, arrays)
        task = Task(program, {n: arrays[n] for n in program.inputs}, own, packed=True)
        found, missing = torch_peers.contenders(task)
        peers.extend(found)
        notes.update(missing)

    chain = load_kernel(bout.store, bout.study, meet)
    program = chain.program
    memory = dict(chain.arrays)
    apart = {a.name: _together(bout, a, memory) for a in case.apart}
    cpus.place(own)
    chain.run()
    result = chain.arrays[program.outputs[0]]
    wrong: dict[str, str] = {}
    sides: list[_Side] = []
    for peer in peers:
        peer.run()
        if differs := peer.difference(result):
            wrong[peer.name] = differs
        else:
            sides.append(_Side(peer.name, PEER, _pair(peer.run, chain.run), asked=case.of_peers))
    for kernels in case.apart:
        run = apart[kernels.name]
        run()
        if kernels.result:
            got = partial(memory[kernels.result].reshape, result.shape)
            if differs := Contender(kernels.name, OWN, run, got).difference(result):
                wrong[kernels.name] = differs
                continue
        sides.append(
            _Side(kernels.name, OWN, _pair(run, chain.run), case.operations / kernels.operations, kernels.asked)
        )
    bounds, said = _roofline(program, case, bout.threads, chain.run)
    sides += bounds
    peak = Peak(program, bout.threads)
    with cpus.everywhere(own):
        peak.sample()
    samples: dict[str, list[tuple[float, float]]] = {s.name: [] for s in sides}
    alone: list[float] = []
    until, rounds = time.monotonic() + bout.budget_s, 0
    while rounds < bout.rounds and (rounds < LEAST_ROUNDS or time.monotonic() < until):
        for side in sides if rounds % 2 else sides[::-1]:
            samples[side.name].append(side.pair())
        if not sides:
            alone.append(time_calls(chain.run, repeats_of(chain.run)))
        rounds += 1
    with cpus.everywhere(own):
        peak.sample()
    against = [
        Against(s.name, s.kind, quartiles([t for t, _ in samples[s.name]]),
                quartiles([t / o * s.share for t, o in samples[s.name]]), s.asked)
        for s in sides
    ]  # fmt: skip
    if bounds:
        nearer = [max(theirs) for theirs in zip(*([t for t, _ in samples[b.name]] for b in bounds), strict=True)]
        mine = [o for _, o in samples[bounds[0].name]]
        ratios = [t / o for t, o in zip(nearer, mine, strict=True)]
        against.append(Against("roofline", BOUND, quartiles(nearer), quartiles(ratios), case.roofline))
    return Outcome(
        quartiles([o for pairs in samples.values() for _, o in pairs] + alone), case.operations, against, rounds,
        peak.operations_per_s, peak.name, cpu_model(), torch_peer.version(), notes, wrong, said,
    )  # fmt: skip


def _pair(other: Callable[[], Any], chain: Callable[[], Any]) -> Callable[[], tuple[float, float]]:
    calls = (other, chain)
    once = [time_calls(call, repeats_of(call)) for call in calls]
    lasting = max(SAMPLE_S, *once)
    repeats = [max(1, round(lasting / each)) for each in once]
    return lambda: (time_calls(other, repeats[0]), time_calls(chain, repeats[1]))


def _together(bout: Bout, kernels: Apart, memory: dict[str, Array]) -> Callable[[], None]:
    """The parts as one call. What they hand on lies in one place, and their inputs where the chain's do."""
    from benchmarks.common.kernel import load_kernel

    runs = []
    for part, study in zip(kernels.parts, bout.apart[kernels.name], strict=True):
        given = {inner: memory[outer] for inner, outer in part.names.items() if outer in memory}
        loaded = load_kernel(bout.store, study, lambda program, arrays: None, given)
        memory |= {outer: loaded.arrays[inner] for inner, outer in part.names.items() if outer not in memory}
        runs.append(loaded.run)

    def run() -> None:
        for each in runs:
            each()

    return run


def _roofline(program: Program, case: Case, threads: int, chain: Callable[[], Any]) -> tuple[list[_Side], str]:
    """The two limits of a product on narrow weights, as sides: a plain loop over as many bytes, and conversions."""
    if not case.weights:
        return [], ""
    from benchmarks.common.stream import KINDS, Stream
    from benchmarks.common.work import work_of
    from benchmarks.fused.conversions import SEQUENCE, Conversions, known

    work, weights = work_of(program), program.tensors[case.weights]
    count, bits = prod(weights.extents), weights.dtype.bits
    stream, loops = Stream(work.bytes_in, work.bytes_out, threads), {s: Conversions(s) for s in known(bits)}
    sequence = max(loops, key=lambda s: max(loops[s].sample() for _ in range(LEAST_ROUNDS)))
    convert = loops[sequence]
    fastest = min(KINDS, key=lambda kind: min(stream.sample(kind) for _ in range(LEAST_ROUNDS)))
    repeats = repeats_of(chain)

    def ours() -> float:
        return time_calls(chain, repeats)

    sides = [
        _Side(f"loop over the bytes ({fastest})", BOUND, lambda: (stream.sample(fastest), ours())),
        _Side("conversions", BOUND, lambda: (count / (convert.sample() * threads), ours())),
    ]
    return sides, f"{work.bytes_in + work.bytes_out} bytes; {count} weights of {bits} bits: {SEQUENCE[sequence]}"


if __name__ == "__main__":
    print(json.dumps(asdict(_compare(bout_from(json.load(sys.stdin))))))
