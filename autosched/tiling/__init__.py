"""Plans of a program, and the spaces of schedules that they leave open.

Read `plans.plan`, `planner.plan_program` (from a program to its plans), `step`, then `space.space`; `candidate` is a
plan with a row of its space.
"""
