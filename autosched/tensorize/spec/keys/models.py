"""The YAML keys of an intrinsic file as pydantic models: names, types, ranges. What they mean together is in `spec`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Header = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_+.-]*(/[A-Za-z0-9_][A-Za-z0-9_+.-]*)*$")]
Feature = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+$")]
Power = Annotated[str, Field(pattern=r"^(\d+(\.\d+)? ?\* ?)?2\^-\d{1,2}(\.\d+)?$")]
"""A power of two, or a multiple of one: `2^-14`, `1.5 * 2^-12`, `2^-9.9`."""


class _Range(BaseModel):
    """Counts, both ends included."""

    model_config = ConfigDict(extra="forbid", defer_build=True)
    from_: int = Field(alias="from")
    to: int
    by: int


class _Follows(BaseModel):
    """An expression in the member's other numbers."""

    model_config = ConfigDict(extra="forbid", defer_build=True)
    is_: str = Field(alias="is")


_Scalar = str | int | float
_Member = dict[Name, _Scalar | _Range | _Follows | list[_Scalar | _Range]]


class Keys(BaseModel):
    """Keys of a mapping: no others, and none is changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class ContractKeys(Keys):
    """How a float accumulation is done; `tensorize.numerics.contract` says what the keys mean together."""

    accumulate: Literal["exact", "sequential", "unordered"] | None = Field(
        None, description="exact (default, integers) · sequential: in loop order (default, floats) · unordered"
    )
    sum: Literal["chain", "aligned", "tree", "lanes"] | None = Field(
        None, description="how a block of terms is added: chain (default), aligned (with fraction_bits), tree, lanes"
    )
    fraction_bits: Annotated[int, Field(ge=1, le=44)] | None = Field(
        None, description="fraction bits that an aligned sum keeps below its largest exponent"
    )
    terms: PositiveInt | None = Field(None, description="products summed in one step")
    rounding: Literal["rne", "rz", "odd"] = Field("rne", description="to nearest even, toward zero, or to odd")
    result_bits: Annotated[int, Field(ge=1, le=51)] | None = Field(
        None, description="fraction bits that the result of a step keeps, where fewer than its type has"
    )
    start: Literal["accumulator", "zero"] = Field(
        "accumulator", description="zero: the sum starts from zero and is added to the accumulator, to nearest even"
    )
    sum_bits: Annotated[int, Field(ge=1, le=44)] | None = Field(
        None, description="products are summed on their own; bits kept of that sum beside the accumulator"
    )
    accumulator_bits: Annotated[int, Field(ge=1, le=44)] | None = Field(
        None, description="bits kept of the accumulator beside that sum"
    )
    order: str | None = Field(
        None, description="products are taken by this expression in `k`, their place in the loops, then by k"
    )
    parts: Annotated[int, Field(ge=1, le=64)] = Field(1, description="interleaved sums of products, joined afterwards")
    accumulator_reach: PositiveInt | None = Field(
        None, description="an accumulator whose exponent lies more than this below the sum's is left out"
    )
    group: Annotated[int, Field(ge=2, le=1024)] | None = Field(
        None, description="products of so many neighbours are added exactly, and aligned by the scales they share"
    )
    operands_as: Literal["f16", "bf16", "tf32", "f32"] | None = Field(
        None, description="type that factors are converted to first"
    )
    sum_as: Literal["f32"] | None = Field(
        None, description="wider type of the sums, rounded to the accumulator's at the end"
    )
    subnormals: Literal["kept", "flushed", "results"] = Field(
        "kept", description="flushed: subnormal inputs and results become 0; results: sums and the accumulator alone"
    )
    fused: bool = Field(False, description="a product and its addition round once")
    ulp: Annotated[float, Field(gt=0, le=4)] | None = Field(
        None, description="of a function: the bound on its error, in units of 2^-23 of an f32 result; at most 4"
    )
    relative: Annotated[float, Field(gt=0, le=0.125)] | Power | None = Field(
        None,
        description="of an instruction that overwrites its target: each element may be off by so much of it, as a"
        " number or `2^-14`; at level `real`",
    )
    absolute: Annotated[float, Field(gt=0, le=0.125)] | Power | None = Field(
        None,
        description="of an instruction that overwrites its target: each element may be off by so much, beside what"
        " `relative` says; at level `real`",
    )
    argument_ulp: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="of a function: its argument may be off beside, by so many units of 2^-23 of it; at level `real`",
    )


class TargetContractKeys(ContractKeys):
    """The contract of targets that list certain features, complete."""

    when: Annotated[list[Feature], Field(min_length=1)] = Field(description="features that the target must list")


class NumericsKeys(ContractKeys):
    """The contract, and those of some targets in its place."""

    targets: list[TargetContractKeys] = Field(
        default_factory=list, description="contracts of targets with certain features: the first that fits holds"
    )


class BroadcastKeys(Keys):
    over: str | list[str] = Field(description="axes over which one group of elements may fill the register")


class OpaqueKeys(Keys):
    """A fragment of which nobody knows which lane holds what: it is loaded and stored as a whole."""

    registers: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3} x [A-Za-z_]\w*$")] = Field(
        description="registers of one lane, as `8 x b32`"
    )
    load: str = Field(
        description="text that fills it from {address}, lines {stride} elements apart; {layout}: row or col, {space}"
    )
    store: str = Field("", description="text that stores it there")


class OperandKeys(Keys):
    """One operand's registers, the order of its elements in them, and how it is loaded."""

    register_: dict[Name, str] = Field(default_factory=dict, alias="register", description="printer to register type")
    registers: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3} x [A-Za-z_]\w*$")] | None = Field(
        None, description="registers of one lane, as `4 x b32`"
    )
    packed: list[str | int] | None = Field(
        None, description="element order: axes, or operand.dimension, outermost first"
    )
    order: list[str] | None = Field(None, description="element order: one expression in `e` a dimension")
    fragment: list[str] | None = Field(None, description="one expression in `t` (lane) and `v` (element) a dimension")
    copies: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        None, description="lanes that hold each element of the fragment: one, if nothing is said"
    )
    bits: Annotated[int, Field(ge=1, le=32)] | None = Field(
        None, description="bits of a register for each element, where they are not as many as the type has"
    )
    shift: Annotated[int, Field(ge=0, le=31)] | None = Field(
        None, description="the bit of those at which an element begins, where that is not the lowest"
    )
    distinct: Annotated[int, Field(ge=2, le=16)] | None = Field(
        None, description="of each so many neighbours along the last dimension no two may be equal in a register"
    )
    opaque: OpaqueKeys | None = None
    broadcast: BroadcastKeys | None = None
    load: list[str] = Field(default_factory=list, description="names of the loads that fill the operand")
    state: Name | None = Field(
        None, description="on an accelerator: the state that holds it, filled by a copy that `moves: {to: …}` there"
    )


