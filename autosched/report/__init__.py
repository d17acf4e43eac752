"""What a person looks at: tables, statistics and plots of studies and comparisons. No logic that the interface lacks.

Read `comparison` and `plots`. Plots need matplotlib and tables need pandas (the extra `plots`); the rest needs neither.
"""
