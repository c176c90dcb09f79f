"""Continuous profiles: the agent's side of zombiescope.exporting.continuous."""
