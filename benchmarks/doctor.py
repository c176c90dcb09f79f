"""What live diagnosis costs: a minute in which nothing is wrong, and a minute of a real fault.

The fault is the lab's mount-storm: a program that reads a mountinfo of three thousand mounts and does
nothing else, on one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks import looks
from benchmarks.loads import ONE_BUSY_CORE, running
from benchmarks.recorder import Recording, recorder
from benchmarks.table import Row
from zombiescope.store import incident_file as incidents


def measure(seconds: float) -> list[Row]:
    with running(ONE_BUSY_CORE), recorder(diagnose=True) as healthy:
        time.sleep(seconds)
    with _fault() as (pattern, go), recorder(diagnose=True) as sick:
        began_s = go()
        named = _named(sick, pattern, began_s + seconds)
        time.sleep(max(0.0, began_s + seconds - time.time()))
    calm, looked = healthy.result, sick.result
    each_s = looked["doctor_cpu_seconds"] / max(looked["doctor_looks"], 1)
    lag = "not named" if named is None else f"{named[1] - began_s:.1f} s"
    onset = "" if named is None else f"{named[1] - named[0]:.1f} s after the onset that the incident states; goal: 10 s"
    return [
        Row("a healthy minute: looks", f"{calm['doctor_looks']}", f"{calm['doctor_cpu_seconds']:.2f} CPU-seconds"),
        Row("a fault that lasts for a minute: looks", f"{looked['doctor_looks']}", "ever more rarely while it lasts"),
        Row("CPU-seconds a look", f"{each_s:.2f}", "loading it, once, included"),
        Row("from the fault's beginning to its name in incidents.json", lag, onset),
        *looks.measure(),
    ]


@contextmanager
def _fault() -> Iterator[tuple[str, Callable[[], float]]]:
    from zombiescope.lab.scenario import by_id
    from zombiescope.lab.scenario_run import stage

    scenario = by_id("mount-storm")
    with stage(scenario) as running:

        def go() -> float:
            running.go()
            return running.began_us / 1e6

        yield str(scenario.truth.pattern), go


def _named(recording: Recording, pattern: str, until_s: float) -> tuple[float, float] | None:
    """(the incident's beginning, when it was first written down)"""
    while time.time() < until_s:
        for entry in incidents.read(recording.directory / "node=bench"):
            if entry["causes"] and entry["causes"][0]["pattern"] == pattern:
                return entry["from"], time.time()
        time.sleep(0.05)
    return None
