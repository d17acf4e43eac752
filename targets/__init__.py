"""The built-in target descriptions: YAML only."""
