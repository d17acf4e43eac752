"""NVIDIA GPUs: CUDA text to cubins (`compile`), the device `cuda` (`device`), which launches them in a worker of its
own, and built kernels as functions (`call`). Read `device` and `worker` first.
"""
