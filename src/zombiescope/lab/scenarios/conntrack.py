"""Packets of ever new connections, each of which the connection table has to take in, until it is full."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = r"""
import socket, struct, subprocess
def run(*words, **more):
    subprocess.run(words, check=True, **more)
check(libc.unshare(0x40000000))
run("ip", "link", "set", "lo", "up")
rules = ["table ip t {", "chain c {", "type filter hook output priority 0; policy accept;",
         "ct state new counter accept", "}",
         "chain d {", "type filter hook input priority 0; policy drop;", "}", "}", ""]  # no one answers
run("nft", "-f", "-", input="\n".join(rules), text=True)
sends = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
packet = bytearray(struct.pack("!BBHHHBBH4s4sHHHH", 0x45, 0, 32, 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1",
                               1, 9, 12, 0) + b"xxxx")
wait_for_the_word()
while True:
    packet[12:16] = b"\x7f" + os.urandom(3)
    packet[20:22] = os.urandom(2)
    sends.sendto(packet, ("127.0.0.1", 0))
"""

SCENARIO = Scenario(
    id="conntrack",
    title="Ever new connections fill the connection table",
    does="sends packets with random sources to itself in a separate network namespace that tracks connections",
    truth=Truth("conntrack", "connecter", "connecter"),
    script=SCRIPT,
    frames="6.18: nf_conntrack_in 23% in total, __nf_conntrack_confirm 9%, early_drop 9%",
    needs=Needs(512 * MB, programs=(("nft", "nftables"), ("ip", "iproute2"))),
)
