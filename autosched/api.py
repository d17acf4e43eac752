"""The Python interface: names and texts in, values of the rooms out. What the command line calls too.

>>> import autosched
>>> gemm = autosched.workload("matmul", m=64, n=64, k=64, a="u8", b="s8")
>>> autosched.match(gemm, "x86/vpdpbusd.zmm").verdict
'match'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosched.errors import UsageError
from autosched.given import checked
from autosched.ir import Program, einsum, load, resolve, workload
from autosched.ir import parse as parse_text
from autosched.ir.data import with_data
from autosched.machine.target import Target
from autosched.numerics_levels import NUMERICS_LEVELS
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.catalogue import load as load_yaml
from autosched.tune_options import LOOKED_UP, TuneOptions

if TYPE_CHECKING:
    from autosched.costmodel.learned.pretrained import Earlier
    from autosched.device.protocol import Device
    from autosched.ir.rewrites.verdict import RewriteVerdict
    from autosched.report.comparison import StrategyComparison
    from autosched.search.evaluate.compare import RunListener
    from autosched.search.evaluate.given_models import ModelFactory
    from autosched.search.events import Event, Listener
    from autosched.search.protocol import Factory
    from autosched.search.tuning.many import TunedAll
    from autosched.search.tuning.study import Study
    from autosched.store.protocol import Store
    from autosched.store.recorded_space import RecordedSpace

_LATER = {
    "Factory": "autosched.search.protocol:Factory",
    "Listener": "autosched.search.events:Listener",
    "Event": "autosched.search.events:Event",
    "ModelFactory": "autosched.search.evaluate.given_models:ModelFactory",
    "RecordedSpace": "autosched.store.recorded_space:RecordedSpace",
    "RunListener": "autosched.search.evaluate.compare:RunListener",
    "Store": "autosched.store.protocol:Store",
    "Study": "autosched.search.tuning.study:Study",
}
"""Types of annotations that are imported at the first check, not at the start."""
_HOW = {Program: "make one with autosched.workload(name, …), .load(path, …), .einsum(…) or .parse(text, …)"}
_taking = checked(_LATER, but=LOOKED_UP, hints=_HOW)
"""Refuses arguments of wrong types, except names that are looked up: the look-up has better messages."""

_loaded: list[Intrinsic] = []
"""Intrinsics added by `intrinsics.load` in this process, on top of the built-in catalogue."""


@_taking
def parse(
    text: str,
    /,
    filename: str = "<text>",
    function: str | None = None,
    *,
    sizes: Mapping[str, Any] | None = None,
    **defines: Any,
) -> Program:
    """The program written in `text`; `defines` set its sizes and dtypes as `load` does (or `sizes`, as a mapping).

    `function` names one of several, `filename` is what messages call the text. Raises ProgramError with the place.

    >>> parse("def fill(A: f32[n], *, n=8):\\n    for i in range(n):\\n        A[i] = 1", n=4).sizes
    {'n': 4}
    """
    return parse_text(text, filename, function, {**(sizes or {}), **defines})


@_taking
def load_intrinsics(path_or_text: str | Path) -> tuple[Intrinsic, ...]:
    """Add the intrinsics of a YAML file (or its text) to the catalogue that names are looked up in.

    A name that was loaded before is replaced. Raises SpecError for a file that is not consistent.
    """
    found = load_yaml(path_or_text)
    names = {i.name for i in found}
    _loaded[:] = [i for i in _loaded if i.name not in names] + list(found)
    return found


@_taking
def catalogue(paths: Iterable[str | Path] = ()) -> Catalogue:
    """The built-in intrinsics, what `intrinsics.load` added, and those of `paths` (files or folders)."""
    known = Catalogue.builtin()
    if _loaded:
        known = known.with_intrinsics(_loaded)
    paths = tuple(paths)
    return known.with_paths(paths) if paths else known


@_taking
def match(
    program: Program,
    intrinsics: str | Intrinsic | Sequence[str | Intrinsic] | None = None,
    *,
    numerics: str = TuneOptions.numerics,
    known: Catalogue | None = None,
    rule: str = "superset",
    dump_smt: str | Path | None = None,
    data: Mapping[str, Any] | None = None,
    target: str | Path | Target | None = None,
    adapt: bool = True,
) -> Any:
    """Which intrinsics can compute the program: a `Match` where one intrinsic is named, else a list of them.

    `intrinsics` is a name, a glob, several of them, or None for the whole catalogue. `rule` is `superset`, or `amos`
    for the mappings that the published rule counts. `dump_smt` is a folder for the solver's questions, as SMT-LIB.
    `data` are the values of const tensors, by name: conditions that they meet are discharged. `target` chooses the
    numerics contract of intrinsics that have several. Without `adapt` every stage is taken as it stands.
    Raises UnknownNameError, UsageError.
    """
    from autosched.tensorize.matcher.match import match as find

    program = with_data(program, data or {})
    known = known or catalogue()
    if isinstance(intrinsics, Intrinsic):
        chosen: tuple[Intrinsic, ...] = (intrinsics,)
    elif intrinsics is None:
        chosen = tuple(known[n] for n in known)
    elif isinstance(intrinsics, str):
        chosen = known.select([intrinsics])
    else:
        made = tuple(i for i in intrinsics if isinstance(i, Intrinsic))
        names = [i for i in intrinsics if isinstance(i, str)]
        chosen = made + (known.select(names) if names else ())
    if target is not None:
        features = _agreed(target, known).features
        chosen = tuple(i.on(features) for i in chosen)
    folder = None if dump_smt is None else Path(dump_smt)
    found: list[Match] = find(program, chosen, numerics=numerics, rule=rule, dump_smt=folder, adapt=adapt)
    single = isinstance(intrinsics, str | Intrinsic) and len(found) == 1
    return found[0] if single else found


@_taking
def rewrites(
    program: Program,
    *,
    numerics: str = TuneOptions.numerics,
    block: int = 32,
    parts: int = 1,
    tile: int | None = None,
    only: Sequence[str] | None = None,
    dump_smt: str | Path | None = None,
) -> list[RewriteVerdict]:
    """Proved steps from the program to one that computes the same, and those that were tried and refused.

    Each `RewriteVerdict` has a `verdict`, the obligations that z3 proved, the `numerics` level that it needs, and the
    program that results (`after`). `block` is how many iterations of an axis share one look at a running reference;
    with `parts` above 1, parts of the axis know nothing of each other, and their states are merged. With `tile`, that
    many rows share a block, and stages that only the pass reads are computed inside it. `only`: rewrites of these
    names; factors of sums that `online` takes out are `defer`'s where `online` is not among them.
    `dump_smt` is a folder for the solver's questions, as SMT-LIB. Raises UsageError.

    >>> softmax = workload("softmax", m=4, n=64)
    >>> [(v.name, v.verdict, v.rescale) for v in rewrites(softmax)]
    [('online', 'proved', {'S': "exp(M - M')"}), ('stage', 'proved', {})]
    """
    from autosched.ir.rewrites.listing import NAMES, rewrites_of
    from autosched.logic.questions import written_to

    if numerics not in NUMERICS_LEVELS:
        raise UsageError(f"numerics {numerics!r} is no level", hint=f"one of {', '.join(NUMERICS_LEVELS)}")
    for name, count in (("block", block), ("parts", parts), ("tile", 1 if tile is None else tile)):
        if count < 1:
            raise UsageError(f"{name}={count} holds nothing", hint="give 1 or more")
    for name in only or ():
        if name not in NAMES:
            raise UsageError(f"no rewrite is called {name!r}", hint=f"one of {', '.join(map(repr, NAMES))}")
    with written_to(None if dump_smt is None else Path(dump_smt)):
        return list(rewrites_of(program, numerics, block, parts, tile, NAMES if only is None else only))


@_taking
def target(name: str | Path | Target = "native", *, cache: Path | None = None) -> Target:
    """A target by name or YAML file; `native` describes this machine, with quickly measured rates.

    `cache` is a file in which measured figures are kept for the next time.
    """
    from autosched.machine.catalogue import load_target

    if isinstance(name, Target):
        return name
    return load_target(name, native=lambda: native_target(cache))


def native_target(cache: Path | None = None) -> Target:
    """This machine, with measured instruction rates (from `cache` where it holds them)."""
    from autosched.device.cpu import native_target as native

    return native.native_target(host_intrinsics(), cache=cache)[0]


def host_intrinsics() -> tuple[Intrinsic, ...]:
    """The intrinsics of this machine's own instruction set that it has, with those that were loaded."""
    from autosched.machine.detect import detect

    here = detect()
    return catalogue().of_isa(here.isa, features=here.features)


