"""Three thousand mounts in a mount namespace of their own, and a reader of mountinfo that does nothing else."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import Needs, Scenario, Truth

COUNT = 3_000
SCRIPT = r"""
check(libc.unshare(0x00020000))
check(libc.mount(b"none", b"/", None, 0x44000, None))  # private, with all below
place = args[0].encode()
check(libc.mount(b"tmpfs", place, b"tmpfs", 0, None))
for number in range(int(args[1])):
    directory = place + b"/%d" % number
    os.mkdir(directory)
    check(libc.mount(place, directory, None, 0x1000, None))
wait_for_the_word()
while True:
    with open("/proc/self/mountinfo", "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory()), str(COUNT)]


SCENARIO = Scenario(
    id="mount-storm",
    title="A mount table of thousands, read repeatedly",
    does=f"makes {COUNT:,} mounts in a separate mount namespace and reads its mount table repeatedly",
    truth=Truth("mount-storm", "mount-reader", "mount-reader"),
    script=SCRIPT,
    frames="6.18: show_mountinfo 91% in total, mangle_path 13%, prepend_path 9%",
    needs=Needs(),
    prepare=prepare,
)
