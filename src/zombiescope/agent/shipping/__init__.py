"""Off the node before it dies: the agent's side of zombiescope.shipping."""
