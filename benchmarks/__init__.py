"""Side by side with peers, on this machine: `cpu` (tables), `search_cost`, `metaschedule`, `steadiness`, `matching`; `cuda` on a GPU.

Each is a command; what they share is in `common`, libraries in `peers`. Read `cpu` first.
"""
