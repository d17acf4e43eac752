"""Lowering of a nest for a CPU. Read `tensor_nest`; its register tile is `lower.common.register_tile`."""
