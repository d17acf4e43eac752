"""Side by side with peers, on this machine: `cpu` (tables), `search_cost`, `metaschedule`, `steadiness`, `matching`."""
