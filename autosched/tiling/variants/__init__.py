"""Programs that compute the same as the one given and fit instructions better: with stages adapted, sums split,
operands transposed. `conditional` says which mappings with conditions may be planned. Read `adapted`.
"""
