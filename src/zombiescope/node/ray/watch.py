"""Everything that Ray tells on this node, once.

A raylet that ends is told at once, long before the head misses its heartbeats (which takes some fifteen seconds). What
other sources tell of the same thing later is known by its key, and passed over. Which jobs have workers here is read
off the names of their logs: worker-<worker>-<job>-<pid>.out.

Any user of the node can run a "raylet" and write what he likes into its logs. What one user reports has a budget, as
his marks have, so that he neither fills the recording nor hides what others say.
"""

from __future__ import annotations

import os
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from zombiescope.node.ray import event_files
from zombiescope.node.ray.raylet import Raylet, Raylets
from zombiescope.node.ray.report import Report, known
from zombiescope.node.ray.tail import Tail

K = TypeVar("K")
V = TypeVar("V")
MOST_TOLD = 10_000
MOST_SESSIONS = 16
MOST_LOGS = 20_000
MOST_OF_A_USER, BUDGET_US = 300, 60_000_000
"""Reports of one user's raylets in a minute. A thousand workers that die with their node are one death of a node, and
three hundred of theirs say as much as a thousand."""
JOBS_EVERY_US = 10_000_000
NEW_EVERY_US = 5_000_000
"""How often /proc is listed for raylets that are new. The end of one that is held is known at every look."""
REPEAT_US = 600_000_000
FOLDERS = ("events", "export_events")
_WORKER_LOG = re.compile(r"worker-[0-9a-f]{28,64}-([0-9a-f]{8})-(\d{1,10})\.out")
_NOBODY = "ffffffff"
"""The job of a worker that was started before any job asked for one."""
_LOSSES = ("ray_node_dead", "ray_worker_died", "ray_actor_died", "ray_task_lost")


