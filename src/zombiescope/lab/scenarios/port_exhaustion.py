"""Connections to one server, made and dropped until local ports run out: each further one looks through thousands."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = r"""
import socket, subprocess
def run(*words, **more):
    subprocess.run(words, check=True, **more)
check(libc.unshare(0x40000000))
run("ip", "link", "set", "lo", "up")
for name, value in (("tcp_tw_reuse", "0"), ("tcp_max_tw_buckets", "100000")):
    open(f"/proc/sys/net/ipv4/{name}", "w").write(value)
server = socket.create_server(("127.0.0.1", 9), backlog=4096)
def connect():
    client = socket.socket()
    try:
        client.connect(("127.0.0.1", 9))
    except OSError:
        client.close()
        return False
    peer = server.accept()[0]
    client.close()  # who closes first keeps the port, in TIME_WAIT, for a minute
    peer.close()
    return True
first, last = map(int, open("/proc/sys/net/ipv4/ip_local_port_range").read().split())
for _ in range((last - first + 1) // 2 + 200):  # every even port: connect() tries those first
    connect()
wait_for_the_word()
while True:
    connect()
"""

SCENARIO = Scenario(
    id="port-exhaustion",
    title="Local ports towards one server run out",
    does="makes and drops connections to itself in a separate network namespace until local ports run out",
    truth=Truth("port-exhaustion", "connecter", "connecter"),
    script=SCRIPT,
    frames="6.18: __inet_hash_connect",
    needs=Needs(512 * MB, programs=(("ip", "iproute2"),)),
)
