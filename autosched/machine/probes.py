"""LLVM IR of the loops that measure a machine: issue rate of an intrinsic, clock, bandwidth. Text only."""

from __future__ import annotations

from collections.abc import Callable

from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matrices import Matrices
from autosched.tensorize.spec.emit import llvm_bits, llvm_declarations, render, render_llvm
from autosched.tensorize.spec.keys.matrix_ir import Uses

UNROLL = 4
CHAIN = 64
STREAMS = 8
VECTOR_CHAINS = 8  # more than the vectors that any core begins in the cycle that one takes
MOST_ACCUMULATORS = 20


def issue_loop(intrinsic: Intrinsic, vector_registers: int, features: frozenset[str]) -> tuple[str, int]:
    """`void @probe(ptr inputs, ptr accumulators, i64 n)` and how often an iteration issues the intrinsic.

    As many independent accumulators as registers hold beside the inputs, so that latency does not show (6 cycles at
    two a cycle need twelve). Where the text has several steps, one input of each issue passes through an empty
    assembly statement: otherwise the product of a multiply and an add would be computed once, outside the loop. So does
    one of an instruction that overwrites its target, and what it writes passes through another.
    ValueError where no register class can hold that input.
    """
    if intrinsic.matrices is not None:
        return matrix_loop(intrinsic, intrinsic.matrices)
    inputs = intrinsic.inputs
    accumulators = max(4, min(MOST_ACCUMULATORS, vector_registers - len(inputs) - 2))
    pitch = register_pitch(intrinsic)
    register = {name: operand.registers["llvm"] for name, operand in intrinsic.operands.items()}
    target = intrinsic.accumulator.name
    lines = ["define void @probe(ptr %inputs, ptr %acc, i64 %n) {", "entry:"]
    for i, operand in enumerate(inputs):
        lines.append(f"  %at{i} = getelementptr i8, ptr %inputs, i64 {pitch * i}")
        lines.append(f"  %in.{operand.name} = load {register[operand.name]}, ptr %at{i}, align 1")
    for k in range(accumulators):
        lines.append(f"  %to{k} = getelementptr i8, ptr %acc, i64 {pitch * k}")
        lines.append(f"  %first{k} = load {register[target]}, ptr %to{k}, align 1")
    lines += ["  br label %loop", "loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    body: list[str] = []
    count = 0

    def fresh() -> str:
        nonlocal count
        count += 1
        return f"%t{count}"

    values = [f"%acc{k}" for k in range(accumulators)]
    steps = len([line for line in intrinsic.emit["llvm"].splitlines() if line.split(";")[0].strip()])
    moving = inputs[0].name if inputs and (steps > 1 or not intrinsic.accumulates) else None
    sink = None if intrinsic.accumulates else _register_class(register[target], features)
    if not intrinsic.accumulates and sink is None:
        raise ValueError(f"a register of type {register[target]} cannot be held in place for measuring")
    veil = _register_class(register[moving], features) if moving else None
    if moving and veil is None:
        raise ValueError(f"a register of type {register[moving]} cannot be held in place for measuring")
    seen = "%moving"
    for _ in range(UNROLL):
        for k in range(accumulators):
            operands = {o.name: f"%in.{o.name}" for o in inputs} | {target: values[k]}
            if moving:
                seen = _veiled(body, register[moving], str(veil), seen, fresh)
                operands[moving] = seen
            issued, values[k] = render_llvm(intrinsic, operands, fresh)
            body += [f"  {line}" for line in issued]
            if sink is not None:
                _veiled(body, register[target], sink, values[k], fresh)
    for k in range(accumulators):
        lines.append(f"  %acc{k} = phi {register[target]} [ %first{k}, %entry ], [ {values[k]}, %loop ]")
    if moving:
        lines.append(f"  %moving = phi {register[moving]} [ %in.{moving}, %entry ], [ {seen}, %loop ]")
    lines += body
    lines += ["  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n", "  br i1 %more, label %loop, label %done"]
    lines.append("done:")
    lines += [f"  store {register[target]} {values[k]}, ptr %to{k}, align 1" for k in range(accumulators)]
    lines += ["  ret void", "}"]
    return "\n".join([*llvm_declarations(intrinsic), *lines]), UNROLL * accumulators


def matrix_loop(intrinsic: Intrinsic, matrices: Matrices) -> tuple[str, int]:
    """The same of an instruction on numbered registers that hold matrices."""
    inputs, target = intrinsic.inputs, intrinsic.accumulator.name
    accumulators = matrices.count - len(inputs)
    pitch = register_pitch(intrinsic)
    lines = ["define void @probe(ptr %inputs, ptr %acc, i64 %n) {", "entry:"]
    used = Uses(matrices)
    lines.append(used("configure", configuration="@configuration"))
    for k, _ in enumerate(inputs):
        lines.append(f"  %at{k} = getelementptr i8, ptr %inputs, i64 {pitch * k}")
        lines.append(used("load", register=accumulators + k, address=f"%at{k}", stride=matrices.row_bytes))
    lines += [used("zero", register=k) for k in range(accumulators)]
    lines += ["  br label %loop", "loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    for _ in range(UNROLL):
        for k in range(accumulators):
            numbers = {o.name: str(accumulators + n) for n, o in enumerate(inputs)} | {target: str(k)}
            lines.append(used.line(render(intrinsic, "llvm", numbers)))
    lines += ["  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n", "  br i1 %more, label %loop, label %done"]
    lines += ["done:", used("release"), "  ret void", "}"]
    return "\n".join([used.constant("@configuration"), *used.declared, *lines]), UNROLL * accumulators


def register_pitch(intrinsic: Intrinsic) -> int:
    """Bytes from one register to the next in the probe's memory: whole cache lines that hold the widest."""
    if intrinsic.matrices is not None:
        return -(-intrinsic.matrices.rows * intrinsic.matrices.row_bytes // 64) * 64
    bits = max((llvm_bits(o.registers["llvm"]) or 512) for o in intrinsic.operands.values())
    return -(-bits // 512) * 64


def clock_loop() -> tuple[str, int]:
    """`i64 @probe(i64 x, i64 y, i64 n)`: dependent additions and exclusive ors, one cycle each on every CPU of
    interest (neither can be merged with its neighbour), and how many there are an iteration."""
    body = []
    seen = "%x0"
    for k in range(CHAIN):
        operation = "add" if k % 2 else "xor"
        body.append(f"  %v{k} = {operation} i64 {seen}, %y")
        seen = f"%v{k}"
    chain = "\n".join(body)
    return (
        f"""define i64 @probe(i64 %x, i64 %y, i64 %n) {{
entry:
  br label %loop
loop:
  %x0 = phi i64 [ %x, %entry ], [ {seen}, %loop ]
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{chain}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 {seen}
}}""",
        CHAIN,
    )


def vector_loop(vector_bytes: int) -> tuple[str, int]:
    """`void @probe(ptr values, i64 n)`: additions and exclusive ors of integers in turn (neither can be merged with its
    neighbour) in independent chains, and how many vectors an iteration computes."""
    kind, chains = f"<{vector_bytes // 4} x i32>", range(VECTOR_CHAINS)
    at = [f"  %p{c} = getelementptr i8, ptr %values, i64 {c * vector_bytes}" for c in range(VECTOR_CHAINS + 1)]
    first = [f"  %f{c} = load {kind}, ptr %p{c}, align 1" for c in range(VECTOR_CHAINS + 1)]
    body, seen = list[str](), [f"%x{c}" for c in chains]
    for k in range(2 * UNROLL):
        for c in chains:
            body.append(f"  %v{k}.{c} = {'add' if k % 2 else 'xor'} {kind} {seen[c]}, %f{VECTOR_CHAINS}")
            seen[c] = f"%v{k}.{c}"
    phis = [f"  %x{c} = phi {kind} [ %f{c}, %entry ], [ {seen[c]}, %loop ]" for c in chains]
    stores = [f"  store {kind} {seen[c]}, ptr %p{c}, align 1" for c in chains]
    lines = ["define void @probe(ptr %values, i64 %n) {", "entry:", *at, *first, "  br label %loop", "loop:", *phis]
    lines += ["  %i = phi i64 [ 0, %entry ], [ %next, %loop ]", *body, "  %next = add i64 %i, 1"]
    lines += ["  %more = icmp slt i64 %next, %n", "  br i1 %more, label %loop, label %done", "done:", *stores]
    return "\n".join([*lines, "  ret void", "}"]), 2 * UNROLL * VECTOR_CHAINS


def load_loop(vector_bytes: int) -> tuple[str, int]:
    """`void @probe(ptr data, i64 blocks, ptr out, i64 n)`: read `blocks` blocks `n` times, and the bytes of a block."""
    kind = f"<{vector_bytes // 4} x i32>"
    streams = range(STREAMS)
    phis = "\n".join(f"  %s{k} = phi {kind} [ zeroinitializer, %pass ], [ %r{k}, %loop ]" for k in streams)
    loads = "\n".join(
        f"  %p{k} = getelementptr i8, ptr %block, i64 {k * vector_bytes}\n"
        f"  %l{k} = load {kind}, ptr %p{k}, align {vector_bytes}\n"
        f"  %r{k} = xor {kind} %s{k}, %l{k}"
        for k in streams
    )
    stores = "\n".join(
        f"  %o{k} = getelementptr i8, ptr %out, i64 {k * vector_bytes}\n  store {kind} %r{k}, ptr %o{k}, align 1"
        for k in streams
    )
    return (
        f"""define void @probe(ptr %data, i64 %blocks, ptr %out, i64 %n) {{
entry:
  br label %pass
pass:
  %i = phi i64 [ 0, %entry ], [ %inext, %end ]
  br label %loop
loop:
  %j = phi i64 [ 0, %pass ], [ %jnext, %loop ]
{phis}
  %offset = mul i64 %j, {STREAMS * vector_bytes}
  %block = getelementptr i8, ptr %data, i64 %offset
{loads}
  %jnext = add i64 %j, 1
  %jmore = icmp slt i64 %jnext, %blocks
  br i1 %jmore, label %loop, label %end
end:
{stores}
  %inext = add i64 %i, 1
  %imore = icmp slt i64 %inext, %n
  br i1 %imore, label %pass, label %done
done:
  ret void
}}""",
        STREAMS * vector_bytes,
    )


def _veiled(body: list[str], kind: str, place: str, value: str, fresh: Callable[[], str]) -> str:
    """`value` after an empty assembly statement that might have changed it; a one-element vector passes as a scalar."""
    one = kind.removeprefix("<1 x ").rstrip(">") if kind.startswith("<1 x ") else None
    if one:
        bare = fresh()
        body.append(f"  {bare} = bitcast {kind} {value} to {one}")
        value = bare
    passed = one or kind
    veiled = fresh()
    body.append(f'  {veiled} = call {passed} asm sideeffect "", "={place},0"({passed} {value})')
    if one:
        back = fresh()
        body.append(f"  {back} = bitcast {one} {veiled} to {kind}")
        veiled = back
    return veiled


def _register_class(kind: str, features: frozenset[str]) -> str | None:
    """The register class of an x86 assembly operand: `r` for integers, `x` for vectors, `v` for those of AVX-512.

    None for what fits none: LLVM ends the process for an operand that it cannot place.
    """
    scalar = kind.removeprefix("<1 x ").rstrip(">") if kind.startswith("<1 x ") else kind
    if not scalar.startswith("<"):
        return {"i8": "q", "i16": "r", "i32": "r", "i64": "r", "float": "x", "double": "x"}.get(scalar)
    if ("half" in kind and "avx512_fp16" not in features) or ("bfloat" in kind and "avx512_bf16" not in features):
        return None
    widths = {128: "x", 256: "x" if "avx" in features else None, 512: "v" if "avx512bw" in features else None}
    return widths.get(llvm_bits(kind) or 0)
