"""The agent with everything on, against the recorder alone: both in one run, on a node with a hundred pods.

The agent is the recorder (with its helpers) plus a supervisor and a process of services. So the CPU of those two
against that of the first, over the same seconds, says what the agent adds. On are: metrics, scraped as often as usual;
a webhook that nobody answers; Kubernetes with events and conditions, whose API server is a stand-in with those pods;
Ray; shipping to a directory. Continuous profiles are measured by themselves, in a second run: they start a process each
minute that reads all samples.

Memory is what all of its processes hold together: private pages of each, and pages of files once, however many of them
(or others on this machine) map the same file.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.helpers.agent_process import AgentProcess, running_agent

from benchmarks.stand_ins import stand_ins
from benchmarks.table import Row

PODS = 100
NODE = "bench"
SETTLE_S = 100.0
"""Until what was started once has ended: a process counts when it ends, with all that its start cost."""
PROFILES_S = 120.0
SCRAPE_S = 15.0
FLOOD_PER_MINUTE = 4500
_TICK = os.sysconf("SC_CLK_TCK")
_V1 = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")
# What a pod of a web service does: wakes up now and then, and starts something now and then.
_POD = "echo $$ > {place}/cgroup.procs; while :; do sleep 5; done"


def measure(seconds: float) -> list[Row]:
    with _pods(PODS):
        with _everything_on() as agent:
            time.sleep(SETTLE_S)
            calm = _spent(agent, seconds)
            memory = _memory(agent)
            with _kernel_lines():
                flood = _spent(agent, seconds)
        with _everything_on(profiles=True) as agent:
            time.sleep(SETTLE_S)
            pushing = _spent(agent, max(seconds, PROFILES_S))
    rows = [*_rows(calm, memory, seconds), *_flood_rows(calm, flood, seconds)]
    more = pushing["agent"] * 60 / max(seconds, PROFILES_S) - calm["agent"] * 60 / seconds
    return [*rows, Row("continuous profiles, beside that", f"{more:.3f}", "CPU-seconds a minute; sent every minute")]


@contextmanager
def _everything_on(*, profiles: bool = False) -> Iterator[AgentProcess]:
    with tempfile.TemporaryDirectory(prefix="zombiescope-agent-") as scratch:
        place = Path(scratch)
        with stand_ins(PODS, NODE, place / "kubeconfig") as url:
            sections: dict[str, Any] = {
                "webhook": {"url": "http://127.0.0.1:9/none"},  # nobody is there: the worst case
                "kubernetes": {"enabled": True, "kubeconfig": str(place / "kubeconfig"), "node": NODE,
                               "conditions": True},
                "shipping": {"target": str(place / "target")},
            }  # fmt: skip
            if profiles:
                sections["profiles"] = {"to": "pyroscope", "url": url}
            with running_agent(place, **sections) as agent:
                yield agent


def _rows(calm: dict[str, float], memory: dict[str, int], seconds: float) -> list[Row]:
    recorder, added = calm["recorder"], calm["agent"]
    ratio = (recorder + added) / recorder if recorder else 0.0
    parts = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in memory.items())
    node = f"{PODS} pods; load average {os.getloadavg()[0]:.1f}"
    return [
        Row("recorder with its helpers, CPU-seconds a minute", f"{recorder * 60 / seconds:.3f}", node),
        Row(
            "supervisor and services beside it",
            f"{added * 60 / seconds:.3f}",
            f"scraped every {SCRAPE_S:.0f} s, with Kubernetes, Ray, webhook, shipping",
        ),
        Row("agent against recorder", f"{ratio:.2f}", "goal: at most 1.5"),
        Row("memory of all of them, MB", f"{sum(memory.values()) / 1e6:.0f}", f"goal: at most 150; {parts}"),
    ]


def _flood_rows(calm: dict[str, float], flood: dict[str, float], seconds: float) -> list[Row]:
    more = sum(flood.values()) - sum(calm.values())
    share = sum(flood.values()) / seconds
    what = f"{FLOOD_PER_MINUTE} kernel lines a minute"
    return [
        Row(f"{what}: all of the agent, of a core", f"{100 * share:.2f}%", "goal: at most 2%"),
        Row(f"{what}: what they add", f"{100 * max(0.0, more) / seconds:.2f}%", "against the minute before"),
    ]


# --- what it costs ---------------------------------------------------------------------------------------------------


def _spent(agent: AgentProcess, seconds: float) -> dict[str, float]:
    """CPU-seconds of the recorder's processes and of the agent's own, while it is scraped."""
    before = _cpu(agent)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        agent.get("/metrics")
        time.sleep(min(SCRAPE_S, max(0.0, end - time.monotonic())))
    after = _cpu(agent)
    return {name: after[name] - before[name] for name in after}


def _cpu(agent: AgentProcess) -> dict[str, float]:
    children = agent.children()
    recorder = children["zombiescope.recorder"]
    tree = [recorder, *_children(recorder)]
    return {
        "recorder": sum(_process_cpu(pid) for pid in tree),
        "agent": _process_cpu(agent.pid) + _process_cpu(children["zombiescope.agent.services"]),
    }


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _process_cpu(pid: int) -> float:
    """Its own, and that of children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICK


