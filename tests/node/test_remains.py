"""Nothing is left of a machine, however its owner ends. It need not come up for that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.lab import programs
from zombiescope.lab.failure import CannotBuildError
from zombiescope.lab.image import image

pytestmark = [pytest.mark.node, pytest.mark.slow]

OWNER = """
import sys, time
from zombiescope.lab import accelerator
from zombiescope.lab.node import LabNode, Plan, boot
accelerator.why_not_kvm = lambda kernel: "not asked here"
came = LabNode.wait_until_up
def wait(self, limit_s=0.0):
    print(self.pid, flush=True)
    came(self, 300.0)
LabNode.wait_until_up = wait
with boot(Plan(product=False)):
    pass
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where the machine may leave things, and must not."""
    try:
        programs.find("qemu-system-x86_64")
        image("bookworm")
    except CannotBuildError as error:
        Needs().lack(str(error))
    return tmp_path


def is_machine(process: int) -> bool:
    try:
        return "-kernel" in Path(f"/proc/{process}/cmdline").read_text()
    except FileNotFoundError:
        return False


def becomes(process: int, *, machine: bool) -> bool:
    end = time.monotonic() + 10
    while is_machine(process) != machine and time.monotonic() < end:
        time.sleep(0.1)
    return is_machine(process) == machine


@contextmanager
def owner_of_a_machine(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as owner:
        try:
            assert owner.stdout
            machine = int(owner.stdout.readline())
            assert becomes(machine, machine=True)
            yield owner, machine
        finally:
            owner.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_machine_goes_with_its_owner(temporary: Path, how: signal.Signals) -> None:
    # GIVEN a machine that is booting
    with owner_of_a_machine(temporary) as (owner, machine):
        time.sleep(1)
        # WHEN its owner is interrupted, or killed
        owner.send_signal(how)
        owner.communicate(timeout=30)
    # THEN it is gone, and so is everything it wrote
    assert becomes(machine, machine=False)
    assert list(temporary.iterdir()) == []
