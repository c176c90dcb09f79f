"""Cgroups while they come and go: the ledger fed by tracepoints, the census beside it, churn, and a few leaves.

Nothing here depends on how many cgroups there are: a census is one small read, the ledger moves only when something
happens, and the statistics files of the root or of every cgroup are never read. The one walk over the directories, at
the start, is needed on v1 to know how many are live; it goes in small steps between ticks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from zombiescope.kernel import cgroup, cgroup_namespace, host
from zombiescope.kernel.cgroup import Hierarchy
from zombiescope.kernel.cgroup_census import MAX_DEPTH, CgroupCounter, MemoryCgroups, Refused, walk_directories
from zombiescope.kernel.cgroup_leaf import LeafStats, NotALeafError, leaf_stats, read_cost
from zombiescope.kernel.cgroup_path import normalise
from zombiescope.kernel.process import printable
from zombiescope.node.containers.runtimes import verified_owner
from zombiescope.recorder import dying
from zombiescope.recorder.churn import Churn
from zombiescope.recorder.containers import ContainerTracker
from zombiescope.recorder.creators import Creators
from zombiescope.recorder.dying import Dying
from zombiescope.recorder.ledger import Ledger
from zombiescope.recorder.quotas import Quotas
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tracepoints import Fields, Tracepoint, TraceRecord
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event

MKDIR = "cgroup_mkdir"
"""The tracepoint without which there is no ledger."""

WALK_STEP = 500
"""Directories per tick of the one walk at the start: 182,000 live directories were seen on a real node."""

MAX_LEAVES = 64
LEAF_EVERY_US = 10_000_000
NEW_LEAVES = 4
"""At most so many cgroups that were not looked at before are read at a tick."""
COUNTS_EVERY_US = 10_000_000
PROBE_EVERY_US = 60_000_000
_SHOWN = 200


class CgroupTracker:
    """Everything the recorder does about cgroups."""

    def __init__(
        self, batch: Batch, sources: Sources, comm_of: Callable[[int], str | None], now_us: int, root: str = "/"
    ) -> None:
        self._root = root
        self._node_root = cgroup_namespace.node_root(root)
        self._batch = batch
        self._sources = sources
        self._census = CgroupCounter(root)
        self.hierarchy: Hierarchy | None = self._census.hierarchy
        self._hierarchies = cgroup.hierarchies(root)
        self.ledger = Ledger(normalise)
        self._churn = Churn()
        self.containers: ContainerTracker | None = None
        self._walk: Iterator[tuple[int, str]] | None = None
        self._refused = Refused()
        self._live_at_start: int | None = None
        self._began_us = now_us
        self._creators = Creators(comm_of, root)
        self._quotas = Quotas(lambda path: self._directory("cpu", path), sources)
        self._leaf_use: dict[str, int] = {}
        self._leaf_before: dict[str, LeafStats] = {}
        self._next_leaves_us = self._next_counts_us = self._next_probe_us = 0
        self.last: MemoryCgroups | None = None
        self._own = self._own_directory()
        if self.hierarchy is not None and not cgroup_namespace.sees_node_paths(self.hierarchy.number, root):
            why = "this process has its own cgroup namespace, which hides the cgroups of tasks"
            grant = "hostPath /sys/fs/cgroup, hostPID: true or cgroup namespace of the host (--cgroupns=host)"
            sources.lacks("host cgroup namespace", why, grant, now_us)
        self._dying = Dying(self.hierarchy, host.read(root).release)
        if self.hierarchy is None:
            self._sources.lacks("memory cgroups", self._census.why or "none", "mount cgroup with memory", now_us)

    def _own_directory(self) -> str | None:
        """Where this process is in the hierarchy that owns memory."""
        membership = cgroup_namespace.membership(root=self._root)
        if self.hierarchy is None or self.hierarchy.number not in membership:
            return None
        return self._directory("memory", membership[self.hierarchy.number][1])

    def begin(self, now_us: int) -> None:
        """Starts the walk; call when the tracepoints are open, so that nothing falls between."""
        hierarchy = self.hierarchy
        self._began_us = now_us
        if hierarchy is None or hierarchy.mount is None:
            return
        if not hierarchy.whole:
            grant = "the host's cgroup namespace (hostPath /sys/fs/cgroup, cgroupns host)"
            self._sources.lacks("cgroup directories", f"{hierarchy.mount} shows only a part of the tree", grant, now_us)
            return
        self._walk = walk_directories(hierarchy.mount, per_second=None, refused=self._refused)

    def walk_on(self) -> bool:
        """Takes the next steps of the first walk. True while there is more to walk."""
        if self._walk is None:
            return False
        for _ in range(WALK_STEP):
            step = next(self._walk, None)
            if step is None:
                self._walk = None
                self.ledger.walked()
                self._note_live()
                return False
            self.ledger.exists(step[1])
            self._quotas.exists(step[1])
            if self.containers is not None:
                self.containers.exists(step[1])
        return True

    def _note_live(self) -> None:
        """The walk is over. What it did not enter was not counted: then nobody knows how many there are."""
        if self._refused.count == 0:
            self._live_at_start = self.ledger.live - self.ledger.created + self.ledger.removed
            return
        first = printable(os.fsencode((self._refused.first or "")[:_SHOWN]))
        why = f"{self._refused.count} directories were not entered: too deep, or too many; the first is {first}..."
        self._sources.lacks("cgroup directories", why, f"fewer than {MAX_DEPTH} levels of cgroups", self._began_us)

    # --- tracepoints --------------------------------------------------------------------------------------------

    def tracepoints(self) -> list[Tracepoint]:
        """The life of a cgroup of the hierarchy that owns memory; of the others nothing is asked."""
        if self.hierarchy is None:
            return []
        where = f"root=={self.hierarchy.number}"
        handlers = {
            MKDIR: self._made,
            "cgroup_rmdir": self._removed,
            "cgroup_release": self._released,
            "cgroup_rename": self._renamed,
        }
        return [Tracepoint("cgroup", name, handle, where, name == MKDIR) for name, handle in handlers.items()]

    def _made(self, record: TraceRecord, fields: Fields, wall_us: int) -> Iterable[Event]:
        key, path = fields["id"].number(record.raw), fields["path"].text(record.raw)
        self._quotas.made(path, wall_us)
        if self.containers is not None:
            self.containers.made(path, record.pid, wall_us)
        self.ledger.mkdir(key, path, self._creators.of(path, record.pid, record.tid))
        return ()

    def _removed(self, record: TraceRecord, fields: Fields, wall_us: int) -> Iterable[Event]:
        path = fields["path"].text(record.raw)
        self._quotas.removed(path)
        self.ledger.rmdir(fields["id"].number(record.raw), path)
        if self.containers is not None:
            self.containers.removed(path, wall_us)
        return self._churned(path, wall_us)

    def _released(self, record: TraceRecord, fields: Fields, _: int) -> Iterable[Event]:
        self.ledger.release(fields["id"].number(record.raw), fields["path"].text(record.raw))
        return ()

    def _renamed(self, record: TraceRecord, fields: Fields, _: int) -> Iterable[Event]:
        self.ledger.rename(fields["id"].number(record.raw), fields["path"].text(record.raw))
        return ()

    def _churned(self, path: str, wall_us: int) -> Iterable[Event]:
        name = normalise(path)
        news = self._churn.removed(name, wall_us)
        if news is None:
            return ()
        count, seconds = news
        who = verified_owner(path, self._node_root)
        line = self.ledger.line_of(path)
        creator = line.creator if line else None
        text = f"{count} cgroups removed in {seconds:.0f} s at {name}" + (
            f", made by {creator.comm}" if creator else ""
        )
        fields = {
            "path": name, "count": count, "seconds": round(seconds, 1), "unit": who.unit, "container": who.container,
            "comm": creator.comm if creator else None, "pid": creator.pid if creator else None,
            "dying": line.dying if line else None,
        }  # fmt: skip
        return (Event(wall_us, "cgroup_churn", "ledger", "warning", text, fields),)

    # --- ticks --------------------------------------------------------------------------------------------------

    def tick(self, wall_us: int, counts: Callable[[], dict[str, int]], lost_seen: bool) -> None:
        """The census, and the ledger's lines that changed. `counts` are the events' own, asked for only now and
        then."""
        if self.hierarchy is None:
            return
        if lost_seen or wall_us >= self._next_counts_us:
            self._next_counts_us = wall_us + COUNTS_EVERY_US
            found = counts()
            made, removed, released = (found.get(f"cgroup_{step}", 0) for step in ("mkdir", "rmdir", "release"))
            self.ledger.observe_counts(made, removed, released, wall_us)
        now = self._census.read()
        if now is None:
            self._sources.lacks("memory cgroups", self._census.why or "unreadable", "a readable /proc/cgroups", wall_us)
            return
        self._sources.has("memory cgroups", wall_us)
        live = now.live if now.live is not None else self._live_now()
        dying = now.dying if now.dying is not None else None if live is None else max(0, now.total - live)
        self.last = MemoryCgroups(now.total, live, dying, now.live_memory, now.dying_memory)
        book = self.ledger
        row = (
            wall_us, f"v{self.hierarchy.version}", now.total, live, dying, book.created, book.removed, book.released,
            book.lost_records,
        )  # fmt: skip
        self._batch.add(schema.CENSUS, row)
        self._write_lines(wall_us)

    def _live_now(self) -> int | None:
        if self._live_at_start is None:
            return None
        return self._live_at_start + self.ledger.created - self.ledger.removed

    def _write_lines(self, wall_us: int) -> None:
        exact = int(self.ledger.exact)
        for line in self.ledger.take_changed():
            who, place = line.creator, verified_owner(line.path, self._node_root)
            row = (
                wall_us, line.path, line.dying, line.created, line.removed, line.released, exact,
                who.comm if who else None, who.pid if who else None,
                place.unit or (who.unit if who else None), place.container or (who.container if who else None),
                min(line.names.count, line.created), who.uid if who else None, who.exe if who else None,
            )  # fmt: skip
            self._batch.add(schema.LEAKS, row)

    # --- leaves -------------------------------------------------------------------------------------------------

    def used(self, share: TaskShare) -> None:
        """A sampled task; of its cgroups the busiest are looked at every ten seconds."""
        for path in (share.cgroup, share.cpu_cgroup):
            if path and path != "/" and (path in self._leaf_use or len(self._leaf_use) < 1024):
                self._leaf_use[path] = self._leaf_use.get(path, 0) + share.samples

    def forget_leaves(self) -> None:
        """The next reading has nothing to be compared with."""
        self._leaf_before.clear()

    def read_leaves(self, wall_us: int) -> list[tuple[str, int, int]]:
        """cpu.stat, memory.events and pressure of at most 64 cgroups: those that their quota stopped lately
        (quotas.py), then those that appear in the samples most.

        One that is new is read at once, so that the next reading has something to compare with. Answers those that
        have a CPU quota: path, periods, periods in which it was stopped.
        """
        self._read_new_leaves(self._quotas.tick(wall_us))
        if wall_us < self._next_leaves_us:
            return []
        self._next_leaves_us = wall_us + LEAF_EVERY_US
        busiest = sorted(self._leaf_use, key=self._leaf_use.__getitem__, reverse=True)
        chosen = list(dict.fromkeys([*self._quotas.watched(wall_us), *busiest]))[:MAX_LEAVES]
        self._leaf_use.clear()
        before, self._leaf_before = self._leaf_before, {}
        limited = []
        for path in chosen:
            stats = self._leaf(path)
            if stats is None:
                continue
            self._leaf_before[path] = stats
            if stats.has_cpu_quota:
                self._quotas.has(path)
            old = before.get(path)
            if old is None:
                continue
            deltas = _leaf_deltas(old, stats)
            self._batch.add(schema.CGROUP_STATS, (wall_us, path, *deltas))
            if deltas[0]:
                limited.append((path, deltas[0], deltas[1] or 0))
        return limited

    def _read_new_leaves(self, stopped: list[str]) -> None:
        new = [path for path in (*stopped, *self._leaf_use) if path not in self._leaf_before]
        for path in new[: max(NEW_LEAVES, len(stopped))]:
            if len(self._leaf_before) < 2 * MAX_LEAVES and (stats := self._leaf(path)) is not None:
                self._leaf_before[path] = stats

    def leaves(self) -> dict[str, str]:
        """Path -> directory of the cgroups whose statistics are read."""
        found = {path: self._directory("memory", path) or self._directory("cpu", path) for path in self._leaf_before}
        return {path: directory for path, directory in found.items() if directory is not None}

    def _leaf(self, path: str) -> LeafStats | None:
        cpu, memory = self._directory("cpu", path), self._directory("memory", path)
        if cpu is None and memory is None:
            return None
        try:
            return leaf_stats(cpu, memory)
        except (NotALeafError, OSError):
            return None

    def number_of(self, controller: str) -> int | None:
        """Of its hierarchy."""
        hierarchy = cgroup.of_controller(controller, self._hierarchies)
        return None if hierarchy is None else hierarchy.number

    def _directory(self, controller: str, path: str) -> str | None:
        hierarchy = cgroup.of_controller(controller, self._hierarchies)
        if hierarchy is None or hierarchy.mount is None:
            return None
        directory = hierarchy.mount + path
        return directory if path.startswith("/") and ".." not in path and os.path.isdir(directory) else None  # noqa: PTH112

    def levels(self, wall_us: int) -> Iterator[tuple[str, str, str | None, int]]:
        """Gauges of a minute: source, name, key, value."""
        for name, value in self._probe(wall_us).items():
            yield "probe", name, None, value
        for level in self._dying.look(wall_us, self.last.dying if self.last else None, self.ledger.leaking()):
            yield dying.SOURCE, level.name, level.parent, level.value

    def _probe(self, wall_us: int) -> dict[str, int]:
        """What reading the statistics of one leaf costs, once a minute: the base of every forecast.

        Timed on our own cgroup, if it is a leaf, and on no other: one without directories below it may still have
        thousands of dying ones there, and reading it is then the very thing that hurts.
        """
        if wall_us < self._next_probe_us or self._own is None:
            return {}
        self._next_probe_us = wall_us + PROBE_EVERY_US
        try:
            cost = read_cost(self._own)
        except (NotALeafError, OSError):
            return {}
        found = {"numa_stat_leaf_ns": cost.numa_stat_s, "stat_leaf_ns": cost.stat_s, "walk_leaf_ns": cost.walk_s}
        return {name: round(seconds * 1e9) for name, seconds in found.items() if seconds is not None}

    def restart(self) -> None:
        """A new segment must tell every line again."""
        self.ledger.mark_all_changed()

    def close(self) -> None:
        self._census.close()


def _leaf_deltas(old: LeafStats, new: LeafStats) -> tuple[int | None, ...]:
    def added(field: str) -> int | None:
        before, after = getattr(old, field), getattr(new, field)
        return None if before is None or after is None else max(0, after - before)

    hits = added("memory_max") if new.memory_max is not None else added("memory_failcnt")
    return (
        added("nr_periods"), added("nr_throttled"), added("throttled_us"), hits, added("memory_high"),
        added("memory_oom_kill"), added("cpu_some_us"), added("memory_some_us"),
        None if new.has_cpu_quota is None else int(new.has_cpu_quota),
        None if new.has_memory_limit is None else int(new.has_memory_limit),
    )  # fmt: skip
