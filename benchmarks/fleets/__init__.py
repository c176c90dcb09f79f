"""Fleets that never existed: N nodes x days of rollups, incidents, units, labels and incident windows.

faults.py   what breaks on a node: pattern, culprit, kernel stack, what its rollups look like
days.py     a node's day of rollups, through the recorder's own encoder
windows.py  the seconds around an incident, as segments or as compacted Parquet
nodes.py    who has which labels, who is sick, and the files of all of them: `python -m benchmarks.fleets.nodes`
"""
