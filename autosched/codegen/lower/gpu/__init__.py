"""Lowering of a nest for a GPU. Read `gpu_nest`, `slice_schedule`, `slice_pipeline`, then `results`."""
