"""The network face under attack: what a person at the page still gets, and what the recorder notices of it.

A real recorder, a real server, and clients on the same machine (so they take its cores as well): many requests,
slowloris, a thousand subscribers of the event stream, guessed tokens. Beside each attack one honest client asks for the
same small document on a new connection again and again. Lateness of ticks is what the recorder itself wrote down.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.table import Row, as_markdown
from zombiescope.store import columns
from zombiescope.store.reader import open_recording

SECONDS = 10.0
DRIPPING = 400
SUBSCRIBERS = 1_000
ASKING = 8
GUESSING = 8
_ASKED = ("info", "cores?last=5s", "strip?columns=300&last=60s", "events?last=60s", "cgroups")


@dataclass
class Server:
    port: int
    token: str | None

    def request(self, path: str, token: str | None = None) -> bytes:
        bearer = self.token if token is None else token
        known = f"Authorization: Bearer {bearer}\r\n" if bearer else ""
        return f"GET /api/v1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{known}\r\n".encode()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@dataclass
class Counts:
    """What came of an attack."""

    statuses: dict[int, int] = field(default_factory=dict)
    dropped: int = 0

    def note(self, status: int) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def words(self) -> str:
        said = [f"{count:,} answered {status}" for status, count in sorted(self.statuses.items())]
        return ", ".join([*said, *([f"{self.dropped:,} dropped"] if self.dropped else [])])


Attack = Callable[[Server, Counts, float], Awaitable[None]]


async def _answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = re.search(rb"content-length: (\d+)", head.lower())
    if length:
        await reader.readexactly(int(length[1]))
    return status


async def _asks(server: Server, counts: Counts, until: float, make: Callable[[int], bytes]) -> None:
    number = 0
    while time.monotonic() < until:
        try:
            reader, writer = await server.connect()
            while time.monotonic() < until:
                writer.write(make(number))
                number += 1
                counts.note(await _answer(reader))
        except (OSError, asyncio.IncompleteReadError):
            counts.dropped += 1


async def quiet(_server: Server, _counts: Counts, until: float) -> None:
    await asyncio.sleep(until - time.monotonic())


async def requests(server: Server, counts: Counts, until: float) -> None:
    def make(number: int) -> bytes:
        return server.request(_ASKED[number % len(_ASKED)])

    await asyncio.gather(*(_asks(server, counts, until, make) for _ in range(ASKING)))


async def guesses(server: Server, counts: Counts, until: float) -> None:
    def make(number: int) -> bytes:
        return server.request("info", token=f"{number:032x}")

    await asyncio.gather(*(_asks(server, counts, until, make) for _ in range(GUESSING)))


async def slowloris(server: Server, counts: Counts, until: float) -> None:
    async def drips() -> None:
        while time.monotonic() < until:
            try:
                _, writer = await server.connect()
                writer.write(b"GET / HTTP/1.1\r\n")
                while time.monotonic() < until:
                    writer.write(b"X: y\r\n")
                    await writer.drain()
                    await asyncio.sleep(1)
            except OSError:
                counts.dropped += 1
                await asyncio.sleep(0.1)

    await asyncio.gather(*(drips() for _ in range(DRIPPING)))


async def subscribers(server: Server, counts: Counts, until: float) -> None:
    async def watches() -> None:
        try:
            reader, writer = await server.connect()
            writer.write(server.request("live"))
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), max(0.1, until - time.monotonic()))
            counts.note(int(head.split(b" ", 2)[1]))
            await asyncio.sleep(max(0.0, until - time.monotonic()))  # and never reads
            writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            counts.dropped += 1

    await asyncio.gather(*(watches() for _ in range(SUBSCRIBERS)))


ATTACKS: dict[str, Attack] = {
    "nobody else": quiet,
    f"{ASKING} clients that ask as fast as they can": requests,
    f"slowloris, {DRIPPING} connections": slowloris,
    f"{SUBSCRIBERS:,} subscribers that read nothing": subscribers,
    f"{GUESSING} clients that guess tokens": guesses,
}


async def _honest(server: Server, until: float) -> list[float]:
    """How long each answer took; infinite for none."""
    took = []
    while time.monotonic() < until:
        begun = time.monotonic()
        try:
            reader, writer = await server.connect()
            writer.write(server.request("info"))
            status = await asyncio.wait_for(_answer(reader), 10)
            writer.close()
            took.append(time.monotonic() - begun if status == 200 else float("inf"))
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            took.append(float("inf"))
        await asyncio.sleep(0.1)
    return took


async def _under(server: Server, attack: Attack, seconds: float) -> tuple[list[float], Counts]:
    counts = Counts()
    until = time.monotonic() + seconds
    took, _ = await asyncio.gather(_honest(server, until), attack(server, counts, until))
    return took, counts


def _started(command: list[str], wanted: str) -> tuple[subprocess.Popen[str], str]:
    """A command, once it has said a line that begins with `wanted`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "zombiescope.cli.main", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(wanted):
            return process, line.strip()
    raise RuntimeError(f"{command[0]} did not start")


def _late_ms(place: Path, start_us: int, end_us: int) -> list[float]:
    with open_recording(place) as recording:
        late = columns.numbers(recording.table("cost", start_us, end_us).column("tick_late_us"))
    return [value / 1000 for value in late.tolist()]


def measure(seconds: float = SECONDS) -> list[Row]:
    os.environ["ZOMBIESCOPE_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="zombiescope-network-")
    place = Path(os.environ["ZOMBIESCOPE_RUNTIME_DIR"]) / "rec"
    recorder, _ = _started(["record", str(place)], "recording")
    page = None
    rows = []
    try:
        time.sleep(4)
        page, url = _started(["serve", str(place), "--listen", "0.0.0.0:0"], "http://")
        port, token = int(re.findall(r":(\d+)", url)[0]), url.partition("token=")[2].strip() or None
        time.sleep(2)
        for name, attack in ATTACKS.items():
            start_us = time.time_ns() // 1000
            took, counts = asyncio.run(_under(Server(port, token), attack, seconds))
            time.sleep(2.5)
            rows += _rows(name, took, counts, seconds, _late_ms(place, start_us, time.time_ns() // 1000))
    finally:
        for process in (page, recorder):
            if process is not None:
                process.send_signal(signal.SIGINT)
                process.wait(30)
    return rows


def _rows(name: str, took: list[float], counts: Counts, seconds: float, late_ms: list[float]) -> list[Row]:
    answered = [each for each in took if each != float("inf")]
    total = sum(counts.statuses.values())
    honest = f"{len(answered)} of {len(took)}"
    speed = f"median {median(answered) * 1000:.0f} ms, longest {max(answered) * 1000:.0f} ms" if answered else ""
    late = f"median {median(late_ms):.1f} ms, longest {max(late_ms):.1f} ms" if late_ms else "not written"
    return [
        Row(f"{name}: answered to an honest client", f"{honest}; {speed}"),
        Row(f"{name}: lateness of the recorder's ticks", late),
        *([Row(f"{name}: a second", f"{total / seconds:,.0f} ({counts.words()})")] if total or counts.dropped else []),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak-network", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each attack")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("the network face is attacked beside a real recorder, which needs root", file=sys.stderr)
        return 1
    print(as_markdown("The network face", measure(options.seconds)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
