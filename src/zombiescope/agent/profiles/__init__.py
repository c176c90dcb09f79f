"""Continuous profiles: the agent's side of zombiescope.query.exports.continuous."""
