"""Being here makes `tests/` importable: `from conformance.store import StoreConformance`."""
