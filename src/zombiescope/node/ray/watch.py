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
import signal
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from zombiescope.node.ray import event_files
from zombiescope.node.ray.raylet import Raylet, Raylets, open_of
from zombiescope.node.ray.report import Report, known

K = TypeVar("K")
V = TypeVar("V")
MOST_TOLD = 10_000
MOST_SESSIONS = 16
MOST_LOGS = 20_000
MOST_OF_A_USER, BUDGET_US = 300, 60_000_000
"""Reports of one user's raylets in a minute. A thousand workers that die with their node are one death of a node, and
three hundred of theirs say as much as a thousand."""
JOBS_EVERY_US, JOBS_CHANGED_US = 10_000_000, 2_000_000
"""How often the logs of workers are listed, and how often while the folder changes."""
WORKERS_CHARACTERS, WORKERS_FIELDS = 480, 10
NEW_EVERY_US = 5_000_000
"""How often /proc is listed for raylets that are new. The end of one that is held is known at every look."""
REPEAT_US = 600_000_000
DIES_AGAIN_US = 60_000_000
"""Other sources report the end of a node within that time; what a node reports later is another end."""
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
        self._died_us: OrderedDict[str, int] = OrderedDict()
        """Node id -> when its end was reported last."""
        self._names: OrderedDict[str, str] = OrderedDict()
        """Job -> the name under which it was submitted."""
        self._addresses = set(addresses)
        self._ids: set[str] = set()
        self._jobs: set[str] = set()
        self._workers: dict[str, set[int]] = {}
        """Job -> pids of its workers here."""
        self._own_jobs: OrderedDict[str, None] = OrderedDict()
        """Jobs that are Ray's: the one that supervises submitted jobs."""
        self._changed: tuple[int, ...] = ()
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
            self._told.pop(("node", raylet.node_id), None)  # it lives, and may die again
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
            if now_us - self._died_us.get(raylet.node_id, -DIES_AGAIN_US) >= DIES_AGAIN_US:
                # Whatever was reported of it while it lived, this is its end.
                self._told.pop(("node", raylet.node_id), None)
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
        report = event_files.node_dead(now_us, raylet.node_id, raylet.node_ip, _how(raylet, stopped), expected=stopped)
        fields = {
            **report.fields,
            **known(
                pid=raylet.pid, jobs=self._listed(self._jobs), signal=raylet.signal, exit_code=raylet.exit_code,
            ),
        }  # fmt: skip
        return replace(report, fields=fields)

    def _look_at_jobs(self, now_us: int) -> Iterator[Report]:
        changed = tuple(_changed_ns(folder) for folder, _ in self._tails)
        if now_us - self._jobs_us < (JOBS_EVERY_US if changed == self._changed else JOBS_CHANGED_US):
            return
        self._jobs_us, self._changed = now_us, changed
        workers: dict[str, set[int]] = {}
        for folder, _ in self._tails:
            for job, pids in _workers_of(folder, self._proc).items():
                workers.setdefault(job, set()).update(pids)
        for job, pids in workers.items():
            if job not in self._own_jobs and any(_is_rays_own(self._proc, pid) for pid in pids):
                _remember(self._own_jobs, job, None)
        workers = {job: pids for job, pids in workers.items() if job not in self._own_jobs}
        jobs = set(workers)
        unheard = any(pids - self._workers.get(job, set()) for job, pids in workers.items())
        after_us = REPEAT_US if not unheard else JOBS_EVERY_US
        if jobs != self._jobs or (jobs and now_us - self._repeated_us > after_us):
            self._jobs, self._workers, self._repeated_us = jobs, workers, now_us
            listed = self._listed(jobs)
            fields = {"jobs": listed, "node_ip": ",".join(sorted(self._addresses))}
            fields |= _listed_workers(workers)
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
        if key[0] == "node":
            _remember(self._died_us, report.key, report.at_us)
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


def _how(raylet: Raylet, stopped: bool) -> str:
    """How a raylet ended, and what is not known of it."""
    if stopped:
        return "its raylet was stopped on request"
    if raylet.signal is not None:
        return (
            f"its raylet was killed by signal {raylet.signal} ({_signal_name(raylet.signal)}); the sender is not known"
        )
    if raylet.exit_code is not None:
        return f"its raylet exited with status {raylet.exit_code}"
    return "its raylet was killed or crashed; its exit status is not known"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"


def _remember(table: OrderedDict[K, V], key: K, value: V) -> None:
    table[key] = value
    while len(table) > MOST_TOLD:
        table.popitem(last=False)


