"""Four ranks of a job that meet in a collective after each step, of which one sleeps in its own code.

There is no torch in the laboratory: the collective is a barrier of pipes, in a function and a file that are named like
those of torch.distributed. What is judged is real: four processes with ranks in their environment, that wait for each
other in the kernel. docs/gpu.md has the figures of PyTorch itself.
"""

from __future__ import annotations

from zombiescope.lab.scenario import Scenario, Truth

SCRIPT = r"""
import subprocess, threading
RANKS = 4
RANK = r'''
import os, signal, sys, time
open("/proc/self/comm", "w").write("late-rank-train")
signal.alarm(300)
arrives, leaves = map(int, sys.argv[1:])
late = False
def turn(number, frame):
    global late
    late = True
signal.signal(signal.SIGUSR1, turn)
source = "def all_reduce(arrives, leaves):\n    os.write(arrives, b'x')\n    return os.read(leaves, 1)\n"
exec(compile(source, "/srv/job/site-packages/torch/distributed/distributed_c10d.py", "exec"))
def step():
    until = time.process_time() + 0.005
    while time.process_time() < until:
        sum(range(500))
    if late:
        time.sleep(0.2)
step()
while all_reduce(arrives, leaves):
    step()
'''
arrived, arrives = os.pipe()
doors, pids = [], []
for rank in range(RANKS):
    leaves, door = os.pipe()
    variables = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    started = subprocess.Popen([sys.executable, "-c", RANK, str(arrives), str(leaves)], env=variables,
                               pass_fds=(arrives, leaves), preexec_fn=dies_with_its_parent)
    doors.append(door)
    pids.append(started.pid)

def meet(ends):
    while not ends():
        left = RANKS
        while left:
            left -= len(os.read(arrived, left))
        time.sleep(0.02)  # the accelerator's turn
        for door in doors:
            os.write(door, b"x")

has_the_word = threading.Event()
threading.Thread(target=lambda: (wait_for_the_word(), has_the_word.set()), daemon=True).start()
began = time.monotonic()
meet(lambda: time.monotonic() - began > 10)  # what is usual
meet(has_the_word.is_set)
os.kill(pids[2], signal.SIGUSR1)
meet(lambda: False)
"""

SCENARIO = Scenario(
    id="late-rank",
    title="A rank of a training is late at every step",
    does="starts four processes that meet after each step, and lets one of them sleep for 0.2 s in each",
    truth=Truth("late-rank", "", "late-rank-train"),
    script=SCRIPT,
    comm="trainer",
    frames="6.18: none, who waits uses no CPU",
    seconds=40.0,
)
