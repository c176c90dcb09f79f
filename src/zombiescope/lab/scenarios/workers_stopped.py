"""Eight worker processes that feed a trainer through pipes, as a DataLoader's do, and are stopped with SIGSTOP."""

from __future__ import annotations

from zombiescope.lab.scenario import Scenario, Truth

SCRIPT = r"""
import threading
WORKERS, BATCH, AHEAD = 8, 1 << 16, 2

def worker(asked, made):
    name_is("batch-worker")
    dies_with_its_parent()
    while os.read(asked, 1):
        total = 0
        until = time.process_time() + 0.01
        while time.process_time() < until:  # an image is decoded
            total += sum(range(1000))
        os.write(made, b"x" * BATCH)

pipes = []
for _ in range(WORKERS):
    asked, ask = os.pipe()
    batches, made = os.pipe()
    pid = os.fork()
    if pid == 0:
        for _, other, ready in pipes:
            os.close(other), os.close(ready)
        os.close(ask), os.close(batches)
        worker(asked, made)
        os._exit(0)
    os.close(asked), os.close(made)
    os.write(ask, b"x" * AHEAD)
    pipes.append((pid, ask, batches))

def step(number):
    pid, ask, batches = pipes[number % WORKERS]
    left = BATCH
    while left:
        left -= len(os.read(batches, left))
    os.write(ask, b"x")
    until = time.process_time() + 0.002
    while time.process_time() < until:
        pass
    time.sleep(0.02)  # the accelerator's turn

number = 0
def train(ends):
    global number
    while not ends():
        step(number)
        number += 1

has_the_word = threading.Event()
threading.Thread(target=lambda: (wait_for_the_word(), has_the_word.set()), daemon=True).start()
train(has_the_word.is_set)  # what is usual
for pid, _, _ in pipes:
    os.kill(pid, signal.SIGSTOP)
train(lambda: False)
"""

SCENARIO = Scenario(
    id="workers-stopped",
    title="The workers of a training are stopped",
    does="starts a process that trains on what its eight workers make, and stops all eight with SIGSTOP",
    truth=Truth("workers-stopped", "", "batch-worker"),
    script=SCRIPT,
    comm="trainer",
    frames="6.18: none, a stopped task does not run; its state is T",
    seconds=30.0,
)
