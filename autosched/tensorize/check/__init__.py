"""Is a description true? Fragment maps are proved, a second description is compared, the machine is asked.

Read `verify`.
"""