def _agreed(given: str | Path | Target, known: Catalogue) -> Target:
    """The target; one from a file is checked against the catalogue."""
    from autosched.machine.agree import refuse_misspelt

    found = target(given)
    if not isinstance(given, Target):
        refuse_misspelt(found, known)
    return found


@_taking
def store(where: str | Path | Store | None) -> Any:
    """The store at a path, `sqlite:///path` or `:memory:`; a store is returned as it is."""
    from autosched.store.sqlite import SqliteStore

    return SqliteStore(str(where)) if isinstance(where, str | Path) else where


_as_target, _as_store = target, store  # where a parameter has the function's name


@_taking
def tune(
    program: Program,
    target: str | Path | Target = "native",
    *,
    device: str = TuneOptions.device,
    trials: int = TuneOptions.trials,
    timeout: float | None = None,
    strategy: str = TuneOptions.strategy,
    cost_model: str = TuneOptions.cost_model,
    seed: int = TuneOptions.seed,
    threads: int = TuneOptions.threads,
    store: str | Path | Store | None = None,
    intrinsics: str | Sequence[str] | None = None,
    plans: str | Sequence[str] | None = None,
    numerics: str = TuneOptions.numerics,
    cache: str = TuneOptions.cache,
    objective: str = TuneOptions.objective,
    emulate: bool = TuneOptions.emulate,
    noise: float | None = TuneOptions.noise,
    conditions: str = TuneOptions.conditions,
    data: Mapping[str, Any] | None = None,
    fresh: bool = TuneOptions.fresh,
    schedule: str | Path | None = None,
    until: float | None = None,
    least_gain: float | None = None,
    warm_from: Sequence[Study | str | Path] = (),
    on_event: Listener | None = None,
) -> Study:
    """Search, measure, and return the study: `study.best.build()` is the kernel as a callable.

    `intrinsics` are names or globs of those to consider, or None for all that the target has; `plans` are families of
    plans (`one pass`, `tiles`, … as docs/cli.md has them), or None for all.
    `conditions` says what becomes of instructions that are right for some values only: `guard` (a check in the kernel,
    and a fallback), `refuse` or `assume`. `data` are the values of const tensors, by name: the kernel is theirs alone.
    `objective` is `latency`; on the simulator also `energy` or `edp` (joules times seconds), for a target that has
    figures for them. `emulate`: the simulator checks kernels of a CUDA target as printed, on the emulated GPU,
    and its samples deviate by the share `noise` (0 is none; 1 % unless the target is an accelerator with scratchpads).
    `schedule` is a file that `autosched export -o FILE.json` wrote: it is measured first, and refused with the rules
    that it breaks. `timeout` in seconds. The search ends sooner where a call takes `until` seconds or less, or where
    one more trial is expected to save less than the share `least_gain` (0.01 is 1 %). The cost model learns first from
    `warm_from`: studies, and files of recordings, of other shapes too. With a `store` the study continues where an
    earlier call left off. Raises NoScheduleError when no candidate survived, and what TuneRequest refuses.
    """
    from autosched.search.request import TuneRequest
    from autosched.search.stopping import Goals
    from autosched.search.tuning.tune import tune as run
    from autosched.store.exchange import read_schedule

    request = TuneRequest(
        with_data(program, data or {}),
        _agreed(target, catalogue()),
        device=device,
        trials=trials,
        timeout_s=timeout,
        strategy=strategy,
        cost_model=cost_model,
        seed=seed,
        threads=threads,
        store=_as_store(store),
        catalogue=catalogue(),
        only=(intrinsics,) if isinstance(intrinsics, str) else tuple(intrinsics or ()),
        families=(plans,) if isinstance(plans, str) else tuple(plans or ()),
        numerics=numerics,
        cache=cache,
        objective=objective,
        emulate=emulate,
        noise=noise,
        conditions=conditions,
        fresh=fresh,
        user_schedules=() if schedule is None else (read_schedule(schedule)[1],),
        goals=Goals(until, least_gain),
        earlier=tuple(_earlier(source) for source in warm_from),
    )
    tuning, _ = run(request, on_event)
    return tuning.study


