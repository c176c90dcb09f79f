"""Where a scenario may do what it likes: cgroups, directories and units of its own, all bearing its name.

Cgroups of version 1 are one directory a controller, those of version 2 one for all; a scenario asks for what it means
(a limit, a quota) and not for files. What is made here is found again by its name (leftovers.py), so that nothing has
to be remembered for the clean-up.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from zombiescope.kernel import cgroup

MARK = "zombiescope-lab-"
PROGRAM = "program"
UNITS = Path("/run/systemd/system")
_WANTED = ("memory", "pids", "cpu")


class Sandbox:
    def __init__(self, scenario: str) -> None:
        self.name = f"{MARK}{scenario}"
        self._mounts = {name: mount for name in _WANTED if (mount := _mount(name)) is not None}
        self.unified = {name for name, (_, version) in self._mounts.items() if version == 2}

    # --- directories -------------------------------------------------------------------------------------------------

    def directory(self) -> Path:
        """On the disk of temporary files."""
        return Path(tempfile.mkdtemp(prefix=f"{self.name}-"))

    def in_memory(self) -> Path:
        """On a tmpfs, whose pages nobody can write back and drop."""
        return Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir="/dev/shm"))

    def sparse_file(self, size_bytes: int) -> Path:
        """On that disk; it is large to read and takes no room."""
        file = self.directory() / "sparse"
        with file.open("wb") as made:
            made.truncate(size_bytes)
        return file

    # --- units of systemd --------------------------------------------------------------------------------------------

    def unit(self, name: str, text: str) -> str:
        """A service that systemd forgets at the next boot; its name. Where systemd is not the init there is no such
        directory, and making it would tell every program that it is."""
        unit = f"{self.name}-{name}.service"
        (UNITS / unit).write_text(text)
        return unit

    # --- cgroups -----------------------------------------------------------------------------------------------------

    def root_of(self, controller: str) -> Path | None:
        """The scenario's own cgroup, above all that it makes; None where the controller is not there."""
        if controller not in self._mounts:
            return None
        return self._mounts[controller][0] / self.name

    def make(self, *, memory_bytes: int, processes: int, real_time: bool) -> None:
        """The cgroups of the scenario's program, with its limits."""
        for controller in self._mounts:
            if controller == "cpu" and real_time and controller not in self.unified:
                continue
            root = self.cgroup(controller, children=True)
            (root / PROGRAM).mkdir(exist_ok=True)
        self.limit_memory("", memory_bytes)
        self._write("pids", "", "pids.max", "pids.max", str(processes))

    def go_first(self) -> None:
        """Nearly all of a core, whoever else is at work there: a fault that waits for its turn is none."""
        self._write("cpu", "", "cpu.shares", "cpu.weight", "1600" if "cpu" in self.unified else "16384")

    def enter_paths(self) -> list[Path]:
        """What a process writes "0" into to be in all of them."""
        roots = {root for name in self._mounts if (root := self.root_of(name)) is not None}
        return [root / PROGRAM / "cgroup.procs" for root in roots if (root / PROGRAM).is_dir()]

    def cgroup(self, controller: str, name: str = "", *, children: bool = False) -> Path:
        """A cgroup below the scenario's own. With `children` it holds cgroups, and on version 2 no processes."""
        root = self.root_of(controller)
        if root is None:
            raise RuntimeError(f"no cgroup hierarchy has the controller {controller}")
        made = root / name if name else root
        made.mkdir(parents=True, exist_ok=True)
        if controller in self.unified and children:
            _pass_down(made)
        return made

    def in_every_hierarchy(self) -> None:
        """The scenario's own cgroup also where it needs no controller: a runtime wants its parent to be everywhere."""
        for mount in (Path(one.mount) for one in cgroup.hierarchies() if one.mount is not None):
            own = mount / self.name
            own.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (own / file).exists() and not (own / file).read_text().strip() and (mount / file).exists():
                    (own / file).write_text((mount / file).read_text())

    def limit_memory(self, name: str, limit_bytes: int) -> None:
        self._write("memory", name, "memory.limit_in_bytes", "memory.max", str(limit_bytes))

    def quota(self, name: str, quota_us: int, period_us: int) -> None:
        if "cpu" in self.unified:
            self._write("cpu", name, "", "cpu.max", f"{quota_us} {period_us}")
            return
        self._write("cpu", name, "cpu.cfs_period_us", "", str(period_us))
        self._write("cpu", name, "cpu.cfs_quota_us", "", str(quota_us))

    def reclaim_file(self, name: str) -> Path:
        """Written to, the kernel reclaims from the cgroup and all below it."""
        directory = self.cgroup("memory", name, children=True)
        return directory / ("memory.reclaim" if "memory" in self.unified else "memory.force_empty")

    def _write(self, controller: str, name: str, v1: str, v2: str, text: str) -> None:
        root = self.root_of(controller)
        file = v2 if controller in self.unified else v1
        if root is not None and root.is_dir() and file:
            (root / name / file).write_text(text)


def _mount(controller: str) -> tuple[Path, int] | None:
    found = cgroup.of_controller(controller, cgroup.hierarchies())
    if found is None or found.mount is None:
        return None
    mount = Path(found.mount)
    if found.version == 2 and controller not in (mount / "cgroup.subtree_control").read_text().split():
        return None  # switching it on for the whole machine is not ours to do
    return mount, found.version


def _pass_down(directory: Path) -> None:
    for name in _WANTED:
        with suppress(OSError):
            (directory / "cgroup.subtree_control").write_text(f"+{name}")
