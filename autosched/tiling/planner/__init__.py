"""Which plans a program has: its variants, nests of each stage that are worth laying out, ranked, and what is fused
behind them. Read `plan_program` (the whole way), then `make_plans` (one variant) and `nests`.
"""