def _earlier(source: Study | str | Path) -> Earlier:
    from autosched.search.tuning.identity import reopen
    from autosched.search.tuning.warm import earlier_recording, earlier_study
    from autosched.store.replay_file import read_replay

    if isinstance(source, str | Path):
        return earlier_recording(read_replay(str(source)))
    return earlier_study(source.record, source.trials, reopen(source.record, catalogue()))


@_taking
def tune_all(
    programs: Sequence[Program],
    weights: Sequence[float] | None = None,
    target: str | Path | Target = "native",
    *,
    trials: int | None = None,
    timeout: float | None = None,
    store: str | Path | Store | None = None,
    on_event: Callable[[int, Event], None] | None = None,
    **options: Any,
) -> TunedAll:
    """Tune several programs with one budget, divided by what each is expected to gain, times its weight.

    `weights` says how often each program occurs (once, without it), `trials` is the total of all studies (64 for each,
    without it); `options` are further fields of `TuneRequest`, the same for all (`device`, `strategy`, `seed`, …). The
    answer's `parts` hold each program's study (`part.tuning.study`) and result, its `total_s` the seconds of all calls.
    Raises UsageError for fewer trials than programs, and what `tune` raises but for programs that no candidate of
    survived: these have an `error`.
    """
    from autosched.search.request import TuneRequest
    from autosched.search.tuning.many import tune_all as run

    made: dict[str, Any] = {"store": _as_store(store), "catalogue": catalogue(), **options}
    machine = _agreed(target, made["catalogue"])
    requests = [TuneRequest(program, machine, **made) for program in programs]
    budget = TuneOptions.trials * len(requests) if trials is None else trials
    return run(requests, [1.0] * len(requests) if weights is None else weights, budget, timeout, on_event)


