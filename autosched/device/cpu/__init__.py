"""The device `cpu`: candidates lowered and compiled in one process, checked and timed in another. Read `device`,
`build`, then `worker` and `bench`.
"""
