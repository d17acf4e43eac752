"""Building and timing candidates: the devices `cpu`, `cuda`, `simulator` and `replay`, and what they share. Read
`protocol`, then `cpu.device`, and `registry`, which finds devices by name.
"""
