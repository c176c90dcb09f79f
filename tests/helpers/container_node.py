"""A real container runtime on this machine, and what it says itself about its containers: the oracle of a recording.

A program in namespaces and cgroups of its own starts the runtime, does what a test wants, prints one JSON document, and
waits. Everything of it is gone when the block ends, also when the test failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zombiescope.lab import leftovers
from zombiescope.lab.sandbox import Sandbox

NAME = "containers-of-a-test"
GB = 1 << 30
PREAMBLE = """
import json, os, subprocess, sys, time
from pathlib import Path
from zombiescope.lab.docker import docker
from zombiescope.lab.isolation import enter_own_namespaces, tmpfs
from zombiescope.lab.kubernetes import NODE, cluster, container, pod
place, parent = Path(sys.argv[1]), sys.argv[2]
enter_own_namespaces()
def tell(document):
    print(json.dumps(document), flush=True)
    sys.stdin.read()
def script(name, text):
    (place / name).write_text("#!/bin/sh\\n" + text)
    (place / name).chmod(0o700)
    return str(place / name)
"""


@contextmanager
def told_by(script: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """What the program told; the runtime goes on inside the block. `arguments`: its sys.argv from the third on."""
    leftovers.remove(leftovers.find(NAME))
    sandbox = Sandbox(NAME)
    sandbox.make(memory_bytes=3 * GB, processes=4096, real_time=False)
    sandbox.in_every_hierarchy()
    place = sandbox.directory()
    try:
        with (place / "stderr").open("wb") as errors:
            process = _start(sandbox, place, (script, *arguments), errors.fileno())
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if not said:
                raise AssertionError((place / "stderr").read_text(errors="replace")[-2000:])
            yield json.loads(said)
        finally:
            process.kill()
            process.wait()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.stdout.close()
    finally:
        left = leftovers.remove(leftovers.find(NAME))
        assert not left, left


def _start(sandbox: Sandbox, place: Path, script: tuple[str, ...], errors: int) -> subprocess.Popen[bytes]:
    def enter() -> None:
        for path in sandbox.enter_paths():
            path.write_text("0")

    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + script[0], str(place), f"/{sandbox.name}", *script[1:]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, preexec_fn=enter,
    )  # fmt: skip
