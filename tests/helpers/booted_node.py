"""A booted node for tests: the recorder as its service in it, units that leak, and the recording brought out."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import Needs
from zombiescope.lab.failure import CannotBuildError
from zombiescope.lab.node import LabNode, Plan, boot

RECORDING = "/var/lib/zombiescope"

LEAKY = """\
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sh -c 'echo x > /var/tmp/leaky-$$$$'
Restart=always
RestartSec=100ms
"""
"""Ends at once, is started again, and leaves a page of a file behind each time."""

LITTER = """\
[Service]
Delegate=yes
ExecStart=/bin/sh /usr/local/bin/litter
"""

LITTER_SCRIPT = """\
own=$(sed -n 's/^[0-9]*:memory://p; s/^0:://p' /proc/self/cgroup | head -n 1)
top=/sys/fs/cgroup; [ ! -d $top/memory ] || top=$top/memory
if [ -e $top$own/cgroup.subtree_control ]; then
    mkdir $top$own/supervisor
    echo $$ > $top$own/supervisor/cgroup.procs
    echo +memory > $top$own/cgroup.subtree_control
fi
number=1000
while :; do
    job=$top$own/job-$number
    mkdir $job
    sh -c "echo \\$\\$ > $job/cgroup.procs; echo x > /var/tmp/litter-$number"
    rmdir $job
    number=$((number + 1))
    sleep 0.2
done
"""
"""Stays active, as a container runtime does, while the cgroups it makes below itself come and go."""


@contextmanager
def booted(plan: Plan) -> Iterator[LabNode]:
    """A node that is up; where none can be had, the reason to skip, or to fail."""
    try:
        with boot(plan, print) as node:
            yield node
    except CannotBuildError as error:
        Needs().lack(str(error))


def until(node: LabNode, script: str, limit_s: float = 90.0) -> None:
    """Wait until a shell script succeeds in the node."""
    end = time.monotonic() + limit_s
    while node.run("/bin/sh", "-c", script, limit_s=30.0).exit != 0:
        assert time.monotonic() < end, f"not within {limit_s} s: {script}\n{node.console()[-2000:]}"
        time.sleep(0.5)


def start_recorder(node: LabNode) -> None:
    node.run("systemctl", "start", "zombiescope.service", limit_s=180.0).check()  # it is up when it records
    until(node, "journalctl --unit zombiescope --output cat | grep -q 'recording lab into'")
    until(node, f'test -n "$(find {RECORDING}/node=lab/log -size +4k)"')


def start_leaks(node: LabNode) -> None:
    node.put("/etc/systemd/system/leaky.service", LEAKY)
    node.put("/etc/systemd/system/litter.service", LITTER)
    node.put("/usr/local/bin/litter", LITTER_SCRIPT)
    node.shell("systemctl daemon-reload; systemctl start --no-block leaky litter")


def stop_leaks(node: LabNode) -> None:
    node.shell("systemctl stop leaky litter", limit_s=120.0)


def steady(node: LabNode, read: Callable[[LabNode], Any], seconds: float = 3.0) -> tuple[Any, float]:
    """A reading that stayed the same for some seconds, and a moment of the node's clock in the middle of it."""
    for _ in range(20):
        before = read(node)
        node.shell(f"sleep {seconds / 2}")
        moment = float(node.shell("date +%s.%N"))
        node.shell(f"sleep {seconds / 2}")
        if read(node) == before:
            return before, moment
    raise AssertionError(f"never steady: {before}")


def on_host(command: str, recording: Path, *options: str) -> dict[str, Any]:
    """The JSON document of a command that reads a recording, run on this machine."""
    argv = [sys.executable, "-m", "zombiescope.cli.main", command, str(recording), "--json", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document
