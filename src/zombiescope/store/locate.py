"""Where recordings are, and which recorder runs on this machine.

A running recorder publishes RUNTIME/recorder.json ({"pid", "start_ticks", "recording", "node", "started_us",
"mark_socket"}) and holds flock() on its node's `lock` file, in which its number is. The published file may outlive its
writer; the lock cannot, so the lock decides, and its holder whose it is: one that was killed and started again in the
same directory does not keep the first one alive. One that starts while another runs takes the next place:
RUNTIME/recorder-2.json, and so on.

RUNTIME is /run/zombiescope for root and for the user that root gave that directory to (RuntimeDirectory= of a
unit), else $XDG_RUNTIME_DIR/zombiescope, else /tmp/zombiescope-UID; a reader looks in all of them.
$ZOMBIESCOPE_RUNTIME_DIR replaces them all: a recorder started under it is invisible to everybody else.

Only the standard library is imported here: the recorder uses this module too.
"""

from __future__ import annotations

import errno
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope._mark import RECORDERS, runtime_directories, socket_name
from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.store import process_identity

SYSTEM_DIR = Path("/var/lib/zombiescope")
LOCK_FILE = "lock"
"""Readable as the recording is: the pid of its recorder."""
HELD_FILE = "recorder.lock"
"""Only its owner and root can open it, and so lock it."""
_PUBLISHED_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class RunningRecorder:
    """A recorder that runs now. `node_dir` is the directory that it writes."""

    pid: int
    recording: Path
    node: str
    started_us: int
    mark_socket: Path | None
    start_ticks: int | None = None
    """When the kernel made its process; None: an older version did not say."""

    @property
    def node_dir(self) -> Path:
        return self.recording / f"node={self.node}"


def runtime_directory() -> Path:
    """Where a recorder started by this user publishes itself."""
    places = [Path(place) for place in runtime_directories()]
    if len(places) == 1 or os.geteuid() == 0 or os.access(places[0], os.W_OK):
        return places[0]
    return next((place for place in places[1:] if place.parent.is_dir()), places[-1])


def published_name(place: int) -> str:
    """The file in which the recorder of a place says what it does."""
    return "recorder.json" if place == 1 else f"recorder-{place}.json"


def mark_socket(runtime: Path, place: int) -> Path:
    """Where the recorder of a place listens for marks."""
    return runtime / socket_name(place)


def free_place(runtime: Path) -> int | None:
    """The first place of a runtime directory that no running recorder has; None where so many run already."""
    return next((place for place in range(1, RECORDERS + 1) if _running(runtime, place) is None), None)


def running_recorders() -> list[RunningRecorder]:
    """All recorders of this machine that this user can see, the longest running first."""
    runtimes = dict.fromkeys(Path(place) for place in runtime_directories())
    places = [(runtime, place) for runtime in runtimes for place in range(1, RECORDERS + 1)]
    found = [recorder for recorder in (_running(*place) for place in places) if recorder is not None]
    return sorted(found, key=lambda recorder: recorder.started_us)


def running_recorder() -> RunningRecorder | None:
    """The recorder that is meant when none is named: the one that runs longest. A short second one hides nothing."""
    return next(iter(running_recorders()), None)


def _running(runtime: Path, place: int) -> RunningRecorder | None:
    recorder = _published(runtime / published_name(place), mark_socket(runtime, place))
    return recorder if recorder is not None and holds_lock(recorder) else None


