"""Other tools beside zombiescope, all in one run under the same load: CPU, memory and disk of each.

    python -m benchmarks.peers [--seconds 60]

Atop, pcp, netdata-core, linux-perf and sysstat of Debian, and py-spy from PyPI; what is not installed is left out. CPU
is what the scheduler counted for a tool's processes between two moments after all of them have started (what it used
until then is given beside it), memory their proportional set (PSS), disk what their files grew by. Each runs with one
reading a second.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.loads import MIXED, running
from benchmarks.table import Row
from benchmarks.width import _below, tree_cpu_s

SETTLE_S = 20.0
PMLOGGER = """
log mandatory on 1 sec { kernel.all kernel.percpu.cpu kernel.percpu.interrupts mem disk network.interface network.tcp
network.softnet cgroup.memory }
"""
NETDATA = """
[global]
    run as user = root
[directories]
    cache = {0}/cache
    lib = {0}/lib
    log = {0}
    lock = {0}
[web]
    bind to = 127.0.0.1:19998
[logs]
    debug log = none
    error log = {0}/error.log
    access log = none
[registry]
    enabled = no
[plugins]
    tc = no
"""


class Tool:
    """Processes that were started for it, and where it writes."""

    def __init__(self, name: str, place: Path, *commands: list[str], **environment: str) -> None:
        self.name, self.place = name, place
        place.mkdir(parents=True, exist_ok=True)
        with (place.parent / f"{place.name}.out").open("wb") as out:
            self.processes = [
                subprocess.Popen(one, stdout=out, stderr=out, cwd=place, env={**os.environ, **environment},
                                 start_new_session=True)
                for one in commands
            ]  # fmt: skip

    @property
    def lives(self) -> bool:
        return all(one.poll() is None for one in self.processes)

    def cpu_s(self) -> float:
        return sum(sum(tree_cpu_s(one.pid).values()) for one in self.processes)

    def parts(self) -> dict[str, float]:
        """CPU-seconds by process."""
        return {name: used for one in self.processes for name, used in tree_cpu_s(one.pid).items()}

    def memory_mb(self) -> float:
        pids = [pid for one in self.processes for pid in (one.pid, *_below(one.pid))]
        return sum(map(_pss_kb, pids)) / 1024

    def bytes(self) -> int:
        return sum(path.stat().st_blocks * 512 for path in self.place.rglob("*") if path.is_file())

    def stop(self) -> None:
        for one in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGINT)
        for one in self.processes:
            try:
                one.wait(5)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, signal.SIGKILL)
                one.wait()


def _pss_kb(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


@contextmanager
def _tools(scratch: Path, busy: int) -> Iterator[list[Tool]]:
    settings = {"dir": str(scratch / "zombiescope"), "node": "peers", "json": True, "quiet": True}
    recorder = [sys.executable, "-m", "zombiescope.recorder", json.dumps(settings)]
    perf = ["perf", "record", "-q", "-F", "99", "-a", "-g", "-e", "cpu-clock", "-o", "perf.data"]
    wanted: list[tuple[str, list[list[str]], dict[str, str]]] = [
        ("zombiescope record", [recorder], {"ZOMBIESCOPE_RUNTIME_DIR": str(scratch)}),
        ("perf record -F 99 -a -g, mpstat -P ALL 1", [perf, ["mpstat", "-P", "ALL", "1"]], {}),
        ("atop, every second", [["atop", "-w", "atop.raw", "1"]], {}),
        ("pcp: pmlogger every second, pmcd", _pcp(scratch), {"PCP_RUN_DIR": str(scratch)}),
        ("netdata", _netdata(scratch), {}),
        ("py-spy record -r 100 of one process",
         [["py-spy", "record", "-r", "100", "-d", "600", "-f", "raw", "-o", "py-spy.txt", "-p", str(busy)]], {}),
    ]  # fmt: skip
    started = []
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with ExitStack() as stack:
        for number, (name, commands, environment) in enumerate(wanted):
            if commands and all(shutil.which(one[0], path=path) for one in commands):
                place = scratch / ("zombiescope" if number == 0 else str(number))
                tool = Tool(name, place, *commands, **environment, PATH=path)
                stack.callback(tool.stop)
                started.append(tool)
        yield started


def _pcp(scratch: Path) -> list[list[str]]:
    config = scratch / "pmlogger"
    config.write_text(PMLOGGER)
    pmcd = "/usr/lib/pcp/bin/pmcd"
    logger = ["pmlogger", "-c", str(config), "-h", "local:", "archive"]
    wait = ["sh", "-c", f"sleep 2; exec {' '.join(logger)}"]
    return [[pmcd, "-f", "-A", "-U", "root", "-l", str(scratch / "pmcd.log")], wait] if Path(pmcd).exists() else []


def _netdata(scratch: Path) -> list[list[str]]:
    place = scratch / "4"
    for name in ("cache", "lib"):
        (place / name).mkdir(parents=True)
    config = scratch / "netdata.conf"
    config.write_text(NETDATA.format(place))
    return [["/usr/sbin/netdata", "-D", "-c", str(config), "-P", str(scratch / "netdata.pid")]]


def measure(seconds: float) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="zombiescope-peers-") as name, running(MIXED):
        busy = int(subprocess.run(["pgrep", "-n", "-P", str(os.getpid())], capture_output=True, check=True).stdout)
        with _tools(Path(name), busy) as tools:
            time.sleep(SETTLE_S)
            start, parts = {tool.name: tool.cpu_s() for tool in tools}, tools[0].parts()
            size, began = {tool.name: tool.bytes() for tool in tools}, time.monotonic()
            time.sleep(seconds)
            for tool in tools:
                lasted = time.monotonic() - began
                used, grown = tool.cpu_s() - start[tool.name], tool.bytes() - size[tool.name]
                said = (
                    f"{100 * used / lasted:.2f}% of a core, {tool.memory_mb():.0f} MB, "
                    f"{grown / lasted * 3600 / 1e6:.0f} MB an hour; its start {start[tool.name]:.2f} CPU-seconds"
                )
                more = {name: 100 * (now - parts.get(name, 0.0)) / lasted for name, now in tool.parts().items()}
                note = ", ".join(f"{name} {ratio:.2f}%" for name, ratio in more.items()) if tool is tools[0] else ""
                rows.append(Row(tool.name, said if tool.lives else f"ended by itself: {_last(tool)}", note))
    return rows


def _last(tool: Tool) -> str:
    lines = (tool.place.parent / f"{tool.place.name}.out").read_text(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")[:200]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    for row in measure(parser.parse_args().seconds):
        print(f"{row.name}: {row.value} {row.note}".rstrip(), flush=True)
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
