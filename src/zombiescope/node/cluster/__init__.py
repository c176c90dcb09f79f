"""The cluster that this node belongs to: its pods by name and owner, what happened to them, and what it is told of us.

Needs the extra `zombiescope[cluster]` (lightkube), which only `access.py` imports. Nothing here runs in the recorder.
"""