@checked(but={"name"}, hints=_HOW)  # the registry says more of a name
def device(
    name: str = "auto", program: Program | None = None, target: str | Path | Target | None = None, **options: Any
) -> Device:
    """A device by name, for building and measuring candidates by hand. `target` is one, its name, or a YAML file."""
    from autosched.device.registry import device as find

    return find(name, program, None if target is None else _as_target(target), **options)


@_taking
def compare(
    program: Program,
    strategies: Sequence[str | Factory] = ("random", "evolutionary", "auto"),
    device: str = "simulator",
    trials: int = TuneOptions.trials,
    seeds: int | Sequence[int] = 20,
    target: str | Path | Target = "native",
    *,
    cost_model: str | ModelFactory = TuneOptions.cost_model,
    threads: int = TuneOptions.threads,
    intrinsics: Sequence[str] = (),
    numerics: str = TuneOptions.numerics,
    known: Catalogue | None = None,
    on_run: RunListener | None = None,
) -> StrategyComparison:
    """Tune with every strategy and every seed, each from the start, and compare what they found by when.

    A strategy is a name, a name with a cost model of its own (`auto:analytic`), or a factory, called with (space, seed,
    model); `seeds` is their number, or the seeds. `cost_model` is a name, or a factory, called with (seed, threads). A
    candidate is measured once for all runs. Raises UsageError for arguments that leave nothing to compare, and what
    `tune` raises for the rest, but for failing candidates.
    """
    from autosched.report.comparison import StrategyComparison
    from autosched.search.evaluate import compare as comparing
    from autosched.search.request import TuneRequest
    from autosched.search.tuning.tune import prepare

    chosen, numbers = comparing.contestants(strategies, cost_model), comparing.seeds_of(seeds)
    request = TuneRequest(
        program,
        _as_target(target),
        device=device,
        trials=trials,
        threads=threads,
        catalogue=known or catalogue(),
        only=tuple(intrinsics),
        numerics=numerics,
    )
    tuning = prepare(request)
    study = tuning.study
    try:
        played = comparing.compare(study.space, tuning.device, study.record, chosen, trials, numbers, on_run=on_run)
    finally:
        tuning.device.close()
    rows, names = played.some(), tuple(c.name for c in chosen)
    spaces = {entry.plan.name: entry.plan.space for entry in study.space.plans}
    what = program.name, request.target.name, study.record.device
    return StrategyComparison(*what, names, numbers, trials, rows, spaces=spaces)


