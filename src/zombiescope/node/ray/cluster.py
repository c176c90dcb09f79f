"""What changes at the dashboard between two questions: jobs that start and end, nodes that die.

The first answer is the baseline: what ended before it is not news. Of a job that failed it is asked which of its tasks
were lost, to what, and on which nodes: that tells a job that died of a node from one that died of its own error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from zombiescope.node.ray.dashboard import Dashboard, DashboardError
from zombiescope.node.ray.event_files import job_status, node_dead
from zombiescope.node.ray.raylet import is_address
from zombiescope.node.ray.report import LOSSES, Report, identity, known, short, submission

MOST_ADDRESSES = 16
MOST_KNOWN = 20_000
"""Nodes whose address is remembered."""
MOST_ASKED = 20
"""Jobs of one answer of whose tasks the dashboard is asked, twice each."""
_ENDED = ("FAILED", "SUCCEEDED", "STOPPED")


class Cluster:
    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._jobs: dict[str, str] | None = None
        """Name -> status, of the last answer."""
        self._dead: set[str] | None = None
        self._addresses: dict[str, str] = {}
        """Node id -> IP."""
        self._asked = 0

    def ask(self, now_us: int) -> list[Report]:
        """What is new. Raises DashboardError."""
        nodes = list(self._nodes(now_us))
        return [*nodes, *self._changed_jobs(now_us)]

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _nodes(self, now_us: int) -> Iterator[Report]:
        dead = set()
        for node in self._dashboard.nodes():
            name, ip = identity(node.get("node_id")), node.get("node_ip")
            if name is None:
                continue
            if isinstance(ip, str) and is_address(ip):
                self._remember(name, ip)
            if node.get("state") != "DEAD":
                continue
            dead.add(name)
            if self._dead is not None and name not in self._dead:
                message = short(node.get("state_message"))
                ended = node.get("end_time_ms")
                at_us = ended * 1000 if isinstance(ended, int) and 0 < ended * 1000 <= now_us else now_us
                expected = message.startswith("Expected termination")
                yield node_dead(at_us, name, self._addresses.get(name), message, expected=expected)
        self._dead = dead

    def _remember(self, name: str, ip: str) -> None:
        if name not in self._addresses and len(self._addresses) >= MOST_KNOWN:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[name] = ip

    # --- jobs --------------------------------------------------------------------------------------------------------

    def _changed_jobs(self, now_us: int) -> Iterator[Report]:
        before, now = self._jobs, {}
        self._asked = 0
        listed = self._dashboard.jobs()
        for about in listed:
            name = _name(about)
            if name is not None:
                now[name] = str(about.get("status"))
        for about in listed:
            name, status = _name(about), str(about.get("status"))
            if name is None or (before or {}).get(name) == status or (before is None and status in _ENDED):
                continue
            report = self._report(about, status, now_us)
            if report is not None:
                yield report
        self._jobs = now

    def _report(self, about: dict[str, Any], status: str, now_us: int) -> Report | None:
        job = identity(about.get("job_id"))
        at_ms = about.get("end_time" if status in _ENDED else "start_time")
        at_us = at_ms * 1000 if isinstance(at_ms, int) and 0 < at_ms * 1000 <= now_us else now_us
        report = job_status(at_us, status, job, about.get("submission_id"), about)
        if report is None or job is None or self._asked >= MOST_ASKED:
            return report
        self._asked += 1
        return replace(report, fields={**report.fields, **self._where(job, failed=status == "FAILED")})

    def _where(self, job: str, *, failed: bool) -> dict[str, Any]:
        """On which nodes its tasks ran, and to what which of them were lost; nothing where nobody can say."""
        try:
            lost = self._dashboard.tasks(job, failed=True) if failed else []
            ran = self._dashboard.tasks(job, failed=False)
        except DashboardError:
            return {}
        losses = [task for task in lost if str(task.get("error_type")) in LOSSES]
        kinds = sorted({str(task["error_type"]) for task in losses})
        return known(
            nodes=self._ips([*ran, *lost]), lost_on=self._ips(losses), lost_to=",".join(kinds),
        )  # fmt: skip

    def _ips(self, tasks: list[dict[str, Any]]) -> str:
        ids = {identity(task.get("node_id")) for task in tasks}
        found = sorted({self._addresses[each] for each in ids if each in self._addresses})
        return ",".join(found[:MOST_ADDRESSES])


def _name(about: dict[str, Any]) -> str | None:
    return submission(about.get("submission_id")) or identity(about.get("job_id"))
