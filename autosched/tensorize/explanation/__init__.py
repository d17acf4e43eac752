"""Answers in words and as JSON: chains of coordinates, certificates, fixes, near misses. Read `text`."""