def _published(path: Path, its_socket: Path) -> RunningRecorder | None:
    """What a recorder said of itself; None when nobody did, or when somebody else could have written it."""
    try:
        with os.fdopen(safe_files.open_to_read(path), "rb") as file:
            if os.fstat(file.fileno()).st_uid not in trusted_owners(path.parent):
                return None
            said: dict[str, Any] = _json.loads(file.read(_PUBLISHED_BYTES))
        socket = said.get("mark_socket") or its_socket
        return RunningRecorder(
            pid=int(said["pid"]),
            recording=Path(said["recording"]),
            node=str(said["node"]),
            started_us=int(said["started_us"]),
            mark_socket=Path(socket),
            start_ticks=_ticks(said.get("start_ticks")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _ticks(said: object) -> int | None:
    return said if isinstance(said, int) else None


def trusted_owners(runtime: Path) -> set[int]:
    """Who may have written what a runtime directory says: root, this user, and whoever root gave it to."""
    return {0, os.geteuid(), _appointed(runtime)}


def _appointed(place: Path) -> int:
    """The user that root gave a runtime directory to: nobody else can have made one in /run. Else root."""
    above = place.parent.stat()
    return place.stat().st_uid if above.st_uid == 0 and not above.st_mode & 0o022 else 0


def holds_lock(recorder: RunningRecorder) -> bool:
    """True while this very recorder holds the lock of its node directory."""
    held = is_locked(recorder.node_dir)
    if held is False:
        return False
    holder = _holder(recorder.node_dir) if held else None
    if holder is not None:
        return holder == (recorder.pid, recorder.started_us)
    return lives(recorder)


def lives(recorder: RunningRecorder) -> bool:
    """Whether its process is there, by its number and, where it is known, by when the kernel made it."""
    if recorder.start_ticks is None:
        return is_alive(recorder.pid)
    return process_identity.start_ticks(recorder.pid) == recorder.start_ticks


def _holder(node_dir: Path) -> tuple[int, int] | None:
    """Pid and start of who holds the lock. None where that is not in it: a full disk took only the lock."""
    try:
        with os.fdopen(safe_files.open_to_read(node_dir / LOCK_FILE), "rb") as file:
            said = _json.loads(file.read(_PUBLISHED_BYTES))
        return int(said["pid"]), int(said["started_us"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_locked(node_dir: Path) -> bool | None:
    """Whether a recorder writes into this node directory now. None: the lock may not be looked at by this
    user."""
    held = _is_locked(node_dir / HELD_FILE)
    if held is None:
        return _kernel_says_locked(node_dir / HELD_FILE)
    if held is False and not (node_dir / HELD_FILE).exists():  # of a version that had only the other one
        return _is_locked(node_dir / LOCK_FILE)
    return held


def _is_locked(path: Path) -> bool | None:
    try:
        with os.fdopen(safe_files.open_to_read(path), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        return None if error.errno in (errno.EACCES, errno.EPERM) else False
    return False


def _kernel_says_locked(path: Path) -> bool | None:
    """By /proc/locks, which lists the locks of processes that this one can see: True, or not known."""
    try:
        place = path.stat()
        text = Path("/proc/locks").read_text()
    except OSError:
        return None
    major, minor = os.major(place.st_dev), os.minor(place.st_dev)
    return True if f" {major:02x}:{minor:02x}:{place.st_ino} " in text else None


def is_alive(pid: int) -> bool:
    """Whether a process of this number exists."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def default_dir() -> Path:
    """The recording that a command reads when none is named."""
    if chosen := os.environ.get("ZOMBIESCOPE_DIR"):
        return Path(chosen)
    if recorder := running_recorder():
        return recorder.recording
    return next((place for place in (SYSTEM_DIR, _user_dir()) if has_nodes(place)), SYSTEM_DIR)


def default_dir_for_writing() -> Path:
    """The directory that a recorder started by this user writes when none is named."""
    if chosen := os.environ.get("ZOMBIESCOPE_DIR"):
        return Path(chosen)
    return SYSTEM_DIR if _may_write(SYSTEM_DIR) else _user_dir()


def has_nodes(directory: Path) -> bool:
    """Whether there is a recording in this directory."""
    return any(nodes_in(directory))


def nodes_in(directory: Path) -> list[str]:
    """The names of the nodes recorded in a directory, sorted."""
    try:
        return sorted(
            entry.name.removeprefix("node=") for entry in directory.iterdir() if entry.name.startswith("node=")
        )
    except OSError:
        return []


def _user_dir() -> Path:
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "zombiescope"
    try:
        return Path.home() / ".local/state/zombiescope"
    except RuntimeError:  # a container's arbitrary uid has no home
        return Path(f"/var/tmp/zombiescope-{os.geteuid()}")  # noqa: S108


def _may_write(directory: Path) -> bool:
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    return os.access(place, os.W_OK)
