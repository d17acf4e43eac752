"""Intrinsic files to `Intrinsic` values: YAML → keys → families → programs, operands and templates, all checked.

Every inconsistency is a SpecError at `file:line`. Read `models` for the keys and docs/intrinsics.md for examples.

>>> text = '''
... isa: npu
... requires: [v2]
... intrinsics:
...   - name: dot8
...     semantics: |
...       def dot8(a: s8[8], b: s8[8], c: s32[1]):
...           for k in range(8):
...               c[0] += s32(a[k]) * s32(b[k])
...     operands: {a: {packed: [k]}, b: {packed: [k]}, c: {}}
...     timing: {latency: 4, interval: 1}
... '''
>>> for intrinsic in load_text(text, "my_npu.yaml"):
...     print(intrinsic.name, intrinsic.requires)
npu/dot8 frozenset({'v2'})
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from autosched.errors import SpecError, nearest
from autosched.ir.program import Program
from autosched.tensorize.held import never_read, not_set
from autosched.tensorize.intrinsic import Intrinsic, Operand, Outline, Pseudocode
from autosched.tensorize.reduction.update import merge_of
from autosched.tensorize.spec.emit import fault_of_template, llvm_declarations, names_keep
from autosched.tensorize.spec.family import Fields, fill, members
from autosched.tensorize.spec.features import isa_hint, misspelt, misspelt_isa
from autosched.tensorize.spec.keys.held_keys import check_held
from autosched.tensorize.spec.keys.matrix_keys import interval_by_lanes, interval_by_rows, matrices_of
from autosched.tensorize.spec.keys.models import FileKeys, IntrinsicKeys
from autosched.tensorize.spec.keys.numerics_keys import contract, target_contracts
from autosched.tensorize.spec.keys.placement import placement
from autosched.tensorize.spec.keys.started_keys import check_from_zero, one_register
from autosched.tensorize.spec.operands import lanes_of, make_operands, printer_of
from autosched.tensorize.spec.programs.function import parse_function
from autosched.tensorize.spec.programs.matchable import unmatchable
from autosched.tensorize.spec.programs.parts import parts_that_data_select
from autosched.tensorize.spec.programs.read_apart import read_apart
from autosched.tensorize.spec.programs.semantics import overwrites, parse_pseudocode, parse_semantics
from autosched.tensorize.spec.source import DocumentSource
from autosched.text_file import read_text
from autosched.yaml_lines import Document, parse_yaml, validate
from autosched.yaml_lines import Path as Place

MAX_BYTES = 1 << 20


def load_file(path: Path) -> tuple[Intrinsic, ...]:
    """The intrinsics of a YAML file; SpecError for an unreadable or inconsistent one."""
    hint = "give a YAML file of instructions, or a folder of them"
    return load_text(read_text(path, SpecError, MAX_BYTES, hint), str(path))


def load_text(text: str, file: str = "<text>") -> tuple[Intrinsic, ...]:
    """The intrinsics that a YAML text describes; `file` names it in errors."""
    found: dict[str, Intrinsic] = {}
    entries: dict[str, IntrinsicEntry] = {}
    for entry in _entries(text, file):
        made = entry.build()
        if made.name in found:
            hint = "a family needs every field that tells its members apart in its name" if entry.fields else None
            raise entry.document.error(f"{made.name} is described twice", "intrinsics", entry.number, "name", hint=hint)
        _ = made.pseudocode  # which raises where it is none
        if fault := unmatchable(made):
            said = f"{made.name}: semantics: no program can match it: {fault[0]}"
            raise entry.document.error(said, "intrinsics", entry.number, "semantics", hint=fault[1])
        found[made.name], entries[made.name] = made, entry
    if (copy := never_read(found.values())) is not None:
        raise _error_of(entries[copy[0].name], copy[1], copy[2], "moves", "to")
    if (reader := not_set(found.values())) is not None:
        raise _error_of(entries[reader[0].name], reader[2], reader[3], "operands", reader[1].name, "state")
    return tuple(found.values())


def _error_of(entry: IntrinsicEntry, said: str, hint: str, *keys: str) -> SpecError:
    """What is wrong with an entry beside the others of its file, at these keys of it."""
    place: Place = ("intrinsics", entry.number, *keys)
    return _with_fields(entry.document.error(f"{entry.name}: {said}", *place, hint=hint), entry.fields)


def deferred_text(text: str, file: str) -> dict[str, IntrinsicEntry]:
    """As `load_text`, full name to what builds the intrinsic and checks it: for files that are known to be good. Their
    pseudocode is parsed on first use."""
    return {entry.name: entry for entry in _entries(text, file)}


@dataclass(frozen=True)
class IntrinsicEntry:
    """One member of one entry: the file's keys, the entry's, and the family's fields to fill in."""

    head: FileKeys
    document: Document
    number: int
    fields: Fields
    raw: dict[str, Any]

    @property
    def name(self) -> str:
        """With the isa."""
        return f"{self.head.isa}/{fill(self.raw['name'], self.fields)}"

    @property
    def family(self) -> str:
        """The name with `*` for each field."""
        return re.sub(r"\{\w+\}", "*", f"{self.head.isa}/{self.raw['name']}")

    @cached_property
    def filled(self) -> dict[str, Any]:
        return {k: fill(v, self.fields) for k, v in self.raw.items() if k != "for"}

    def build(self) -> Intrinsic:
        """The intrinsic; SpecError where the keys are inconsistent."""
        keys = _member_keys(self.document, self.number, self.fields, self.filled)
        made = _intrinsic(self.head, keys, self.filled, self.document, self.number)
        return replace(made, family=self.family)

    def outline(self) -> Outline:
        """What a list shows, without building the intrinsic."""
        requires = frozenset([*self.head.requires, *fill(self.raw.get("requires", []), self.fields)])
        emit = self.raw.get("emit", {})
        printers = frozenset(emit) if isinstance(emit, dict) else frozenset([printer_of(self.head.isa)])
        summary = str(fill(self.raw.get("summary", ""), self.fields))
        kind = str(fill(self.raw.get("kind", IntrinsicKeys.model_fields["kind"].default), self.fields))
        return Outline(self.name, self.head.isa, requires, summary, printers, self.family, kind)


