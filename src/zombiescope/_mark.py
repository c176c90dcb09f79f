"""Marks and training steps on the time axis of every recorder that runs on this machine: datagrams to their sockets.

Made for training loops: nothing here raises, and it imports only what Python itself has. `mark` waits 50 ms at most and
answers whether a recorder took the mark. `step` never waits: it notes the time, and once a second what was noted is
sent. No recorder, no mark, no error.
"""

from __future__ import annotations

import os
import time

RECORDERS = 8
"""So many may run at once and be found; a second one takes the second place, and hides nobody."""
TIMEOUT_S = 0.05
MAX_TEXT = 500  # characters; the recorder keeps no more of a mark either


def runtime_directories() -> list[str]:
    """Where a recorder running here may have put its socket and recorder.json, the likeliest first."""
    if chosen := os.environ.get("ZOMBIESCOPE_RUNTIME_DIR"):
        return [chosen]
    places = ["/run/zombiescope"]
    if session := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(os.path.join(session, "zombiescope"))  # noqa: PTH118  pathlib costs an import
    places.append(f"/tmp/zombiescope-{os.geteuid()}")  # noqa: S108  nothing there is believed unchecked
    return places


def socket_name(place: int) -> str:
    """The first recorder of a runtime directory has the plain name."""
    return "mark.sock" if place == 1 else f"mark-{place}.sock"


def mark(text: str) -> bool:
    """Put `text` on the time axis now. True when a recorder on this machine took it."""
    at_us = time.time_ns() // 1000
    try:
        return _send([place for place in runtime_directories() if not _is_planted(place)], str(text), at_us)
    except Exception:  # noqa: BLE001  a mark must never end a training run
        return False


# --- steps ------------------------------------------------------------------------------------------------------------

SEND_EVERY_NS = 1_000_000_000
LOOK_EVERY_NS = 5_000_000_000  # where no recorder is
MOST_STEPS = 33  # in one message: 32 durations and the step that goes on
MAX_PHASE = 40  # characters

_noted: list[
    tuple[int, int, str | None, int | None]
] = []  # (number, nanoseconds, phase, rank) since the last message; its last one goes on
_next_ns = 0
_quiet_ns = 0
_left_out = 0
_counted = 0


def step(n: int | None = None, phase: str | None = None, rank: int | None = None) -> None:
    """A training step begins: number `n` (counted if it is None), perhaps of a phase ("eval"), perhaps of a rank.

    Never raises and never waits. Under a microsecond where no recorder runs.
    """
    global _counted, _next_ns, _left_out
    now_ns = time.monotonic_ns()
    if now_ns < _quiet_ns:
        return
    try:
        if n is None:
            n = _counted
            _counted = n + 1
        _noted.append((n, now_ns, phase, rank))
        if len(_noted) > 16 * MOST_STEPS:
            _left_out += len(_noted) - MOST_STEPS
            del _noted[:-MOST_STEPS]
        if now_ns >= _next_ns:
            _next_ns = now_ns + SEND_EVERY_NS
            _send_steps(now_ns)
    except Exception:  # noqa: BLE001  a step must never end a training run
        return


def _send_steps(now_ns: int) -> None:
    """One datagram for each run of steps that follow each other, to every recorder."""
    import json

    global _noted, _quiet_ns, _left_out
    taken, _noted = _noted, _noted[-1:]
    if len(taken) > MOST_STEPS:
        _left_out += len(taken) - MOST_STEPS
        taken = taken[-MOST_STEPS:]
    clock_ns = time.time_ns() - now_ns
    runs: list[dict[str, object]] = []
    before = None
    took_us: list[int] = []
    for place in range(len(taken) - 1):
        n, at_ns, phase, rank = taken[place]
        if before != (n, phase, rank):
            took_us = []
            words = None if phase is None else str(phase)[:MAX_PHASE]
            at_us = (at_ns + clock_ns) // 1000
            runs.append({"first": n, "phase": words, "rank": rank, "at_us": at_us, "took_us": took_us})
        took_us.append((taken[place + 1][1] - at_ns) // 1000)
        before = (n + 1, phase, rank)
    sent = False
    for run in runs or [{}]:
        sent = _deliver(json.dumps({"steps": {**run, "left_out": _left_out}}).encode()) or sent
    if sent:
        _left_out = 0
    else:
        del _noted[:]
        _quiet_ns = now_ns + LOOK_EVERY_NS


def _deliver(message: bytes) -> bool:
    """Whether a recorder is there, even one that has no room now. Never waits."""
    import socket

    found = False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for directory in runtime_directories():
            if _is_planted(directory):
                continue
            for place in range(1, RECORDERS + 1):
                try:
                    sender.sendto(message, f"{directory}/{socket_name(place)}")
                    found = True
                except BlockingIOError:
                    found = True
                except OSError:
                    continue
    return found


def _forget_steps() -> None:
    """A forked child reports none of its parent's."""
    global _next_ns, _quiet_ns, _left_out, _counted
    del _noted[:]
    _next_ns = _quiet_ns = _left_out = _counted = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_steps)


def _is_planted(directory: str) -> bool:
    """Anybody can make a directory in /tmp; what a training run has to say is not for him."""
    if directory != f"/tmp/zombiescope-{os.geteuid()}":  # noqa: S108
        return False
    try:
        return os.lstat(directory).st_uid != os.geteuid()
    except OSError:
        return True


def _send(directories: list[str], text: str, at_us: int) -> bool:
    import json
    import socket

    message = json.dumps({"text": text[:MAX_TEXT], "at_us": at_us}, ensure_ascii=False).encode("utf-8", "replace")
    ends_s = time.monotonic() + TIMEOUT_S
    taken = False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        for path in [f"{directory}/{socket_name(n + 1)}" for directory in directories for n in range(RECORDERS)]:
            sender.settimeout(max(0.0, ends_s - time.monotonic()))
            try:
                sender.sendto(message, path)
                taken = True
            except OSError:  # no recorder there, one that died and left its socket, or one that has no time
                continue
    return taken
