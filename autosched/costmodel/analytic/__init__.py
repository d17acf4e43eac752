"""The analytic clock: seconds of each row from the target's figures, without a measurement. Read `clock`; `limits` has
lower bounds of all schedules.
"""
