"""The simulator's model of a GPU: one core played event by event. Read `gpu_model`."""
