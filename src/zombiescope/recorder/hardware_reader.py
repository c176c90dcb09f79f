"""The process that reads what may hang or flood the log: counters of RDMA ports, of heat and of memory errors, and how
fast cores run.

A counter of an RDMA port is a command to the card's firmware. A driver that hangs takes the process that asked into a
sleep that no signal ends, and the recorder must not be that process. So this one asks, every EVERY_S seconds, and tells
by lines of JSON on its standard output:

    {"asks": "mlx5_0/1"}                                     before each port: whoever hangs has said where
    {"of": "mlx5_0/1", "figures": [[source, name, key, value, is_gauge], ..], "full": [..], "off": why or null}
    {"cpu_us": .., "rss_bytes": ..}                          at the end of a round
    {"beat": true}                                           every two seconds between rounds

It reads lines too: `off 0000:18:00.0` for a card whose driver logged that it refuses. What has failed once is never
asked again. Counters of 32 bits that began again at 0 go on counting here. It ends when its standard input is closed.
Only what changed is told.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time

from zombiescope.base import helper as _helper
from zombiescope.base.confinement import confine
from zombiescope.kernel import cpufreq, ebs_nvme, edac, infiniband, thermal_throttle
from zombiescope.kernel.infiniband import Port, Reading
from zombiescope.recorder.reader_pipe import BEAT, say

EVERY_S = 10.0
OFF_WORD = "off"
MACHINE = "machine"
"""What is read beside the ports: in memory of the kernel, none of it waits for hardware."""

Figure = tuple[str, str, str, int, bool]
"""Source, name, key, value, and whether it is a gauge."""


class PortCounters:
    """A port's counters from reading to reading, each of them rising until somebody resets it."""

    def __init__(self) -> None:
        self._raw: dict[str, int] = {}
        self._added: dict[str, int] = {}

    def follow(self, values: dict[str, int]) -> dict[str, int]:
        """Values that go on where the card's own began again. Where several fell at once they were reset."""
        fell = [name for name, value in values.items() if value < self._raw.get(name, 0)]
        for name in fell:
            added = infiniband.wrapped(name, self._raw[name], values[name]) if len(fell) == 1 else None
            self._added[name] = (
                0 if added is None else self._added.get(name, 0) + self._raw[name] + added - values[name]
            )
        self._raw.update(values)
        return {name: value + self._added.get(name, 0) for name, value in values.items()}


class HardwareReader:
    def __init__(self, root: str, off: set[str]) -> None:
        self._root = root
        self._off = off
        """Devices, ports and addresses of cards that are not asked any more."""
        self._counters: dict[str, PortCounters] = {}
        self._said: dict[tuple[str, str, str], int] = {}
        self._throttling = thermal_throttle.places(root)
        self._speeds = cpufreq.places(root)

    def round(self) -> None:
        for port in infiniband.ports(self._root):
            if not self._is_off(port):
                say({"asks": port.name})
                self._port(port)
        for volume in ebs_nvme.volumes(self._root):
            if volume not in self._off:
                say({"asks": volume})
                self._volume(volume)
        say({"asks": MACHINE})
        self._tell_figures(MACHINE, [*self._heat(), *self._frequencies(), *self._memory_errors()])
        usage = resource.getrusage(resource.RUSAGE_SELF)
        say({"cpu_us": int((usage.ru_utime + usage.ru_stime) * 1e6), "rss_bytes": usage.ru_maxrss * 1024})

    def switch_off(self, line: str) -> None:
        """`off 0000:18:00.0`"""
        word, _, what = line.strip().partition(" ")
        if word == OFF_WORD and what:
            self._off.add(what)

    def _is_off(self, port: Port) -> bool:
        names = {port.device, port.name, infiniband.bus_of(port.device, self._root)}
        return bool(names & self._off)

    def _port(self, port: Port) -> None:
        link, reading = infiniband.link(port, self._root), infiniband.counters(port, self._root)
        levels = (("state", link.state), ("rate_mbps", link.rate_mbps))
        figures: list[Figure] = [
            ("infiniband_link", name, port.name, value, True) for name, value in levels if value is not None
        ]
        values = self._counters.setdefault(port.name, PortCounters()).follow(reading.values)
        figures += [("infiniband", name, port.name, value, False) for name, value in values.items()]
        self._tell_figures(port.name, figures, reading)

    def _tell_figures(self, of: str, figures: list[Figure], reading: Reading | None = None) -> None:
        why = None
        if reading is not None and reading.failed is not None:
            why = f"{reading.failed[0]}: {reading.failed[1]}"
            self._off.add(of)
        changed = [one for one in figures if one[4] or self._said.get(one[:3]) != one[3]]
        self._said.update({one[:3]: one[3] for one in changed})
        say({"of": of, "figures": changed, "full": reading.full if reading else [], "off": why})

    def _volume(self, volume: str) -> None:
        """One that refuses is not asked again: it needs CAP_SYS_ADMIN."""
        why, found = None, None
        try:
            found = ebs_nvme.read(volume, self._root)
        except OSError as error:
            why = f"log page of EBS: {error.strerror}"
        if found is None:
            self._off.add(volume)
            say({"of": volume, "figures": [], "full": [], "off": why or "log page of EBS: not of this volume"})
            return
        figures = [("ebs", name, volume, value, name == ebs_nvme.QUEUE) for name, value in found.items()]
        self._tell_figures(volume, figures)

    def _heat(self) -> list[Figure]:
        if self._throttling is None:
            return []
        found = thermal_throttle.read(self._throttling)
        return [
            ("thermal", name, f"package {package}", value, False)
            for package, counts in found.items()
            for name, value in counts.items()
        ]

    def _frequencies(self) -> list[Figure]:
        if self._speeds is None:
            return []
        found = cpufreq.read(self._speeds, self._root)
        return [
            ("cpufreq", name, "node" if package is None else f"package {package}", value, True)
            for package, values in found.items()
            for name, value in values.items()
        ]

    def _memory_errors(self) -> list[Figure]:
        found = edac.read(self._root)
        named = [(name, key, count) for key, counts in found.items() for name, count in zip(("ce", "ue"), counts)]  # noqa: B905
        return [("edac", name, key, count, False) for name, key, count in named if count is not None]


def main(arguments: list[str]) -> int:
    """ROOT, seconds between rounds, and what is off from the start."""
    root, every_s, *off = arguments
    confine()
    reader, waits = HardwareReader(root, set(off)), select.poll()
    waits.register(0, select.POLLIN)
    while True:
        reader.round()
        next_s = time.monotonic() + float(every_s)
        while (left_s := next_s - time.monotonic()) > 0:
            if not waits.poll(min(left_s, _helper.BEAT_S) * 1000):
                say(BEAT)
                continue
            asked = os.read(0, 4096)
            if not asked:
                return 0
            for line in asked.decode("ascii", "replace").splitlines():
                reader.switch_off(line)


if __name__ == "__main__":
    _helper.begin()
    try:
        sys.exit(main(sys.argv[1:]))
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
