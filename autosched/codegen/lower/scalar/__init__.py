"""Lowering of stages without an instruction on a CPU. Read `scalar`, `reduction`, then `row_loops`."""
