"""The loop tree executed statement by statement, against which every lowering is tested. Read `interpreter`."""