@_taking
def simulate(
    recording: str | Path | RecordedSpace,
    strategies: str | Sequence[str | Factory] = "all",
    trials: int | None = None,
    repeats: int | Sequence[int] = 100,
    *,
    cost_model: str | ModelFactory = TuneOptions.cost_model,
    threads: int = TuneOptions.threads,
    jobs: int = 1,
    thinking: bool = False,
    on_run: RunListener | None = None,
) -> StrategyComparison:
    """Compare strategies on a space that was measured before, by autosched or by others: no device is needed.

    `recording` is a recorded space or a file of one (of ours, or of another tuner: docs/replay.md). `strategies` as in
    `compare`, or "all" that can search it; `trials` of each run, by default as many as random search needs to come 95 %
    of the way from the median to the optimum (1,000 at most); `repeats` is the number of seeds, or the seeds. Several
    `jobs` share the runs among as many processes of one thread, with the same answer (under `if __name__ ==
    "__main__"` in a script). Time is what the candidates cost when they were recorded, the same everywhere; with
    `thinking` also what strategies take here. Raises StoreError for a file that is none, UsageError as `compare` does.
    """
    import time

    from autosched.errors import UsageError
    from autosched.report.comparison import StrategyComparison
    from autosched.search.evaluate import compare as comparing
    from autosched.search.evaluate import simulate as simulating
    from autosched.search.evaluate.landscape import Landscape
    from autosched.search.evaluate.parallel_replay import simulate_in_processes
    from autosched.store.exchanged import read_any

    space = read_any(recording) if isinstance(recording, str | Path) else recording
    landscape = Landscape.of(space)
    if strategies == "all":
        strategies = simulating.all_strategies(space)
    names = [strategies] if isinstance(strategies, str) else strategies
    chosen = comparing.contestants(names, cost_model)
    numbers = comparing.seeds_of(repeats)
    budget = simulating.budget_of(landscape, trials)
    if jobs < 1:
        raise UsageError(f"jobs is {jobs}, and must be at least 1", hint="give 1 or more")
    if jobs > 1:
        played = simulate_in_processes(
            space, names, budget, numbers, model=cost_model, jobs=jobs, thinking=thinking, on_run=on_run
        )
    else:
        clock = time.monotonic if thinking else simulating.standing
        played = simulating.simulate(space, chosen, budget, numbers, threads=threads, on_run=on_run, clock=clock)
    device = str(space.device.get("name") or space.source or "recorded")
    named = tuple(c.name for c in chosen)
    spaces = {plan.name: plan.space() for plan in space.plans}
    what = space.name, "recorded", device
    return StrategyComparison(*what, named, numbers, budget, played.some(), landscape, spaces)


__all__ = [
    "catalogue",
    "compare",
    "device",
    "einsum",
    "load",
    "load_intrinsics",
    "match",
    "native_target",
    "parse",
    "resolve",
    "rewrites",
    "simulate",
    "store",
    "target",
    "tune",
    "tune_all",
    "workload",
]
