"""Which plans a program has: nests of each stage that are worth laying out, ranked, and what is fused behind them. Read
`make_plans`, then `nests`.
"""
