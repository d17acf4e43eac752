"""Side by side with peers, on this machine: `cpu` (tables), `search_cost`, `metaschedule`, `steadiness`, `matching`, ….

Each is a command, `cuda` that of a GPU; what they share is in `common`, libraries in `peers`. Read `cpu` first.
"""
