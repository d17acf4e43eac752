"""The built-in intrinsic catalogue: YAML only."""
