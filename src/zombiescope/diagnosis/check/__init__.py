"""Ten seconds of a live node: the diagnosis of a short recording, with what stands around it on one screen.

cores.py     each core beside the mean that hides it, and who held it
units.py     services that restarted or failed, and those that wait to be started again
sources.py   what a check looks at, and what of it is missing
findings.py  incidents and remarks of the diagnosis as findings, in the shape of the audit's
check.py     all of it as one value, and the one sentence about it
examine.py   from a recording, its surroundings and the audit to that value
"""
