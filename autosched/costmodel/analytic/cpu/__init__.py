"""Terms of the clock on a CPU: caches, pages, streams, copies, and scalar stages. Read `traffic`, then
`caches`; `scalar_cycles` for stages without an instruction.
"""
