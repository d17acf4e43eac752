"""Strategies and models compared: on a device, or on spaces that were measured before. Read `compare`."""
