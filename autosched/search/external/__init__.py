"""Strategies of other packages on our spaces, each an optional extra. Read `optuna_sampler`."""
