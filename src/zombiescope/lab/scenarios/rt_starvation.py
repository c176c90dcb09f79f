"""A real-time loop on the core that processes the packets: ksoftirqd waits, and nobody polls.

Up to kernel 6.4 a softirq that was handed to ksoftirqd waits for it; since 6.5 it runs at the end of every interrupt
all the same (d15121be7485). So this is a scenario for the node's 6.1.
"""

from __future__ import annotations

from zombiescope.lab.flood import SETUP
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = (
    SETUP.replace("RULES", "0")
    + r"""
wait_for_the_word()
hog = os.fork()
if hog == 0:
    name_is("fifo-loop")
    dies_with_its_parent()
    time.sleep(3)  # packets come in as usual first
    os.sched_setaffinity(0, {0})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    while True:
        pass
while True:
    libc.sendmmsg(sends.fileno(), batch, 64, 0)
    time.sleep(0.005)
"""
)

SCENARIO = Scenario(
    id="rt-starvation",
    title="A real-time loop starves the network of its core",
    does="runs a SCHED_FIFO busy loop on the core that processes the packets of a flood between two network namespaces",
    truth=Truth("rt-hog", "fifo-loop", "fifo-loop"),
    script=SCRIPT,
    comm="flooder",
    frames="6.1, emulated: none, 95% user; ksoftirqd/0 waits, and a tenth of the packets is received",
    needs=Needs(256 * MB, cores=2, real_time=True, node=True, programs=(("ip", "iproute2"),)),
    cpu=1,
    seconds=30.0,
)
