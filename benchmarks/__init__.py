"""Side by side with peers, on this machine: `cpu` (tables), `search_cost`, `tvm`, `steadiness`, `matching`."""
