"""Whether every part of a running recorder is alive: heartbeat files in the runtime directory.

    RUNTIME/health-PID.json   {"publisher", "pid", "start_ticks", "boot", "node_dir", "beat_s", "every_s",
                               "parts": [Part, ...]}

Each process that looks after parts (the recorder, the agent's services, the page of `up`) is a publisher and replaces
its file every `EVERY_S` seconds. The runtime directory is a tmpfs: a full disk does not silence a publisher. A clean
exit removes the file, so a file whose process is gone means a death, and an old beat means a process that is stopped
or hangs. The reader judges both itself and never takes a publisher's word for its own life.

Times are Unix seconds, except `beat_s`, which is CLOCK_MONOTONIC so that a clock step is no death. Only the standard
library is imported here: the recorder uses this module too.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from zombiescope._mark import runtime_directories
from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.store import locate
from zombiescope.store.process_identity import boot_id, is_stopped, start_ticks

State = Literal["ok", "failed", "hung", "off"]
STATES: tuple[State, ...] = ("ok", "failed", "hung", "off")

RECORDER = "recorder"
LIVE_DIAGNOSIS = "live diagnosis"
DISK_WRITER = "disk writer"

EVERY_S = 2.0
SILENT_S = 7.0
"""A publisher that has not replaced its file for this long is reported as hung: within ten seconds of its last beat."""
_FILES = 64
_FILE_BYTES = 1 << 18
_PARTS = 64
_WHY_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Part:
    """One part: a process, a thread or a service that can fail by itself."""

    name: str
    state: State
    since: float
    """Since when it is in this state."""
    last_success: float | None = None
    """When it last did what it is for. None: never yet."""
    work: int = 0
    """How often it did that since its publisher started."""
    why: str = ""
    """What is wrong, as a sentence that begins with the name: "crashed: SIGSEGV"; or why it is off. Also the reason of
    the last failure of a part that works again."""
    fix: str = ""
    """The command or setting that helps, where there is one."""
    failures: int = 0
    pid: int | None = None
    rss_bytes: int | None = None
    obscured_by: str | None = None
    """The publisher whose silence hides the state of this part."""


def path_of(runtime: Path, pid: int) -> Path:
    """The heartbeat file of a publisher."""
    return runtime / f"health-{pid}.json"


def publish(path: Path, publisher: str, node_dir: Path, parts: Iterable[Part]) -> None:
    """Replaces the heartbeat file of this process in one step. Raises OSError."""
    document = {
        "publisher": publisher,
        "pid": os.getpid(),
        "start_ticks": start_ticks(os.getpid()),
        "node_dir": str(node_dir),
        "boot": boot_id(),
        "beat_s": time.monotonic(),
        "every_s": EVERY_S,
        "parts": [asdict(part) for part in parts],
    }
    safe_files.replace(path, json.dumps(document, separators=(",", ":")).encode())


def withdraw(path: Path) -> None:
    """At a clean exit."""
    with suppress(OSError):
        path.unlink()


def parts_of(node_dir: Path, places: Sequence[Path] | None = None) -> list[Part]:
    """All parts of what records into this node directory, publishers first; empty when nobody publishes."""
    found: list[Part] = []
    for document in _published(node_dir, places):
        own, told = _publisher(document), _told(document)
        stale = own.state != "ok"
        found.append(own)
        found += [_unknown_since(part, own) if stale else part for part in told if part.name != own.name]
    return sorted(found, key=lambda part: part.name != RECORDER)


def deaths(places: Sequence[Path] | None = None) -> list[tuple[Path, Part]]:
    """(node directory, the recorder's part) of every recorder that died, and that none has replaced."""
    found = []
    for document in _all(places):
        own = _publisher(document)
        node_dir = Path(str(document.get("node_dir")))
        if (
            document.get("publisher") == RECORDER
            and own.state == "failed"
            and not _lives(document)
            and node_dir.is_dir()
        ):
            found.append((node_dir, own))
    return sorted(found, key=lambda one: one[1].since)


def clear_dead(runtime: Path, node_dir: Path, publisher: str) -> None:
    """A publisher that starts replaces dead ones of its own kind for this node."""
    boot = boot_id()
    for path, document in _files(runtime):
        is_of_its_kind = document.get("publisher") == publisher and document.get("node_dir") == str(node_dir)
        is_of_its_kind = is_of_its_kind or document.get("boot", boot) != boot
        if is_of_its_kind and not _lives(document):
            withdraw(path)


def _published(node_dir: Path, places: Sequence[Path] | None) -> Iterator[dict[str, Any]]:
    wanted = str(node_dir.absolute()), str(node_dir.resolve())
    return (document for document in _all(places) if document.get("node_dir") in wanted)


def _all(places: Sequence[Path] | None) -> Iterator[dict[str, Any]]:
    """Of this boot: what an earlier one left in a directory that outlives it says nothing about now."""
    boot = boot_id()
    for runtime in dict.fromkeys(Path(place) for place in runtime_directories()) if places is None else places:
        yield from (document for _, document in _files(runtime) if document.get("boot", boot) == boot)


def _files(runtime: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    try:
        paths = sorted(Path(runtime).glob("health-*.json"))
    except OSError:
        return
    for path in paths[:_FILES]:
        document = _read(path)
        if document is not None:
            yield path, document


def _read(path: Path) -> dict[str, Any] | None:
    """None when it cannot be read, or when somebody else could have written it."""
    try:
        with os.fdopen(safe_files.open_to_read(path), "rb") as file:
            if os.fstat(file.fileno()).st_uid not in locate.trusted_owners(path.parent):
                return None
            document = _json.loads(file.read(_FILE_BYTES))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _publisher(document: dict[str, Any]) -> Part:
    """The publisher itself, judged from outside."""
    name, pid = str(document.get("publisher"))[:_WHY_CHARACTERS], int(_number(document.get("pid")))
    beat_s = _number(document.get("beat_s"))
    silent_s = time.monotonic() - beat_s
    beat = time.time() - silent_s
    told = next((part for part in _told(document) if part.name == name), Part(name, "ok", beat))
    if not _lives(document):
        return replace(told, state="failed", since=beat, last_success=beat, pid=pid, why=f"has died (pid {pid})")
    if is_stopped(pid):
        fix = f"kill -CONT {pid}"
        return replace(told, state="hung", since=beat, last_success=beat, pid=pid, why="is stopped (SIGSTOP)", fix=fix)
    if silent_s > SILENT_S:
        why = f"has reported nothing for {silent_s:.0f} s (pid {pid})"
        return replace(told, state="hung", since=beat, last_success=beat, pid=pid, why=why)
    return replace(told, pid=pid, last_success=told.last_success or beat)


def _unknown_since(part: Part, publisher: Part) -> Part:
    """Of a part whose publisher is silent nothing is known."""
    if part.state == "off":
        return part
    why = f"is not known: the {publisher.name} {publisher.why}"
    return replace(part, state=publisher.state, since=publisher.since, why=why, obscured_by=publisher.name)


def _told(document: dict[str, Any]) -> list[Part]:
    parts = document.get("parts")
    return [made for entry in parts[:_PARTS] if (made := _part(entry))] if isinstance(parts, list) else []


def _part(entry: object) -> Part | None:
    if not isinstance(entry, dict) or entry.get("state") not in STATES or not entry.get("name"):
        return None
    optional = {name: entry.get(name) for name in ("last_success", "pid", "rss_bytes")}
    return Part(
        name=str(entry["name"])[:_WHY_CHARACTERS],
        state=entry["state"],
        since=_number(entry.get("since")),
        work=int(_number(entry.get("work"))),
        why=str(entry.get("why") or "")[:_WHY_CHARACTERS],
        fix=str(entry.get("fix") or "")[:_WHY_CHARACTERS],
        failures=int(_number(entry.get("failures"))),
        last_success=None if optional["last_success"] is None else _number(optional["last_success"]),
        pid=None if optional["pid"] is None else int(_number(optional["pid"])),
        rss_bytes=None if optional["rss_bytes"] is None else int(_number(optional["rss_bytes"])),
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _lives(document: dict[str, Any]) -> bool:
    ticks = start_ticks(int(_number(document.get("pid"))))
    return ticks is not None and ticks == document.get("start_ticks")
