"""NVIDIA GPUs: CUDA text to cubins (`nvrtc`), what a cubin takes and holds (`resources`, `sass`), and the device
`cuda` (`device`), which launches them in a worker of its own. Read `nvrtc`, `device` and `worker` first.
"""
