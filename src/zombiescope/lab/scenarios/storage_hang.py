"""A FUSE file system whose daemon stops answering, and three tasks that read from it."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
import threading
from zombiescope.lab.fuse_server import FuseServer
check(libc.unshare(0x00020000))
check(libc.mount(b"none", b"/", None, 0x44000, None))  # private, with all below
place, hangs = args[0], threading.Event()
server = FuseServer(64 << 20)
told, tell = os.pipe()
opened, open_now = os.pipe()
for number in range(3):
    if os.fork() == 0:
        # The daemon is their parent: when it dies its end is closed, which frees the tasks that wait for it.
        server.close()
        dies_with_its_parent()
        name_is("trainer")
        os.read(opened, 1)
        file = os.open(place + "/data", os.O_RDONLY)
        os.read(told, 1)
        os.pread(file, 4096, (number + 8) << 20)
        os._exit(0)
server.mount(place)
os.close(opened)
server.delay_s = lambda _: 3600.0 if hangs.is_set() else 0.0
threading.Thread(target=server.serve, daemon=True).start()
os.write(open_now, b"123")
time.sleep(0.5)
wait_for_the_word()
hangs.set()
os.write(tell, b"123")
time.sleep(3600)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory())]


SCENARIO = Scenario(
    id="storage-hang",
    title="A FUSE file system does not answer any more",
    does="mounts a FUSE file system in a separate mount namespace, lets its daemon hang, and three tasks read it",
    truth=Truth("storage-hang", "", "fuse-daemon"),
    script=SCRIPT,
    comm="fuse-daemon",
    frames="6.18: none sampled; the readers are in state D below filemap_get_pages > folio_wait_bit_common",
    seconds=50.0,
    needs=Needs(files=("/dev/fuse",)),
    prepare=prepare,
)
