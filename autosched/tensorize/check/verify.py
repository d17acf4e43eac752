"""Is a description true? Fragment maps are proved, a second description is compared, and where this machine has the
instruction it is run.

Loading has already type-checked the semantics, the registers and the templates; `check` adds what takes longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from autosched.backends import backend_of, host_backend
from autosched.errors import nearest
from autosched.ir.formula import NO_FORMULAS, Formula, Formulas, closed
from autosched.ir.map import Map
from autosched.tensorize.check.c_text import CTools, NoToolError, compile_c, issue_c
from autosched.tensorize.check.emulator import Emulator, EmulatorError, LackingError
from autosched.tensorize.check.function_error import arguments, worst
from autosched.tensorize.check.loads import fault_of_load
from autosched.tensorize.check.native import NativeError, NativeRunner
from autosched.tensorize.check.second import compare
from autosched.tensorize.check.values import agree, cases
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.model import Arrays, issue
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.expression import fault_of_bijection

_OPEN = "its contract leaves the bits open, so there is nothing exact to compare with"
_UNKNOWN = re.compile(r"LLVM has no (llvm\.[\w.]+)")
_LLVM_NAME = re.compile(r"@(llvm\.[\w.]+)")


@dataclass(frozen=True, slots=True)
class CheckPart:
    """One thing checked. `status` is `proved`, `passed`, `failed` or `skipped`; `detail` says what was tried, or
    what is wrong."""

    what: str
    status: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All that was checked of one intrinsic; `ok` unless something failed."""

    intrinsic: str
    parts: tuple[CheckPart, ...]

    @property
    def ok(self) -> bool:
        return all(p.status != "failed" for p in self.parts)

    @property
    def ran(self) -> bool:
        """Whether the instruction itself was run, on this machine, and agreed."""
        return self._passed("instruction")

    @property
    def emulated(self) -> bool:
        """Whether it was run under an emulator, and agreed."""
        return self._passed("instruction, emulated")

    def _passed(self, what: str) -> bool:
        return any(p.what == what and p.status == "passed" for p in self.parts)

    def __str__(self) -> str:
        lines = [f"{self.intrinsic}: {'ok' if self.ok else 'FAILED'}"]
        return "\n".join(lines + [f"  {p.status:8}{p.what}{': ' + p.detail if p.detail else ''}" for p in self.parts])


def check(
    intrinsic: Intrinsic,
    features: frozenset[str],
    seed: int = 0,
    runner: NativeRunner | None = None,
    known: Mapping[str, Intrinsic] | None = None,
    exhaustive: bool = False,
    formulas: Formulas = NO_FORMULAS,
    emulators: Mapping[str, Emulator] = {},
    tools: CTools | None = None,
) -> CheckReport:
    """Prove the fragment maps and, where `features` (this machine's) hold all it requires, run the instruction.

    The run compares corner and random values with the semantics: bit by bit, NaN with NaN. `seed` fixes the random
    values. It happens in a worker process (`runner`, or one of its own), so a wrong text cannot take the caller down.
    Loads that operands name are looked up in `known`, by default the built-in catalogue. A function is compared with
    the language's own instead, on sampled arguments or, `exhaustive`, on all 2^32, with `formulas` where it calls what
    they stand for. What this machine lacks runs under the emulator of its isa, where `emulators` (by isa) has one.
    With `tools` the C text is compiled, and run on the same values.
    """
    if intrinsic.formula is not None:
        return CheckReport(intrinsic.name, (_function(intrinsic.formula, seed, exhaustive, formulas),))
    parts = [*_fragments(intrinsic), *_loads(intrinsic, Catalogue.builtin() if known is None else known)]
    if intrinsic.pseudocode is not None:
        parts.append(_second(intrinsic, seed))
    if runner is not None:
        parts.append(check_llvm(intrinsic, features, runner, emulators, seed))
    else:
        with NativeRunner() as own:
            parts.append(check_llvm(intrinsic, features, own, emulators, seed))
    if tools is not None and "c" in intrinsic.emit:
        parts.append(check_c(intrinsic, features, tools, emulators, seed))
    return CheckReport(intrinsic.name, tuple(parts))


def check_all(
    intrinsics: Iterable[Intrinsic],
    features: frozenset[str],
    seed: int = 0,
    known: Mapping[str, Intrinsic] | None = None,
    exhaustive: bool = False,
    formulas: Formulas = NO_FORMULAS,
    emulators: Mapping[str, Emulator] = {},
    tools: CTools | None = None,
) -> Iterator[CheckReport]:
    """`check` of each in turn, with one worker process for all."""
    with NativeRunner() as runner:
        for intrinsic in intrinsics:
            yield check(intrinsic, features, seed, runner, known, exhaustive, formulas, emulators, tools)


