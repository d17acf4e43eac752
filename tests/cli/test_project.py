"""The project's own promises: the README, the examples."""

from __future__ import annotations

import re
import subprocess

import pytest
from cli.conftest import Cli
from support.paths import ROOT

EXAMPLES = [
    ("gemm.py:gemm", ["m=40", "n=24", "k=32"]),
    ("gemm.py:gemm_bias_gelu", ["m=20", "n=24", "k=16"]),
    ("conv2d_bias_relu.py", ["h=9", "w=8", "ci=8", "co=16"]),
    ("attention_scores.py", ["tokens=24"]),
    ("dependences.py:prefix_sum", ["rows=5", "n=40"]),
    ("dependences.py:stencil", ["n=20"]),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("program", "sizes"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_examples_tune_and_come_out_right(cli: Cli, program: str, sizes: list[str]) -> None:
    flags = [part for size in sizes for part in ("-D", size)]
    found = cli.near()("tune", ROOT / "examples" / program, *flags, "-n", 3, "-s", "random", "--json").json
    assert found["verified"]["ok"]
    assert not found["trials"]["failed"]


def test_every_example_is_tuned_here() -> None:
    assert {e[0].split(":")[0] for e in EXAMPLES} == {p.name for p in (ROOT / "examples").glob("*.py")}


@pytest.mark.slow
def test_an_example_s_instruction_is_right(cli: Cli) -> None:
    (report,) = cli.near()("intrinsics", "check", ROOT / "examples/intrinsics/pmaddwd.yaml", "--json").json
    assert report["ok"], report["said"]


def test_the_readme_s_commands_are_what_ci_runs() -> None:
    text = (ROOT / "README.md").read_text()
    commands = dict(re.findall(r"<!-- ci: (\w+) -->\n```sh\n(.*?)\n```", text, re.DOTALL))
    assert set(commands) == {"tune", "test"}
    assert commands["tune"].endswith("autosched tune matmul -D m=512 -D n=512 -D k=512 -D a=u8 -D b=s8 -D acc=s32")
    assert commands["test"].split(" && ")[-1].startswith("pytest ")
    script = (ROOT / ".ci/run").read_text()
    assert "for name in tune test" in script
    subprocess.run(["bash", "-n", ROOT / ".ci/run"], check=True)