def _entries(text: str, file: str) -> Iterator[IntrinsicEntry]:
    if isinstance(text, str) and len(text) > MAX_BYTES:
        raise SpecError(f"{file} is larger than {MAX_BYTES:,} bytes", hint="split it into several files")
    document = parse_yaml(text, file)
    if not isinstance(document.data, dict):
        raise document.error("an intrinsic file has the keys isa and intrinsics")
    entries = document.data.get("intrinsics")
    # Entries are validated one by one, after their family's fields are filled in.
    shell = {**document.data, "intrinsics": [_PLACEHOLDER] if isinstance(entries, list) and entries else entries}
    head = validate(FileKeys, replace(document, data=shell))
    assert isinstance(entries, list)
    if meant := misspelt_isa(head.isa):
        raise document.error(f"no isa is called {head.isa!r}", "isa", hint=isa_hint(meant))
    for number, raw in enumerate(entries):
        path = ("intrinsics", number)
        if not isinstance(raw, dict):
            raise document.error("an intrinsic is a mapping with at least name and semantics", *path)
        for fields in members(document, raw, path):
            yield IntrinsicEntry(head, document, number, fields, raw)


_PLACEHOLDER = {"name": "x", "semantics": ""}


def _member_keys(document: Document, number: int, fields: Fields, filled: dict[str, Any]) -> IntrinsicKeys:
    data = {"intrinsics": [None] * number + [filled]}
    try:
        return validate(IntrinsicKeys, replace(document, data=data), ("intrinsics", number))
    except SpecError as error:
        raise _with_fields(error, fields) from None


def _with_fields(error: SpecError, fields: Fields) -> SpecError:
    if not fields:
        return error
    shown = ", ".join(f"{k}={v}" for k, v in fields.items())
    return SpecError(f"{error.message} (with {shown})", hint=error.hint, location=error.location)


def _intrinsic(
    head: FileKeys, keys: IntrinsicKeys, filled: dict[str, Any], document: Document, number: int
) -> Intrinsic:
    """The instruction; one that selects elements of an operand is matched on parts of it, and issued on the whole."""
    name = f"{head.isa}/{keys.name}"
    source = DocumentSource(document, ("intrinsics", number), name)
    whole = _as_held(head, keys, filled, document, source)
    parts = parts_that_data_select(whole) if keys.kind == "compute" else {}
    if not parts:
        return whole
    bare = keys.model_copy(update={"operands": {}, "emit": {}, "pseudocode": None})
    matched = _as_held(head, bare, filled, document, source)
    asked = {n: replace(o, bits=whole.operands[n].bits, distinct=whole.operands[n].distinct)
             for n, o in matched.operands.items() if n in whole.operands}  # fmt: skip
    issued = replace(whole, parts=parts)
    return replace(matched, operands=matched.operands | asked, emit=whole.emit, registered=issued)