def _memory(agent: AgentProcess) -> dict[str, int]:
    """Private pages of each process; those of files under a name of their own."""
    children = agent.children()
    recorder, services = children["zombiescope.recorder"], children["zombiescope.agent.services"]
    processes = {
        "recorder": [recorder], "doctor and helpers": _children(recorder),
        "services": [services, *_children(services)], "supervisor": [agent.pid],
    }  # fmt: skip
    files: dict[str, int] = {}
    found = {}
    for name, pids in processes.items():
        found[name] = sum(_private(pid, files) for pid in pids)
    return {**found, "files": sum(files.values())}


_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ ([0-9a-f]+) \S+ (\d+) *(.*)")


def _private(pid: int, files: dict[str, int]) -> int:
    """Anonymous bytes; into `files` goes what is resident of each mapping of a file, the largest of all processes."""
    own, place = 0, ""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            if match := _MAPPING.fullmatch(line):
                place = f"{match[3]} {match[1]}" if match[2] != "0" else ""
                resident = 0
            elif line.startswith("Rss:"):
                resident = int(line.split()[1]) * 1024
            elif line.startswith("Anonymous:"):
                anonymous = int(line.split()[1]) * 1024
                own += anonymous
                if place:
                    files[place] = max(files.get(place, 0), resident - anonymous)
    return own


# --- the node --------------------------------------------------------------------------------------------------------


@contextmanager
def _pods(count: int) -> Iterator[None]:
    """As kubelet lays them out, one process each."""
    top = (_V1 if _V1.is_dir() else _V2) / "zombiescope-bench"
    places = [top / "burstable" / f"pod{number:08x}-0000-4000-8000-000000000000" for number in range(count)]
    for place in places:
        place.mkdir(parents=True)
    processes = [subprocess.Popen(["sh", "-c", _POD.format(place=place)], start_new_session=True) for place in places]
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        time.sleep(0.5)
        for place in [*places, top / "burstable", top]:
            with suppress(OSError):
                place.rmdir()


@contextmanager
def _kernel_lines() -> Iterator[None]:
    """Lines that match nothing, as a driver that cannot stop writes them."""
    script = (
        "import time\nfile, number = open('/dev/kmsg', 'w', buffering=1), 0\n"
        f"while True:\n    file.write(f'<6>chatty 0000:17:00.0: queue {{number}} event 0x1f\\n'); number += 1\n"
        f"    time.sleep({60 / FLOOD_PER_MINUTE})\n"
    )
    process = subprocess.Popen(["python3", "-c", script])
    try:
        yield
    finally:
        process.kill()
        process.wait()
