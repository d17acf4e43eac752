"""The printed table of the GPU benchmark's results."""

import pytest

from benchmarks.cuda import main
from benchmarks.gpu.table import table


def case(name, tops, ratios, failed=None, whole=True):
    return {"name": name, "tops": tops, "ratios": ratios, "failed": failed or {}, "trials": 64, "whole": whole}


def test_a_line_is_a_group_and_type():
    printed = table(
        [
            case("llm/bf16/64x4096x4096", 200.0, {"cublas": 0.5}, {"wrong": 2}, whole=False),
            case("llm/bf16/1x32768x512", 5.0, {"cublas": 1.25, "triton": 2.0}),
            case("llm/bf16/1x4096x4096", 4.0, {"cublas": 0.8}),
            case("squares/s8/1024", 400.0, {"triton": 3.0}),
            case("conv/s8/rn50_7_3x3_512", 650.0, {}),
            case("tiers/s8/4096", 121.04, {"cublaslt": 0.25}),
        ]
    )
    assert printed.splitlines() == [
        "| | cuBLAS, cuBLASLt, cuDNN, PyTorch | Triton | each, of the library | TFLOP/s, TOP/s |",
        "|---|---|---|---|---|",
        "| squares, s8 | – | 3.00 | – | 400 |",
        "| 1 row, bf16 | 1.00 | 2.00 (1) | 0.80, 1.25 | 4.0 to 5.0 |",
        "| 64 rows, bf16 | 0.50 | – | 0.50 | 200 |",
        "| ResNet-50 convolutions, s8 | – | – | – | 650 |",
        "| tiers, s8 | 0.25 | – | 0.25 | 121 |",
        "",
        "6 cases of 384 trials; failed: {'wrong': 2}; 5 with whole outputs compared.",
        "Slower than the library: llm/bf16/64x4096x4096 0.50, llm/bf16/1x4096x4096 0.80.",
    ]


def test_without_files_the_table_is_of_the_kept_results(capsys: pytest.CaptureFixture[str]) -> None:
    main(["table"])
    out = capsys.readouterr().out
    assert "| squares, bf16 | 1.03 |" in out
    assert "120 cases" in out
