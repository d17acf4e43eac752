"""A chain of epilogues computes what the program computes: both orders run over symbolic contents."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.loop_trace import contents, owners, run
from support.match.examples import examples

from autosched.ir import parse
from autosched.tiling.analysis.dependence import analyse
from autosched.tiling.plans.epilogue import epilogue_chain

N = 3


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A reduction into C, then elementwise stages over tensors that may be the reduction's own operands."""

    def element(names: tuple[str, ...]) -> str:
        tensor = draw(st.sampled_from("ABCDE"))
        first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        return f"{tensor}[{first}, {second}]"

    lines = ["def f(A: f32[n, n], B: f32[n, n], C: f32[n, n], D: f32[n, n], E: f32[n, n], *, n=3):"]
    lines.append("    for i, j in grid(n, n):")
    if draw(st.booleans()):
        lines.append(f"        C[i, j] = {draw(st.sampled_from(['0.0', 'B[i, j]', 'B[j, i]', 'D[i, j]']))}")
    lines.append("        for p in range(n):")
    lines.append(f"            C[i, j] += {element(('i', 'j', 'p'))} * {draw(st.sampled_from('AB'))}[p, j]")
    for k in range(draw(st.integers(1, 3))):
        x, y = f"x{k}", f"y{k}"
        lines.append(f"    for {x}, {y} in grid(n, {draw(st.sampled_from(['n', 'n', 'n', '2']))}):")
        target = draw(st.sampled_from("ABCDE"))
        straight = draw(st.booleans())
        mine = f"{x}, {y}" if straight else f"{y}, {x}"
        source = f"C[{mine}]" if draw(st.booleans()) else element((x, y))
        op = draw(st.sampled_from(["=", "+="]))
        lines.append(f"        {target}[{mine}] {op} {source} + {element((x, y))}")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@examples(200)
@given(programs())
def test_fusing_a_chain_changes_nothing(text: str) -> None:
    program = parse(text)
    trace = list(run(program.body, {}))
    by_stage = owners(program, trace)
    producer = next(s for s in program.stages if "p" in {a.name for a in s.axes})
    found = analyse(program)
    if (producer.name,) not in found.groups or found.stage(producer.name).of_kind("serial"):
        event("the producer cannot be taken apart")
        return
    at = program.stages.index(producer)
    chain = epilogue_chain(producer, program.stages[at + 1 :])
    event(f"chain of {len(chain)}")
    order = [i for s in program.stages[:at] for _, i in by_stage[s.name]]
    for point in product(range(N), repeat=2):
        here = dict(zip((a.name for a in producer.spatial), point, strict=True))
        order += [i for _, i in by_stage[producer.name] if {n: i.at[n] for n in here} == here]
        for e in chain:
            mapped = {c: here[p] for p, c in e.axes}
            order += [i for _, i in by_stage[e.consumer] if i.at == mapped]
    order += [i for s in program.stages[at + 1 + len(chain) :] for _, i in by_stage[s.name]]
    assert len(order) == len(trace)
    assert contents(order) == contents(trace), f"{text}\n{[str(e) for e in chain]}"


def chain_of(target: str, extent: str = "48") -> int:
    """How many stages follow a sum over `g` and `o` that is converted at `target`."""
    program = parse(
        f"def f(A: f32[4, 12, 5], Y: f16[{extent}]):\n    S: f32[{extent}]\n    for g, o in grid(4, 12):\n"
        f"        S[{target}] = 0\n        for p in range(5):\n            S[{target}] += A[g, o, p]\n"
        f"    for g, o in grid(4, 12):\n        Y[{target}] = f16(S[{target}])\n"
    )
    first, *behind = program.stages
    return len(epilogue_chain(first, behind))


def test_elements_that_axes_count_together_are_elements() -> None:
    """Of a grouped convolution the output's channels are `g * 12 + o`: the conversion was a launch of its own."""
    assert chain_of("g * 12 + o") == 1
    assert chain_of("o * 4 + g") == 1
    assert chain_of("g * 13 + o", "64") == 1
    assert chain_of("g * 11 + o", "64") == 0
    assert chain_of("g + o", "64") == 0
