"""Children that may die, hang or be cancelled, and the threads that wait for them. Read `process` and `serve`."""