class Watch:
    def __init__(self, addresses: Iterable[str] = (), proc: Path = Path("/proc")) -> None:
        """`addresses`: of this node, beside those that its raylets say."""
        self._proc = proc
        self._raylets = Raylets(proc)
        self._tails: OrderedDict[tuple[Path, int], Tail] = OrderedDict()
        """By folder and user: nobody stands in for another by naming his folder first."""
        self._of_user: Counter[int] = Counter()
        self._budget_us = 0
        self.left_out = 0
        """Reports beyond the budget of a user."""
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._names: OrderedDict[str, str] = OrderedDict()
        """Job -> the name under which it was submitted."""
        self._addresses = set(addresses)
        self._ids: set[str] = set()
        self._jobs: set[str] = set()
        self._jobs_us = self._repeated_us = self._listed_us = 0
        self.hurry = False
        """Something was lost since this was last set to False: whoever asks the dashboard should ask now."""

    @property
    def raylets(self) -> list[Raylet]:
        return self._raylets.running

    @property
    def is_head(self) -> bool:
        return any(raylet.head for raylet in self.raylets)

    @property
    def dashboard(self) -> str | None:
        """Where the raylets say it is."""
        return next((raylet.dashboard for raylet in self.raylets if raylet.dashboard), None)

    # --- on this node ------------------------------------------------------------------------------------------------

    def look(self, now_us: int) -> list[Report]:
        """What is new on this node. Once a second is well."""
        found: list[Report] = []
        for_new = abs(now_us - self._listed_us) >= NEW_EVERY_US  # a clock may be set back
        if for_new:
            self._listed_us = now_us
        new, ended = self._raylets.look(for_new=for_new)
        for raylet in new:
            self._addresses.add(raylet.node_ip)
            self._ids.add(raylet.node_id)
            self._follow(raylet)
        if now_us - self._budget_us >= BUDGET_US:
            self._of_user.clear()
            self._budget_us = now_us
        for (_, uid), tail in self._tails.items():
            for line in tail.lines():
                report = event_files.parse(line)
                if report is not None:
                    found += self._within_budget(uid, report)
        for raylet in ended:
            found += self._within_budget(raylet.uid, self._ended(raylet, now_us))
        return [*found, *self._look_at_jobs(now_us)]

    def _within_budget(self, uid: int, report: Report) -> list[Report]:
        if self._of_user[uid] >= MOST_OF_A_USER:
            self.left_out += 1
            return []
        told = self.told(report)
        self._of_user[uid] += len(told)
        return told

    def _follow(self, raylet: Raylet) -> None:
        if raylet.log_dir is None or (raylet.log_dir, raylet.uid) in self._tails:
            return
        tail = Tail(tuple(raylet.log_dir / name for name in FOLDERS), raylet.uid)
        for _ in tail.lines():  # what was there before is not news
            pass
        self._tails[raylet.log_dir, raylet.uid] = tail
        while len(self._tails) > MOST_SESSIONS:
            users = Counter(uid for _, uid in self._tails)
            most = max(users.values())
            # The oldest of whoever has the most: a user who starts many pushes out his own.
            del self._tails[next(key for key in self._tails if users[key[1]] == most)]

    def _ended(self, raylet: Raylet, now_us: int) -> Report:
        stopped = raylet.was_stopped
        why = "it was told to stop" if stopped else "its raylet was killed or crashed"
        report = event_files.node_dead(now_us, raylet.node_id, raylet.node_ip, why, expected=stopped)
        fields = {**report.fields, **known(pid=raylet.pid, jobs=self._listed(self._jobs))}
        return replace(report, fields=fields)

    def _look_at_jobs(self, now_us: int) -> Iterator[Report]:
        if now_us - self._jobs_us < JOBS_EVERY_US:
            return
        self._jobs_us = now_us
        jobs = {job for folder, _ in self._tails for job in _jobs_of(folder, self._proc)}
        if jobs != self._jobs or (jobs and now_us - self._repeated_us > REPEAT_US):
            self._jobs, self._repeated_us = jobs, now_us
            listed = self._listed(jobs)
            fields = {"jobs": listed, "node_ip": ",".join(sorted(self._addresses))}
            yield Report(now_us, "ray_jobs", listed, f"Ray jobs on this node: {listed or 'none'}", fields)

    def _listed(self, jobs: Iterable[str]) -> str:
        return ",".join(sorted(self._names.get(job, job) for job in jobs))[:480]

    # --- once --------------------------------------------------------------------------------------------------------

    def told(self, report: Report) -> list[Report]:
        """The report, if it is news and concerns this node, with the names that are known by now."""
        job, name = report.fields.get("job"), report.fields.get("submission_id")
        if isinstance(job, str) and isinstance(name, str):
            _remember(self._names, job, name)
        key = (_group(report.kind), report.key)
        if key in self._told or not self._concerns(report):
            return []
        _remember(self._told, key, None)
        self.hurry = self.hurry or report.kind in _LOSSES
        if isinstance(job, str) and name is None and job in self._names:
            report = replace(report, fields={**report.fields, "submission_id": self._names[job]})
        return [report]

    def _concerns(self, report: Report) -> bool:
        """A head hears of everything; a node of what is its own, and of what nobody says whose it is."""
        if self.is_head:
            return True
        said = [
            str(report.fields[key]) for key in ("node_ip", "nodes", "lost_on", "driver_ip") if report.fields.get(key)
        ]
        if not said:
            node_id = report.fields.get("node_id")
            return node_id is None or node_id in self._ids
        return any(address in self._addresses for text in said for address in text.split(","))

    def close(self) -> None:
        self._raylets.close()


def _remember(table: OrderedDict[K, V], key: K, value: V) -> None:
    table[key] = value
    while len(table) > MOST_TOLD:
        table.popitem(last=False)


def _group(kind: str) -> str:
    """A node that is dead is not stopped later; a job ends once."""
    if kind.startswith("ray_node"):
        return "node"
    return "job end" if kind in ("ray_job_failed", "ray_job_finished", "ray_job_stopped") else kind


def _jobs_of(folder: Path, proc: Path) -> set[str]:
    """Jobs that have a worker alive here."""
    jobs: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number > MOST_LOGS:
                    break
                match = _WORKER_LOG.fullmatch(entry.name)
                if match and match[1] != _NOBODY and match[1] not in jobs and (proc / match[2]).exists():
                    jobs.add(match[1])
    except OSError:
        return set()
    return jobs
