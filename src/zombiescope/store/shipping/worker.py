"""The process that ships: goes on while there is something to send, tries again where that may help, and ends.

    python -m zombiescope.store.shipping.worker NODE_DIR STATE_DIR < policy.json

It is another process than the agent because of what it loads (pyarrow and an SDK take 90 MB), and because a connection
may hang for ever: whoever started it may end it at any moment, and nothing is lost. A target that fails is tried again
after one second, then two and so on, each with some chance in it, so that a thousand nodes do not come back at once.
When the wait becomes longer than the process lingers it ends, and its service starts it again after up to five minutes.

On stdout goes one JSON object for each round or failure; the agent makes metrics and one line of log out of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.confinement import confine
from zombiescope.base.errors import UserError
from zombiescope.base.text import printable
from zombiescope.store.shipping.policy import ShippingPolicy, backoff_s
from zombiescope.store.shipping.shipper import Shipper
from zombiescope.store.shipping.target import open_target

Say = Callable[[dict[str, Any]], None]


class BusyError(UserError):
    """Another process ships the same recording to the same place."""


def state_folder(state: Path, node: str, policy: ShippingPolicy) -> Path:
    """The books about this node and this target. Raises OSError."""
    folder = state
    for name in (f"node={node}", policy.identity):
        _make(folder)
        folder = folder / name
    _make(folder)
    return folder


def _make(folder: Path) -> None:
    if not folder.parent.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
    safe_files.make_directory(folder)


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Raises BusyError: two that ship the same would have two ledgers."""
    with os.fdopen(safe_files.open_lock(folder / "lock"), "r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(
                "another process ships this recording to the same place", "it is done when that process ends"
            ) from error
        yield


def ship(node_dir: Path, state: Path, policy: ShippingPolicy, stop: threading.Event, say: Say) -> None:
    """Until nothing is left and nothing goes on. Raises BusyError, OSError."""
    folder = state_folder(state, node_dir.name.removeprefix("node="), policy)
    with only_one(folder):
        shipper: Shipper | None = None
        failures, idle_since = 0, time.monotonic()
        while not stop.is_set():
            try:
                shipper = shipper or Shipper(node_dir, folder, policy, open_target(policy))
                done = shipper.round()
            except (UserError, OSError) as error:
                failures += 1
                wait_s = backoff_s(failures)
                say({"failure": printable(str(error)), "failures": failures, "next_s": round(wait_s, 1)})
                if wait_s > policy.linger_s:
                    return  # whoever started it starts it again; nobody waits with 70 MB for a target that is away
                stop.wait(wait_s)
                continue
            failures = 0
            say({**asdict(done), "shipped_bytes": shipper.ledger.books.shipped_bytes,
                 "lost_bytes": shipper.ledger.books.dropped_bytes})  # fmt: skip
            if not done.idle or shipper.going_on():
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since >= policy.linger_s:
                return
            stop.wait(policy.every_s)


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0].startswith("-"):
        print("usage: python -m zombiescope.store.shipping.worker NODE_DIR STATE_DIR < policy.json", file=sys.stderr)  # noqa: T201
        return 2
    os.nice(10)
    confine(programs=True)  # it needs sockets, and none of the recorder's capabilities
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        policy = ShippingPolicy(**_json.loads(sys.stdin.buffer.read(1 << 20)))
        ship(Path(arguments[0]), Path(arguments[1]), policy, stop, _say)
    except (UserError, OSError, ValueError, TypeError) as error:
        print(printable(f"zombiescope ship: {error}"), file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # threads of the SDK may still be letting go of a connection (see cli/main.py)
