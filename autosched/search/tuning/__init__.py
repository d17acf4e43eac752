"""A tuning run, from the request to the final round. Read `tune`, `study`, then `loop`."""