def _function(formula: Formula, seed: int, exhaustive: bool, formulas: Formulas) -> CheckPart:
    formula = closed(formula, formulas)
    greatest, at = worst(formula, arguments(np.random.default_rng(seed), exhaustive))
    tried = "all arguments" if exhaustive else "sampled arguments"
    status = "passed" if greatest <= formula.ulp else "failed"
    return CheckPart("function", status, f"{greatest:.3f} ulp at {at!r}, stated {formula.ulp:g}, over {tried}")


def _fragments(intrinsic: Intrinsic) -> Iterator[CheckPart]:
    for operand in intrinsic.operands.values():
        for what, relation in (("fragment", operand.fragment), ("element order", operand.order)):
            if relation is None or (what == "element order" and operand.fragment is not None):
                continue
            proved = _bijective(relation, operand.shape, operand.copies)
            detail = "a bijection (z3)" if proved else f"{relation} is not shown to be a bijection onto {operand.shape}"
            if operand.copies > 1:
                onto = f"each element of {operand.shape} in {operand.copies} lanes"
                detail = f"{onto} (exhaustion)" if proved else f"{relation} does not hold {onto}"
            yield CheckPart(f"{what} of {operand.name}", "proved" if proved else "failed", detail)


def _loads(intrinsic: Intrinsic, known: Mapping[str, Intrinsic]) -> Iterator[CheckPart]:
    """Operands that name loads which are described themselves, as `ldmatrix`: those of the same isa."""
    for operand in intrinsic.operands.values():
        for name in operand.load:
            load = known.get(f"{intrinsic.isa}/{name}")
            if load is not None and load.kind == "copy" and operand.fragment is not None:
                fault = fault_of_load(operand, load)
                what = f"{name} into {operand.name}"
                yield CheckPart(what, "failed" if fault else "proved", fault or "its rows are runs of elements")


@lru_cache(maxsize=1024)
def _bijective(relation: Map, shape: tuple[int, ...], copies: int) -> bool:
    """Families share their fragments."""
    return relation.is_bijection_onto(shape) if copies == 1 else fault_of_bijection(relation, shape, copies) is None


def check_llvm(
    intrinsic: Intrinsic,
    features: frozenset[str],
    runner: NativeRunner,
    emulators: Mapping[str, Emulator] = {},
    seed: int = 0,
) -> CheckPart:
    """Compile the LLVM text and, as `check` does, run it beside the semantics where that is possible."""
    what = "instruction"
    if "llvm" not in intrinsic.emit:
        return CheckPart(what, "skipped", "no emit.llvm, so it cannot be run here")
    skipped, emulator = None, None
    if missing := sorted(intrinsic.requires - features):
        skipped = f"this machine lacks {', '.join(missing)}"
        found = emulators.get(intrinsic.isa)
        emulator = found if found is not None and intrinsic.requires <= found.features else None
    if _open(intrinsic):
        skipped = skipped or _OPEN
        emulator = None
    if skipped is not None and emulator is None:
        return _parsed(intrinsic, runner, skipped)
    arrays = cases(intrinsic, np.random.default_rng(seed))
    expected = issue(intrinsic, arrays)
    where = f" under {emulator.name}" if emulator else ""
    what += ", emulated" if emulator else ""
    try:
        got = runner.issue(intrinsic, arrays, emulator)
    except LackingError as error:
        return _parsed(intrinsic, runner, str(error))
    except (NativeError, EmulatorError) as error:
        return CheckPart(what, "failed", _refused(error))
    differs = ~agree(expected, got, intrinsic)
    if not differs.any():
        return CheckPart(what, "passed", f"{len(got):,} cases agree {_how(intrinsic)}{where}")
    return CheckPart(what, "failed", _difference(intrinsic, arrays, expected, got, what))


def _how(intrinsic: Intrinsic) -> str:
    return str(intrinsic.numerics) if intrinsic.numerics.bounded else "to the bit"


def _open(intrinsic: Intrinsic) -> bool:
    """Whether the contract leaves bits open."""
    numerics = intrinsic.numerics
    return numerics.accumulate == "unordered" or numerics.rounding != "rne" or numerics.fraction_bits is not None


