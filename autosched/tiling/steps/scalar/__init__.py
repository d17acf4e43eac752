"""The steps of stages without an instruction: on CPUs (`scalar_steps`) and by teams of a GPU's threads
(`team_steps`)."""
