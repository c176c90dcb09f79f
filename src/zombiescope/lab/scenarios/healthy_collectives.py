"""Busy threads as NCCL has them: they poll a flag in user mode, yield, and send to each other; nothing wrong.

An imitation, in C: NCCL itself needs GPUs. One thread a core waits for a flag that its neighbour sets, yields the core
after some microseconds as a proxy thread does, and passes a megabyte on to the next over a socket of its own: a ring.
Nearly all of its time is user mode; what it spends in the kernel is many short calls.
"""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
enum { PIECE = 1 << 20, CHUNK = 1 << 16, SPINS = 20000 };
static int ranks, (*links)[2];
static atomic_long *arrived;
static void pass_on(int from, int to, char *piece) {
    for (size_t sent = 0, got = 0; sent < PIECE || got < PIECE;) {
        ssize_t moved = sent < PIECE ? send(to, piece + sent, CHUNK, MSG_DONTWAIT) : -1;
        if (moved > 0) sent += moved;
        moved = got < PIECE ? recv(from, piece + got, CHUNK, MSG_DONTWAIT) : -1;
        if (moved > 0) got += moved;
        if (moved <= 0) sched_yield();
    }
}
static void *rank(void *number) {
    long me = (long)number, next = (me + 1) % ranks;
    char name[16], *piece = calloc(1, PIECE + CHUNK);
    snprintf(name, sizeof name, "ring-proxy-%ld", me);
    pthread_setname_np(pthread_self(), name);
    for (long step = 1;; step++) {
        pass_on(links[me][1], links[next][0], piece);
        for (int round = 0; round < 64; round++) {  /* the time a kernel on the accelerator takes */
            for (volatile int spin = 0; spin < SPINS; spin++) if (atomic_load(&arrived[me]) < 0) return NULL;
            sched_yield();
        }
        atomic_store(&arrived[next], step);
        while (atomic_load(&arrived[me]) < step) sched_yield();
    }
}
int main(int count, char **words) {
    ranks = count > 1 ? atoi(words[1]) : 2;
    links = calloc(ranks, sizeof *links);
    arrived = calloc(ranks, sizeof *arrived);
    for (int one = 0; one < ranks; one++) if (socketpair(AF_UNIX, SOCK_STREAM, 0, links[one])) return 1;
    pthread_t thread;
    for (long one = 0; one < ranks; one++) if (pthread_create(&thread, NULL, rank, (void *)one)) return 1;
    pthread_join(thread, NULL);
}
"""
SCRIPT = r"""
import subprocess
place, source = args
with open(f"{place}/ring.c", "w") as file:
    file.write(source)
subprocess.run(["gcc", "-O2", "-pthread", f"{place}/ring.c", "-o", f"{place}/ring"], check=True)
wait_for_the_word()
os.execv(f"{place}/ring", ["ring", str(max(2, os.cpu_count()))])
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory()), SOURCE]


SCENARIO = Scenario(
    id="healthy-collectives",
    title="Busy threads that wait for each other",
    does="runs one thread a core that polls, yields and passes megabytes around a ring, as NCCL's threads do",
    truth=Truth(None),
    script=SCRIPT,
    comm="collective",
    seconds=60.0,
    needs=Needs(512 * MB, cores=2, processes=1024, programs=(("gcc", "gcc"),)),
    prepare=prepare,
    kind="healthy",
)