def _refused(error: Exception) -> str:
    """An error's text; where LLVM does not know a function, with the nearest one that the catalogue calls."""
    said = str(error)
    if (unknown := _UNKNOWN.search(said)) is None:
        return said
    texts = [i.emit.get("llvm", "") for i in Catalogue.builtin().values()]
    close = nearest(unknown[1], {name for text in texts for name in _LLVM_NAME.findall(text)})
    return said + (f"; did you mean {close}?" if close else "")


def check_c(
    intrinsic: Intrinsic, features: frozenset[str], tools: CTools, emulators: Mapping[str, Emulator], seed: int = 0
) -> CheckPart:
    """Compile the C text and, as `check` does for the LLVM text, run it beside the semantics where that is possible."""
    what = "C text"
    if intrinsic.matrices is not None or any("c" not in o.registers for o in intrinsic.operands.values()):
        return CheckPart(what, "skipped", "its operands are numbered registers: no function of its own")
    missing = sorted(intrinsic.requires - features)
    emulator = emulators.get(intrinsic.isa) if missing else None
    if backend_of(intrinsic.isa).machines not in ((), host_backend().machines) and emulator is None:
        return CheckPart(what, "skipped", f"no compiler for {intrinsic.isa} on this machine")
    machine = emulator or tools.native(features)
    lacks = missing and not (emulator is not None and intrinsic.requires <= emulator.features)
    skipped = f"this machine lacks {', '.join(missing)}" if lacks else _OPEN if _open(intrinsic) else None
    try:
        if skipped is not None:
            compile_c(intrinsic, tools, machine)
            return CheckPart(what, "skipped", f"{skipped}; it compiles")
        arrays = cases(intrinsic, np.random.default_rng(seed))
        got = issue_c(intrinsic, arrays, tools, machine)
    except NoToolError as error:
        return CheckPart(what, "skipped", f"not compiled: {error}")
    except LackingError as error:
        return CheckPart(what, "skipped", str(error))
    except EmulatorError as error:
        return CheckPart(what, "failed", str(error))
    expected = issue(intrinsic, arrays)
    if agree(expected, got, intrinsic).all():
        return CheckPart(what, "passed", f"{len(got):,} cases agree {_how(intrinsic)}")
    return CheckPart(what, "failed", _difference(intrinsic, arrays, expected, got, what))


def _parsed(intrinsic: Intrinsic, runner: NativeRunner, skipped: str) -> CheckPart:
    """What is left where the instruction cannot be run: LLVM compiles it for a core that has it, or reads its text."""
    try:
        core = runner.parse(intrinsic)
    except NativeError as error:
        return CheckPart("instruction", "failed", _refused(error))
    accepted = f"compiles it for {core}" if core else "accepts the text"
    return CheckPart("instruction", "skipped", f"{skipped}; LLVM {accepted}")


def _second(intrinsic: Intrinsic, seed: int) -> CheckPart:
    what = "second description"
    found = compare(intrinsic, seed)
    if found.arrays is None or found.semantics is None or found.second is None:
        return CheckPart(what, found.status, found.detail)
    said = _difference(intrinsic, found.arrays, found.semantics, found.second, "pseudocode")
    return CheckPart(what, "failed", said)


def _difference(
    intrinsic: Intrinsic,
    arrays: Arrays,
    expected: npt.NDArray[np.generic],
    got: npt.NDArray[np.generic],
    who: str,
) -> str:
    """The first element that differs, with the operands' elements along its spatial axes. `who` gave `got`."""
    differs = ~agree(expected, got, intrinsic)
    at, count = np.argwhere(differs)[0], int(differs.sum())
    case, element = int(at[0]), tuple(int(n) for n in at[1:])
    written = intrinsic.accumulator
    where = dict(zip(intrinsic.operand_axes[written.name], element, strict=True))
    shown = []
    for operand in intrinsic.operands.values():
        axes = intrinsic.operand_axes[operand.name]
        pick = tuple(where[a] if a in where and a is not None else slice(None) for a in axes)
        values = arrays[operand.name][case][pick]
        shown.append(f"{operand.name}={_shown(values)}")
    name = f"{written.name}[{', '.join(str(n) for n in element)}]"
    values = f"the {who} gives {got[tuple(at)]!s}, the semantics {expected[tuple(at)]!s}"
    return f"{name}: {values}, for {', '.join(shown)} ({count:,} elements differ)"


def _shown(values: npt.NDArray[np.generic]) -> str:
    wide = values.astype(np.float64) if values.dtype.kind not in "iuf" else values
    return np.array2string(np.asarray(wide), threshold=16, separator=", ", floatmode="unique", max_line_width=1000)
