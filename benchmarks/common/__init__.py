"""What several benchmarks share. Read `suite` first, then `contest`.

Cases: `suite`, `work`. The machine's bounds: `peak`, `stream`. Kernels that take turns in one process: `contest`,
`kernel`, `answering`, `sampling`, `cpus`, `pages`. Results as git keeps them: `kept`, `tables`, `search_table`.
"""
