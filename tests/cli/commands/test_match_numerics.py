"""`match` on floats: contracts by target, bounds, exact integers, promotion, and inputs that tell two sums apart."""

from __future__ import annotations

from cli.conftest import Cli

FP8 = """
def gemm8(A: e4m3[m, k], B: e4m3[k, n], C: f32[m, n], *, m=64, n=64, k=4096):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
"""
MMA = "cuda/mma.m16n8k32.e4m3.e4m3.f32"
WGMMA = "cuda/wgmma.m64n64k32.e4m3.e4m3.f32"


def program(cli: Cli) -> str:
    path = cli.folder / "gemm8.py"
    path.write_text(FP8, encoding="utf-8")
    return str(path)


def test_the_verdict_depends_on_the_target(cli: Cli) -> None:
    cli = cli.near()
    found = cli("match", program(cli), "-i", MMA, "-t", "nvidia-h200", "--json").json
    (mapping, _) = found["mappings"]
    assert mapping["adapters"] == []
    assert (
        mapping["contract"] == "16 terms aligned, 25 fraction bits, from zero, in an order of its own, rz (unordered)"
    )
    assert mapping["error"]["K"] == 4096
    assert "⌈K/32⌉" in mapping["error"]["formula"]
    assert 0 < mapping["error"]["factor"] < 1e-3
    assert mapping["exact"]["partial_sums_below"] == 2**24
    assert mapping["exact"]["factors"] == {"A": 16, "B": 16}
    refused = cli("match", program(cli), "-i", MMA, "--no-adapters", "--json", status=1).json
    assert refused["reason"]["code"] == "NUMERICS"
    assert "promote the accumulator" in refused["reason"]["fix"]


def test_promotion_is_an_adapter(cli: Cli) -> None:
    cli = cli.near()
    found = cli("match", program(cli), "-i", WGMMA, "--json").json
    assert found["verdict"] == "match"
    assert found["mapping_count"] == 1
    names = [m["adapters"] for m in found["mappings"]]
    assert names == [[f"promote to f32 every {n}"] for n in (128, 256, 64)]
    assert all(m["numerics"] == "reassociated" for m in found["mappings"])


def test_inputs_that_tell_two_sums_apart(cli: Cli) -> None:
    cli = cli.near()
    asked = ("match", program(cli), "-i", MMA, "--no-adapters", "--discriminate")
    told = cli(*asked, f"{MMA}@sm_90", "--json", status=1).json["discriminating"]
    a, b = told["inputs"]["a"], told["inputs"]["b"]
    assert told["exact"] == told["inputs"]["c"] + sum(x * y for x, y in zip(a, b, strict=True))
    assert told["results"][MMA] != told["results"][f"{MMA}@sm_90"]
    text = cli(*asked, "program", status=1).out
    assert "told apart by c = " in text
    assert "  program  " in text
    same = cli(*asked, MMA, "--json", status=1).json
    assert same["discriminating"] is None


def test_questions_that_make_no_sense(cli: Cli) -> None:
    cli = cli.near()
    gemm = program(cli)
    assert "did you mean" in cli("match", gemm, "-i", MMA, "--discriminate", MMA[:-1], status=2).err
    other = cli("match", gemm, "-i", MMA, "--discriminate", "x86/vpdpbusd.zmm", status=2).err
    assert "sums no products of two floats" in other
