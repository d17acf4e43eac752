"""Factors that leave a sum: `defer`."""