def _group(kind: str) -> str:
    """A node that is dead is not stopped later; a job ends once."""
    if kind.startswith("ray_node"):
        return "node"
    return "job end" if kind in ("ray_job_failed", "ray_job_finished", "ray_job_stopped") else kind


def _changed_ns(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _is_rays_own(proc: Path, pid: int) -> bool:
    try:
        with open(proc / str(pid) / "cmdline", "rb") as file:
            return file.read(256).startswith((b"ray::JobSupervisor", b"ray::_ray_internal"))
    except OSError:
        return False


def _listed_workers(workers: dict[str, set[int]]) -> dict[str, str]:
    """02000000=2154,02000000=2271,03000000=2323, in fields of a bounded length, the newest jobs first."""
    parts = [""]
    for job, pids in sorted(workers.items(), reverse=True):
        for pid in sorted(pids):
            entry = f"{job}={pid}"
            if len(parts[-1]) + len(entry) + 1 > WORKERS_CHARACTERS:
                parts.append("")
            parts[-1] += f",{entry}" if parts[-1] else entry
    return {f"workers{number or ''}": part for number, part in enumerate(parts[:WORKERS_FIELDS]) if part}


def _workers_of(folder: Path, proc: Path) -> dict[str, set[int]]:
    """Jobs that have a worker alive here, with the pids of these."""
    jobs: dict[str, set[int]] = {}
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number > MOST_LOGS:
                    break
                match = _WORKER_LOG.fullmatch(entry.name)
                if match and match[1] != _NOBODY and (proc / match[2]).exists():
                    jobs.setdefault(match[1], set()).add(int(match[2]))
    except OSError:
        return {}
    return jobs


# --- files that grow --------------------------------------------------------------------------------------------------
# Files that grow, read from where we were: those of one session, by a pattern.
#
# At the start only the end of a file counts: what happened before is not news. A file that became shorter, or another
# file under its name, is read from its beginning. What is read in one look is bounded; the rest waits for the next.
#
# The folders are whatever a process called "raylet" says: files are its user's own or are not opened, and names, lines
# that have no end yet and places in files have bounds.

MOST_FILES = 512
MOST_NAMES = 20_000
"""Looked at in a folder; beyond that it is none of Ray's."""
LOOK_BYTES = 4 << 20
LINE_BYTES = 1 << 20
WAITING_BYTES = 4 << 20
"""Of lines that have no end yet, in all files of a session."""


@dataclass(slots=True)
class _Place:
    inode: int
    offset: int
    rest: bytes = b""


class Tail:
    def __init__(self, folders: tuple[Path, ...], uid: int, ending: str = ".log") -> None:
        """`uid`: whose files they are."""
        self._folders = folders
        self._uid = uid
        self._ending = ending
        self._places: dict[Path, _Place] = {}
        self._started = False

    def lines(self) -> Iterator[bytes]:
        """What was added since the last look."""
        budget = LOOK_BYTES
        files = self._files()
        self._places = {path: self._places[path] for path in files if path in self._places}
        for path in files:
            with suppress(OSError):
                descriptor = open_of(self._uid, path)
                try:
                    for line in self._read(path, descriptor, budget):
                        budget -= len(line) + 1
                        yield line
                finally:
                    os.close(descriptor)
            if budget <= 0:
                break
        self._started = True

    def _files(self) -> list[Path]:
        found: list[Path] = []
        for folder in self._folders:
            with suppress(OSError), os.scandir(folder) as entries:
                found += [
                    folder / entry.name for entry in islice(entries, MOST_NAMES) if entry.name.endswith(self._ending)
                ]
        # Files without news are cheap to look at, but a session may leave very many: one for each worker.
        return sorted(found, key=lambda path: path.name)[:MOST_FILES]

    def _read(self, path: Path, descriptor: int, budget: int) -> Iterator[bytes]:
        status = os.fstat(descriptor)
        place = self._places.get(path)
        if place is None or place.inode != status.st_ino or place.offset > status.st_size:
            place = _Place(status.st_ino, 0 if self._started else status.st_size)
            self._places[path] = place
        data = os.pread(descriptor, max(0, min(budget, status.st_size - place.offset)), place.offset)
        place.offset += len(data)
        *lines, place.rest = (place.rest + data).split(b"\n")
        waiting = sum(len(each.rest) for each in self._places.values())
        if len(place.rest) > LINE_BYTES or waiting > WAITING_BYTES:
            place.rest = b""
        yield from lines
