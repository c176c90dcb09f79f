"""Small packets from core 1 to core 0, between two network namespaces: one core has to process them all.

RPS sends them to core 0 (without it they would be taken by the sender itself). The number of firewall rules that each
has to pass on the other side decides which fault it is.
"""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SETUP = r"""
import socket, subprocess
rules = RULES
def run(*words, **more):
    subprocess.run(words, check=True, **more)
check(libc.unshare(0x40000000))
reading, writing = os.pipe()
going, went = os.pipe()
other = os.fork()
if other == 0:
    dies_with_its_parent()
    check(libc.unshare(0x40020000))
    check(libc.mount(b"none", b"/", None, 0x44000, None))
    check(libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))
    os.write(writing, b"x")
    os.read(going, 1)
    run("ip", "addr", "add", "10.77.0.2/24", "dev", "v1")
    run("ip", "link", "set", "v1", "up")
    open("/sys/class/net/v1/queues/rx-0/rps_cpus", "w").write("1")
    lines = ["table ip t { chain c { type filter hook prerouting priority 0; policy accept;"]
    lines += [f"ip saddr 10.78.{n >> 8}.{n & 255} counter drop" for n in range(rules)]
    if rules:
        run("nft", "-f", "-", input="\n".join(lines) + "\n}\n}\n", text=True)
    os.write(writing, b"x")
    time.sleep(1000)
os.read(reading, 1)
run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", str(other))
run("ip", "addr", "add", "10.77.0.1/24", "dev", "v0")
run("ip", "link", "set", "v0", "up")
os.write(went, b"x")
os.read(reading, 1)
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
class Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("iov", ctypes.POINTER(Iovec)),
                ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int)]
class Mmsghdr(ctypes.Structure):
    _fields_ = [("hdr", Msghdr), ("len", ctypes.c_uint)]
sends = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sends.connect(("10.77.0.2", 9999))
iov = Iovec(b"x" * 16, 16)
batch = (Mmsghdr * 512)()
for each in batch:
    each.hdr.iov, each.hdr.iovlen = ctypes.pointer(iov), 1
time.sleep(0.5)
"""
"""Two namespaces, a link between them, and a batch of 512 packets."""
SCRIPT = (
    SETUP
    + r"""
wait_for_the_word()
while True:
    libc.sendmmsg(sends.fileno(), batch, 512, 0)
"""
)
NEEDS = Needs(512 * MB, cores=2, programs=(("nft", "nftables"), ("ip", "iproute2")))


def flood(name: str, pattern: str, *, rules: int, title: str, frames: str) -> Scenario:
    return Scenario(
        id=name,
        title=title,
        does=f"sends small packets as fast as it can between two separate network namespaces, past {rules:,} firewall "
        "rules; core 0 has to process them all",
        truth=Truth(pattern, "ksoftirqd/0", "flooder"),
        script=SCRIPT.replace("RULES", str(rules)),
        comm="flooder",
        frames=frames,
        needs=NEEDS,
        cpu=1,
    )
