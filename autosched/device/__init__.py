"""See docs/concepts.md."""
