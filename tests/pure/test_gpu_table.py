"""The printed table of the GPU benchmark's results."""

from benchmarks.gpu.table import table


def case(name, ratios, failed=None, whole=True):
    return {"name": name, "ratios": ratios, "failed": failed or {}, "trials": 64, "whole": whole}


def test_a_line_is_a_group_and_type():
    printed = table(
        [
            case("llm/bf16/64x4096x4096", {"cublas": 0.5}, {"wrong": 2}, whole=False),
            case("llm/bf16/1x32768x512", {"cublas": 1.25, "triton": 2.0}),
            case("llm/bf16/1x4096x4096", {"cublas": 0.8, "triton": 8.0}),
            case("squares/s8/1024", {"triton": 3.0}),
            case("conv/s8/rn50_7_3x3_512", {}),
            case("tiers/s8/4096", {"cublaslt": 0.25}),
        ]
    )
    assert printed.splitlines() == [
        "| | cublas | cublaslt | triton | each, of the first |",
        "|---|---|---|---|---|",
        "| squares, s8 | – | – | 3.00 | 3.00 |",
        "| 1 row, bf16 | 1.00 | – | 4.00 | 0.80, 1.25 |",
        "| 64 rows, bf16 | 0.50 | – | – | 0.50 |",
        "| ResNet-50 convolutions, s8 | – | – | – | – |",
        "| tiers, s8 | – | 0.25 | – | 0.25 |",
        "",
        "6 cases of 384 trials; failed: {'wrong': 2}; 5 with whole outputs compared.",
        "Slower than the library: llm/bf16/64x4096x4096 0.50, llm/bf16/1x4096x4096 0.80.",
    ]