class SequenceKeys(Keys):
    """What targets that list certain features run in place of an instruction that their machine does not have."""

    when: Annotated[list[Feature], Field(min_length=1)] = Field(description="features that the target must list")
    registers: dict[Name, PositiveInt] = Field(
        default_factory=dict,
        description="32-bit registers of a lane that operands take there; none where the machine has the instruction",
    )
    source: str = Field("", description="how it is known")


class TimingKeys(Keys):
    """Cycles; a target may override."""

    latency: PositiveFloat | None = Field(None, description="cycles from operands to result", le=1e6)
    interval: PositiveFloat | None = Field(None, description="cycles between two issues", le=1e6)
    chain: PositiveFloat | None = Field(
        None, description="cycles from the accumulator to the result, where that is shorter than latency", le=1e6
    )
    rows: list[tuple[PositiveInt, PositiveFloat]] = Field(
        default_factory=list,
        description="registers of fewer rows than they could have, as measured: how many, and the interval then",
    )
    lengths: list[tuple[PositiveInt, PositiveFloat]] = Field(
        default_factory=list,
        description="of an instruction with a length: how many lanes, and the interval of an issue on no more of them",
    )
    source: str = Field("", description="machine, and document or measurement; unverified where there is none")


class MovesKeys(Keys):
    """Where a copy of an accelerator with scratchpads comes from, and where it goes."""

    from_: Literal["memory", "inputs", "accumulators"] = Field(alias="from")
    to: Name = Field(description="memory, inputs, accumulators, or a state that holds an operand of others")


class IntrinsicKeys(Keys):
    """One intrinsic, or with `for` a family of them."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$")] = Field(description="without the isa")
    semantics: str = Field(
        description="a function in the loop-nest language: one statement that writes, others fill temporaries"
    )
    family: Annotated[list[_Member], Field(min_length=1)] | _Member | None = Field(
        None, alias="for", description="members of a family: fields and their values; of lists all combinations count"
    )
    result: str | None = Field(None, description="of semantics that write several operands: the one that is meant")
    implementation: str | None = Field(
        None, description="of a function: the steps that approximate it, in the loop-nest language"
    )
    pseudocode: str | None = Field(None, description="a second, independent description: `check` compares both")
    summary: str = ""
    source: str = Field("", description="where the facts come from")
    requires: list[Feature] = Field(default_factory=list, description="features in addition to the file's")
    header: Header | None = Field(None, description="header of the exported C, in place of the file's")
    scope: Literal["thread", "warp", "warpgroup", "core"] = Field("thread", description="who issues it together")
    lanes: Annotated[int, Field(ge=2, le=1024)] | None = Field(
        None, description="threads of the scope, where they are not the isa's usual number"
    )
    kind: Literal["compute", "copy", "fill", "config", "function"] = "compute"
    async_: bool = Field(False, alias="async", description="completes later; needs a wait")
    overwrite: str | None = Field(None, description="the form or flag that starts from zero")
    moves: MovesKeys | None = Field(
        None, description="of a copy on an accelerator: between which memories; without it, wherever types fit"
    )
    state: dict[str, Any] = Field(default_factory=dict, description="what must be configured first")
    sets: list[Name] = Field(default_factory=list, description="of a config: names under others' `state` that it sets")
    shared_memory: dict[Name, Literal["required", "allowed"]] = Field(
        default_factory=dict, description="inputs that it reads in shared memory itself: always, or also in registers"
    )
    contiguous: dict[Name, str] = Field(
        default_factory=dict, description="inputs whose elements must be neighbours in memory along an axis of it"
    )
    rules: list[str] = Field(default_factory=list, description="what else is legal, in words: shapes, alignment")
    numerics: NumericsKeys = Field(default_factory=NumericsKeys)
    operands: dict[Name, OperandKeys] = Field(default_factory=dict)
    emit: dict[Name, str] | str = Field(default_factory=dict, description="printer (llvm, c, cuda, …) to its text")
    sequences: list[SequenceKeys] = Field(
        default_factory=list, description="targets whose machine runs a sequence of others: the first that fits holds"
    )
    least_registers: Annotated[int, Field(ge=1, le=255)] | None = Field(
        None, description="registers of a thread below which the assembler refuses a kernel with the instruction"
    )
    timing: TimingKeys = Field(default_factory=TimingKeys)


class FileKeys(Keys):
    """An intrinsic file."""

    isa: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = Field(description="x86, cuda, arm, hip, portable, …")
    requires: list[Feature] = Field(default_factory=list, description="features that a target must list")
    header: Header | None = Field(None, description="header that the exported C includes")
    intrinsics: list[IntrinsicKeys] = Field(min_length=1)
