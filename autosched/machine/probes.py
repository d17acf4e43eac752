"""LLVM IR of the loops that measure a machine: issue rate of an intrinsic, clock, bandwidth. Text only."""

from __future__ import annotations

from autosched.tensorize.emit import llvm_bits, llvm_declarations, render_llvm
from autosched.tensorize.intrinsic import Intrinsic

UNROLL = 4
CHAIN = 64
STREAMS = 8


def issue_loop(intrinsic: Intrinsic, vector_registers: int) -> tuple[str, int]:
    """`void @probe(ptr inputs, ptr accumulators, i64 n)` and how often an iteration issues the intrinsic.

    As many independent accumulators as registers hold beside the inputs, so that latency does not show (6 cycles at
    two a cycle need twelve). One input of each issue passes through an empty assembly statement: otherwise the
    product of a multiply and an add would be computed once, outside the loop.
    """
    inputs = intrinsic.inputs
    accumulators = max(4, min(20, vector_registers - len(inputs) - 2))
    register = {name: operand.registers["llvm"] for name, operand in intrinsic.operands.items()}
    target = intrinsic.accumulator.name
    lines = ["define void @probe(ptr %inputs, ptr %acc, i64 %n) {", "entry:"]
    for i, operand in enumerate(inputs):
        lines.append(f"  %at{i} = getelementptr i8, ptr %inputs, i64 {64 * i}")
        lines.append(f"  %in.{operand.name} = load {register[operand.name]}, ptr %at{i}, align 1")
    for k in range(accumulators):
        lines.append(f"  %to{k} = getelementptr i8, ptr %acc, i64 {64 * k}")
        lines.append(f"  %first{k} = load {register[target]}, ptr %to{k}, align 1")
    lines += ["  br label %loop", "loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    body: list[str] = []
    count = 0

    def fresh() -> str:
        nonlocal count
        count += 1
        return f"%t{count}"

    values = [f"%acc{k}" for k in range(accumulators)]
    moving = inputs[0].name if inputs else target
    seen = "%moving"
    for _ in range(UNROLL):
        for k in range(accumulators):
            if inputs:
                veiled = fresh()
                kind = register[moving]
                body.append(f'  {veiled} = call {kind} asm sideeffect "", "={_place(kind)},0"({kind} {seen})')
                seen = veiled
            operands = {o.name: f"%in.{o.name}" for o in inputs} | {moving: seen, target: values[k]}
            issued, values[k] = render_llvm(intrinsic, operands, fresh)
            body += [f"  {line}" for line in issued]
    for k in range(accumulators):
        lines.append(f"  %acc{k} = phi {register[target]} [ %first{k}, %entry ], [ {values[k]}, %loop ]")
    if inputs:
        lines.append(f"  %moving = phi {register[moving]} [ %in.{moving}, %entry ], [ {seen}, %loop ]")
    lines += body
    lines += ["  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n", "  br i1 %more, label %loop, label %done"]
    lines.append("done:")
    lines += [f"  store {register[target]} {values[k]}, ptr %to{k}, align 1" for k in range(accumulators)]
    lines += ["  ret void", "}"]
    return "\n".join([*llvm_declarations(intrinsic), *lines]), UNROLL * accumulators


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


def _place(kind: str) -> str:
    """The register class of an x86 assembly operand: general for integers, vector (`v`: all of AVX-512's) otherwise."""
    if kind.startswith("i"):
        return "r"
    return "v" if (llvm_bits(kind) or 0) > 256 else "x"
