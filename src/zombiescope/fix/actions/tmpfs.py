"""Files in memory that keep removed cgroups are deleted: those that were shown, and no others.

A file is known by device and inode: one that was put in its place since is left alone. Right before, it is asked again
who has them open; somebody who was not shown stops the step before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from zombiescope.fix.pins import unlink
from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.fix.tmpfs_files import TmpfsFile, is_there
from zombiescope.kernel import open_files
from zombiescope.kernel.process import read_stat


@dataclass(frozen=True, slots=True)
class RemoveTmpfsFiles:
    files: tuple[TmpfsFile, ...]
    users: tuple[tuple[int, int], ...] = ()
    """(pid, start time) of those that were shown to have one of them open."""
    kind: ClassVar[str] = "tmpfs.remove"

    def __post_init__(self) -> None:
        """From the log they are lists."""
        made = tuple(one if isinstance(one, TmpfsFile) else TmpfsFile(*one) for one in self.files)
        if not all(isinstance(one.path, str) and one.path.startswith("/") for one in made):
            raise ValueError("a file has an absolute path")
        object.__setattr__(self, "files", made)
        object.__setattr__(self, "users", tuple((int(pid), int(start)) for pid, start in self.users))

    def arguments(self) -> dict[str, Any]:
        files = [[one.path, one.device, one.inode, one.uid, one.size_bytes] for one in self.files]
        return {"files": files, "users": [list(one) for one in self.users]}

    def command(self) -> tuple[str, ...] | None:
        return ("rm", "--", self.files[0].path) if len(self.files) == 1 else None

    def touches(self) -> tuple[str, ...]:
        return bounded([f"{one.path}: {one.size_bytes:,} bytes of uid {one.uid}" for one in self.files])

    def before(self) -> dict[str, Any]:
        return {"there": sum(1 for one in self.files if is_there(one))}

    def is_applied(self) -> bool:
        return not any(is_there(one) for one in self.files)

    def apply(self) -> None:
        self._refuse_strangers()
        for one in self.files:
            try:
                with suppress(FileNotFoundError):
                    unlink(one)
            except OSError as error:
                raise ActionFailedError(f"{one.path}: {error.strerror or error}") from error

    def undo(self, before: Mapping[str, Any]) -> None:  # noqa: ARG002  as every action
        raise ActionFailedError("files that were deleted from memory cannot be brought back")

    def _refuse_strangers(self) -> None:
        used = open_files.scan({(one.device, one.inode): one.path for one in self.files})
        if not used.complete:
            raise ActionFailedError("who has these files open could not be found out in time, so none was deleted")
        for pid in sorted({pid for pids in used.users.values() for pid in pids}):
            stat = read_stat(pid)
            if stat is not None and (pid, stat.start_time_ticks) not in self.users:
                raise ActionFailedError(f"{stat.comm} (pid {pid}) has one of these files open now; none was deleted")


ACTIONS = (RemoveTmpfsFiles,)
