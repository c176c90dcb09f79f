"""An agent that lists the whole connection table, over and over, in a network namespace of its own."""

from __future__ import annotations

from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
import socket, struct
check(libc.unshare(0x40000000))
asks = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
asks.bind((0, 0))
request = struct.pack("=IHHII", 20, 0x0101, 0x301, 1, 0) + struct.pack("=BBH", socket.AF_INET, 0, 0)
wait_for_the_word()
while True:
    asks.send(request)
    while struct.unpack_from("=IH", asks.recv(1 << 16))[1] != 3:  # until NLMSG_DONE
        pass
"""

SCENARIO = Scenario(
    id="conntrack-lister",
    title="An agent repeatedly lists the connection table",
    does="repeatedly dumps the connection table of a separate network namespace",
    truth=Truth("conntrack", "ct-lister", "ct-lister"),
    script=SCRIPT,
    frames="6.18: ctnetlink_dump_table 87%, even when the table is empty",
    needs=Needs(),
)
