"""Strategies: which candidates to measure next. Read `simple`, then `model_guided`, which leads `auto`."""
