"""Ten seconds of a live node: what they show, what breaks a threshold, and what could not be seen.

Most of it is read from a short recording that was made for the purpose:

sampled.py     who ran where, from the samples
cores.py       each core, who held it
stalls.py      holes in time
counted.py     node-wide counters, summed
pressure.py    PSI, reclaim and compaction
cgroups.py     the census, its growth, who made and removed cgroups
network.py     cards and softnet
units.py       services that restarted, and those that wait to be

Some of it no recording holds; it is looked at before and after (around.py): defunct processes (defunct.py), cgroups
with a CPU quota (quotas.py), the kernel log since boot (since_boot.py), units as they are now.

examine.py puts it together (checkup.py) with what is missing (seen.py). rules_cores.py and rules_node.py turn it into
findings, which have the shape of the audit's; wording.py is how they are said, verdict.py the one sentence for all.
"""
