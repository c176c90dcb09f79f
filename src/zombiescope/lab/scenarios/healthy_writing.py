"""Heavy file writing, as checkpoints are written: large files, synced, replaced, and nothing wrong."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, MB, Needs, Scenario, Truth

SCRIPT = r"""
place = args[0]
block = os.urandom(1 << 20)
wait_for_the_word()
while True:
    with open(f"{place}/checkpoint.new", "wb", buffering=0) as file:
        for _ in range(128):
            file.write(block)
        os.fsync(file.fileno())
    os.rename(f"{place}/checkpoint.new", f"{place}/checkpoint")
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory())]


SCENARIO = Scenario(
    id="healthy-writing",
    title="Checkpoints are written",
    does=f"repeatedly writes files of {128 * MB >> 20} MB to the disk of temporary files, syncs and replaces them",
    truth=Truth(None),
    script=SCRIPT,
    comm="checkpointer",
    seconds=60.0,
    needs=Needs(1 * GB),
    prepare=prepare,
    kind="healthy",
)
