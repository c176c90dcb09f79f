"""A stand-in for a recorder as far as its heartbeat is concerned: a process that publishes the parts that it is given.

python -m tests.helpers.publisher RUNTIME NODE_DIR '[["live diagnosis", "failed", "why"], ...]'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.agent_process import AgentProcess
from zombiescope.store import health
from zombiescope.store.health import Part

Told = tuple[str, str, str]
"""Name, state and reason of a part."""
EVERY_S = 0.3
ROOT = Path(__file__).parents[2]


def main(runtime: str, node_dir: str, told: str) -> None:
    path = health.path_of(Path(runtime), os.getpid())
    since = time.time()
    parts = [Part(name, state, since, since, 7, why=why) for name, state, why in json.loads(told)]
    while True:
        health.publish(path, health.RECORDER, Path(node_dir), parts)
        time.sleep(EVERY_S)


@contextmanager
def publishing(runtime: Path, node_dir: Path, *told: Told) -> Iterator[subprocess.Popen[bytes]]:
    """Until the block ends; the file of a process that was killed stays, as that of a recorder does."""
    arguments: Sequence[str] = (str(runtime), str(node_dir), json.dumps(told))
    command = [sys.executable, "-m", "tests.helpers.publisher", *arguments]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            end = time.monotonic() + 30
            while not health.path_of(runtime, process.pid).exists():
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


@contextmanager
def heartbeat_of(agent: AgentProcess) -> Iterator[list[int]]:
    """The processes that publish the heartbeat of an agent's recorder: itself, or it and a stand-in beside it."""
    runtime, recorder = agent.place / "run", agent.children()["zombiescope.recorder"]
    if any(part.name == health.RECORDER for part in health.parts_of(agent.node_dir, [runtime])):
        yield [recorder]
        return
    with publishing(runtime, agent.node_dir, (health.RECORDER, "ok", "")) as process:
        yield [recorder, process.pid]


if __name__ == "__main__":
    main(*sys.argv[1:])
