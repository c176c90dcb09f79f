"""Samples to a store of profiles all the time: each pass sends what was recorded since the last.

    python -m zombiescope.query.exports.continuous NODE_DIR STATE_FILE < policy.json

It stays loaded (80 MB): to load numpy and pyarrow for every pass costs more CPU than to send what a minute holds. After
MOST_PASSES it ends and is started again, so that nothing it keeps can grow for weeks; it ends too when the agent does.
What was sent is one number in the state file. What waits lies in the recording and nowhere else, so a peer that is away
costs no memory; after `backlog_s` the oldest is passed over, and that is counted. Spans begin at multiples of their
length, and only whole ones are sent. Killed between the peer's answer and the number, a pass sends one span again: none
of these peers can be told that it has it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.confinement import confine
from zombiescope.base.errors import UserError
from zombiescope.base.text import printable
from zombiescope.query.exports.peer import Peer
from zombiescope.query.exports.push import EVERY_US, Target, push
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import open_recording

SETTLED_US = 5_000_000
"""Rows of a second may come this much later."""
STEP_US = 300_000_000
"""As much is read at once: it bounds the memory of a run that has much to make good."""
MOST_PASSES = 720
MOST_WAIT_S = 300.0
"""Between two tries of a peer that is away."""
ALIVE_S = 2.0
Say = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class PushPolicy:
    to: Target
    url: str
    name: str = "zombiescope"
    labels: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    token_file: str | None = None
    plain_http: bool = False
    timeout_s: float = 10.0
    backlog_s: float = 900.0
    every_s: float | None = None
    """None: one pass."""

    def peer(self) -> Peer:
        """Raises PushError, OSError."""
        bearer = {}
        if self.token_file:
            bearer["Authorization"] = f"Bearer {Path(self.token_file).read_text('utf-8').strip()}"
        return Peer(self.url, {**bearer, **self.headers}, self.timeout_s, plain=self.plain_http)


def run(node_dir: Path, state: Path, policy: PushPolicy, say: Say, now_us: int | None = None) -> None:
    """Sends all whole spans that wait. Raises UserError, OSError."""
    peer, length_us = policy.peer(), EVERY_US[policy.to]
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    sent_us = _read(state)
    with open_recording(node_dir, since_us=sent_us or now_us - round(policy.backlog_s * 1e6)) as recording:
        end_us = min(recording.end_us, now_us - SETTLED_US) // length_us * length_us
        oldest_us = max(end_us - round(policy.backlog_s * 1e6), recording.start_us) // length_us * length_us
        start_us = max(sent_us or end_us - length_us, oldest_us)
        if sent_us is not None and start_us > sent_us:
            say({"skipped_s": (start_us - sent_us) / 1e6})
        labels = {"node": recording.name, **_labels(recording.node), **policy.labels}
        while start_us < end_us:
            until_us = min(start_us + STEP_US, end_us)
            filters = Filters(every_event=policy.to == "otlp")
            samples = ExportSamples(Selection(recording, start_us, until_us, filters))
            for sent in push(samples, policy.to, peer, policy.name, labels, length_us):
                _write(state, sent.end_us)
                say({"samples": sent.samples, "bytes": sent.bytes, "requests": 1})
            _write(state, until_us)
            start_us = until_us


def run_on(node_dir: Path, state: Path, policy: PushPolicy, say: Say, is_over: Callable[[float], bool]) -> None:
    """Pass after pass; each says that it is done, or why not. `is_over` waits for so long, unless it is over."""
    failures = 0
    for _ in range(MOST_PASSES):
        try:
            run(node_dir, state, policy, say)
            failures = 0
            say({"passes": 1})
        except (UserError, OSError, ValueError, TypeError) as error:
            failures += 1
            say({"failure": printable(str(error))})
        every_s = policy.every_s
        if every_s is None or is_over(min(every_s * 2 ** min(failures, 8), max(MOST_WAIT_S, every_s))):
            return


def _labels(node: dict[str, Any]) -> dict[str, str]:
    recorded = node.get("labels")
    return {str(key): str(value) for key, value in recorded.items()} if isinstance(recorded, dict) else {}


def _read(state: Path) -> int | None:
    try:
        with os.fdopen(safe_files.open_to_read(state), "rb") as file:
            sent_us = _json.loads(file.read(4096))["sent_us"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return sent_us if isinstance(sent_us, int) and sent_us > 0 else None


def _write(state: Path, sent_us: int) -> None:
    safe_files.replace(state, json.dumps({"sent_us": sent_us}).encode())


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m zombiescope.query.exports.continuous NODE_DIR STATE_FILE < policy.json\n")
        return 2
    os.nice(10)
    confine(programs=True)  # it needs sockets, and none of the recorder's capabilities
    agent = os.getppid()

    def is_over(seconds: float) -> bool:
        end_s = time.monotonic() + seconds
        while os.getppid() == agent and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, ALIVE_S))
            _say({"alive": 1})
        return os.getppid() != agent

    try:
        policy = PushPolicy(**_json.loads(sys.stdin.buffer.read(1 << 20)))
    except (OSError, ValueError, TypeError) as error:
        _say({"failure": printable(str(error))})
        return 0
    run_on(Path(arguments[0]), Path(arguments[1]), policy, _say, is_over)
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # threads of pyarrow may still be letting go of a file (see cli/main.py)
