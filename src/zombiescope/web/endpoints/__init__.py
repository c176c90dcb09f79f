"""One module for each group of endpoints below /api/v1."""
