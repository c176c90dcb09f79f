"""What the recorder costs, measured against the tools that people would run instead. Ratios in one run; nothing is
asserted."""
