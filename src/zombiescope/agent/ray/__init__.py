"""Ray on the time axis: the agent's side of zombiescope.ray."""