def _as_held(
    head: FileKeys, keys: IntrinsicKeys, filled: dict[str, Any], document: Document, source: DocumentSource
) -> Intrinsic:
    """The instruction as the entry has it."""
    name = source.name
    started = parse_semantics(keys.semantics, keys.kind, source, keys.result, partial(_whole, keys))
    program, keys = started.program, one_register(keys, started, printer_of(head.isa), source)
    program, keys = read_apart(program, keys, printer_of(head.isa))
    matrices = matrices_of(keys, program, source)
    check_held(keys, program, source)
    operands = make_operands(keys, head.isa, program, source, held=matrices is None)
    replaces = keys.kind == "compute" and overwrites(program)
    for key in ("relative", "absolute"):
        if keys.kind != "compute" and getattr(keys.numerics, key) is not None:
            wrong, hint = f"numerics.{key}: only an instruction that computes has one", "a function is bounded by `ulp`"
            raise source.error(wrong, "numerics", key, hint=hint)
    if replaces:
        _check_overwriting(keys, source)
    if started.from_zero:
        check_from_zero(keys, source)
    second = _second(keys.pseudocode, program, operands, source)
    emit = keys.emit if isinstance(keys.emit, dict) else {printer_of(head.isa): keys.emit}
    written = program.stages[0].assign.tensor
    if replaces and emit and merge_of(program.stages[0].assign.value, program.stages[0].target) is not None:
        wrong = "emit: a text is the new value of the target, and elements that take no part keep the old one"
        hint = f"say that by an operand: {written}[…] = … if p[i] != 0 else d[i]"
        raise source.error(wrong, "emit", hint=hint)
    for printer, text in emit.items():
        place = ("emit", printer) if isinstance(keys.emit, dict) else ("emit",)
        if fault := fault_of_template(printer, text, operands, written, replaces or started.from_zero):
            hint = "one that adds to its target, and may start from zero, says that by `overwrite:`"
            raise source.error(f"emit.{printer}: {fault}", *place, hint=hint if started.from_zero else None)
    requires = frozenset([*head.requires, *keys.requires])
    _check_features(head, keys, source)
    formula = parse_function(keys, program, name, requires, source)
    header = keys.header or head.header
    placed = placement(keys, program, source)
    said = {"isa": head.isa, "requires": sorted(head.requires), "header": header, **_in_words(filled, placed.rules)}
    made = Intrinsic(
        name=name,
        isa=head.isa,
        program=program,
        operands=operands,
        numerics=contract(keys.numerics, program, source),
        contracts=target_contracts(keys.numerics, program, source),
        sequences=sequences_of(keys, operands, source),
        least_registers=keys.least_registers or 0,
        requires=requires,
        summary=keys.summary,
        source=keys.source,
        scope=keys.scope,
        kind=keys.kind,
        asynchronous=keys.async_,
        overwrite=keys.overwrite,
        from_zero=started.from_zero,
        written_out=started.written_out,
        overwrite_flag=keys.overwrite is not None and names_keep(emit, operands),
        moves=_moves(keys, source),
        state=dict(keys.state),
        sets=_sets(keys, source),
        matrices=matrices,
        shared_memory=placed.shared_memory,
        contiguous=placed.contiguous,
        rules=placed.rules,
        header=header,
        emit={p: t.rstrip() for p, t in emit.items()},
        timing={k: v for k in ("latency", "interval", "chain") if (v := getattr(keys.timing, k)) is not None},
        interval_by_rows=interval_by_rows(keys, matrices, source),
        timing_source=keys.timing.source,
        second=second,
        formula=formula,
        path=document.file,
        version=hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16],
    )
    made = replace(made, interval_by_lanes=interval_by_lanes(made, keys, source))
    if "llvm" in emit:
        try:
            llvm_declarations(made)
        except SpecError as error:
            raise source.error(f"emit.llvm: {error.message}", "emit", "llvm", hint=error.hint) from None
    return made


def _whole(keys: IntrinsicKeys, operand: str) -> bool:
    """Whether a text or a register says of an operand that it is one."""
    return bool(keys.emit) or keys.pseudocode is not None or operand in keys.operands


