"""A FUSE file system whose daemon takes a second for each 128 kB, and a task that writes to it."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
import threading
from zombiescope.lab.fuse_server import FuseServer
check(libc.unshare(0x00020000))
check(libc.mount(b"none", b"/", None, 0x44000, None))  # private, with all below
place = args[0]
server = FuseServer(256 << 20, writeback=True)
told, tell = os.pipe()
if os.fork() == 0:
    # The daemon is its parent: when it dies its end is closed, which frees the tasks that wait for it.
    server.close()
    dies_with_its_parent()
    name_is("checkpointer")
    os.read(told, 1)
    file = os.open(place + "/data", os.O_WRONLY)
    for at in range(0, 256 << 20, 1 << 16):
        os.pwrite(file, b"x" * (1 << 16), at)
    os._exit(0)
server.mount(place)
server.delay_s = lambda operation: 1.0 if operation == 16 else 0.0  # WRITE
threading.Thread(target=server.serve, daemon=True).start()
wait_for_the_word()
os.write(tell, b"1")
time.sleep(3600)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory())]


SCENARIO = Scenario(
    id="writeback-stall",
    title="What was written does not get to the disk",
    does="mounts a FUSE file system in a separate mount namespace, whose daemon writes 128 kB/s; a task fills it",
    truth=Truth("writeback-stall", "", "slow-daemon"),
    script=SCRIPT,
    comm="slow-daemon",
    frames="6.18: none sampled; the writer is in state D below iomap_file_buffered_write > balance_dirty_pages",
    seconds=50.0,
    needs=Needs(1 << 30, files=("/dev/fuse",)),
    prepare=prepare,
)
