"""Plans of a program, and the spaces of schedules that they leave open.

Read `plans.plan`, `planner.make_plans` (which plans there are), `step`, then `space.space`; `schedule` has a candidate.
"""