def _check_overwriting(keys: IntrinsicKeys, source: DocumentSource) -> None:
    """SpecError for a key that means nothing where the target is overwritten, or that is not supported there."""
    hint = "it adds nothing up: write conversions and roundings into the semantics"
    for name in sorted(keys.numerics.model_fields_set - {"subnormals", "relative", "absolute"}):
        if name != "accumulate" or keys.numerics.accumulate != "exact":
            raise source.error(f"numerics.{name} of an instruction that overwrites its target", "numerics", hint=hint)
    if keys.numerics.subnormals == "results":
        said = "numerics.subnormals: results are sums, and it adds nothing up"
        raise source.error(said, "numerics", "subnormals", hint="flushed: inputs and what is written become 0")
    if keys.overwrite is not None:
        raise source.error("overwrite: the semantics overwrites its target already", "overwrite", hint="leave it out")
    if keys.timing.chain is not None:
        said = "timing.chain: it waits for no accumulator, since it overwrites its target"
        raise source.error(said, "timing", "chain", hint="give latency and interval")
    if keys.scope != "thread":
        said = f"scope: {keys.scope} instructions that overwrite their target are not supported"
        raise source.error(said, "scope", hint="one of a thread can be described")


def _in_words(filled: dict[str, Any], rules: tuple[str, ...]) -> dict[str, Any]:
    """The entry with sentences in place of `shared_memory` and `contiguous`: its version is the same either way."""
    plain = {key: value for key, value in filled.items() if key not in ("shared_memory", "contiguous")}
    return plain | {"rules": list(rules)} if rules else plain


def _second(
    text: str | None, semantics: Program, operands: dict[str, Operand], source: DocumentSource
) -> Pseudocode | None:
    return None if text is None else Pseudocode(text, lambda: parse_pseudocode(text, semantics, operands, source))


def _check_features(head: FileKeys, keys: IntrinsicKeys, source: DocumentSource) -> None:
    """SpecError for a feature that is a misspelling, in the file's `requires`, the entry's, or a contract's `when`."""
    entry = source.path
    named: list[tuple[str, Place]] = [(f, ("requires", n)) for n, f in enumerate(head.requires)]
    named += [(f, (*entry, "requires", n)) for n, f in enumerate(keys.requires)]
    for place, contract_keys in enumerate(keys.numerics.targets):
        named += [(f, (*entry, "numerics", "targets", place, "when", n)) for n, f in enumerate(contract_keys.when)]
    for feature, where in named:
        if meant := misspelt(feature, head.isa):
            said = f"{source.name}: no {head.isa} machine has the feature {feature!r}"
            hint = f"did you mean {meant!r}? A feature of your own needs a name of its own"
            raise source.document.error(said, *where, hint=hint)


def _moves(keys: IntrinsicKeys, source: DocumentSource) -> tuple[str, str] | None:
    """Between which memories a copy moves elements."""
    if keys.moves is None:
        return None
    if keys.kind != "copy":
        raise source.error("moves: only a copy moves elements", "moves", key=True, hint="set kind: copy")
    if keys.moves.from_ == keys.moves.to:
        raise source.error(f"moves: from {keys.moves.to} to {keys.moves.to} is no way", "moves")
    return keys.moves.from_, keys.moves.to


def _sets(keys: IntrinsicKeys, source: DocumentSource) -> frozenset[str]:
    """The state that an instruction sets for others."""
    if keys.sets and keys.kind != "config":
        raise source.error("sets: only a config sets state", "sets", key=True, hint="set kind: config")
    return frozenset(keys.sets)


_WORD = 32  # bits of a register


def sequences_of(
    keys: IntrinsicKeys, operands: Mapping[str, Operand], source: DocumentSource
) -> tuple[tuple[frozenset[str], dict[str, int]], ...]:
    """`sequences:` of an entry: features of targets whose machine runs others in its place, and registers of a lane by
    operand there; SpecError for unknown operands and fewer than an operand fills."""
    lanes = lanes_of(source.name.split("/")[0], keys) or 1
    for number, given in enumerate(keys.sequences):
        for name, count in given.registers.items():
            place = "sequences", number, "registers", name
            if name not in operands:
                close = nearest(name, operands)
                hint = (f"did you mean {close!r}? " if close else "") + f"operands: {', '.join(operands)}"
                raise source.error(f"sequences: {name!r} is no operand", *place, key=True, hint=hint)
            own = -(-operands[name].elements * operands[name].dtype.bits // (lanes * _WORD))
            if count < own:
                raise source.error(f"sequences: {name} fills {own} registers by itself, more than {count}", *place)
    return tuple((frozenset(given.when), dict(given.registers)) for given in keys.sequences)
