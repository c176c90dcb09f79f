"""An agent that lists the whole connection table, over and over, in a network namespace of its own."""

from __future__ import annotations

from tests.faults.fault import Fault

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

FAULT = Fault("conntrack", "ct-lister", SCRIPT, culprit="ct-lister")

if __name__ == "__main__":
    FAULT.demonstrate()
