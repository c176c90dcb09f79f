"""A wide node, spliced from recordings of small ones: the fault on its few cores, healthy loads on all the others.

The recording of a fault says when each tick was (axis.py) and what the machine is like. Its cores become some cores of
the wide node; the others carry recordings of healthy loads, each repeated as often as there is room (tile.py), shifted
in time so that no two copies do the same at once, with pids of their own (identity.py). Then every table is made
consistent: samples and cores are moved (cores.py), what the kernel counts for the whole node is added up (counters.py),
events and NIC queues follow their cores (events.py), GPUs keep their numbers, and all of it is written as the
recorder writes (output.py).

What a splice cannot show is what loads do to each other: contention for a lock, for memory bandwidth, and interrupts
that one core sends to all others. Nobody waits for the fault who did not wait in a recording.
"""

from __future__ import annotations

from zombiescope.lab.wide.splice import Spliced, WidenError, widen

__all__ = ["Spliced", "WidenError", "widen"]
