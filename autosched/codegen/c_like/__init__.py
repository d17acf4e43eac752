"""What C and CUDA print alike: dtypes, values with the language's exact meaning, indices, names, helper functions.

Read `values` (expressions), then `helpers` and `arithmetic` (the functions that they call).
"""
