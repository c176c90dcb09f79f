"""node.json: who this recording is of. Written at the start and again when something in it changes."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from zombiescope.base import safe_files
from zombiescope.base.missing import Missing
from zombiescope.kernel import cgroup_namespace, cpu, host, hypervisor, kconfig, namespaces, stat, sysctl
from zombiescope.kernel.cgroup_path import container_at
from zombiescope.kernel.host import Host
from zombiescope.kernel.procfile import at, read_file
from zombiescope.kernel.stat import USER_HZ
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.online import left_out
from zombiescope.recorder.sources import Sources
from zombiescope.store.core_lists import ISOLATED, LEFT_OUT
from zombiescope.store.schema import FORMAT
from zombiescope.store.segment_writer import HandOver, at_once


def timezone() -> str:
    """The zone's name where the system tells it, else its offset now."""
    for text in (os.environ.get("TZ", ""), _zone_link()):
        if "/" in text or text == "UTC":
            return text.lstrip(":")
    return time.strftime("%z") or "+0000"


def _zone_link() -> str:
    try:
        return str(Path("/etc/localtime").readlink()).partition("zoneinfo/")[2]
    except OSError:
        return ""


def describe(
    config: RecorderConfig, here: Host, online: tuple[int, ...], possible: int, more: dict[str, Any], root: str = "/"
) -> dict[str, Any]:
    """Everything a reader on another machine needs to know about this one."""
    kernel = kconfig.read(root, here.release)
    return {
        "format": FORMAT,
        "node": config.node or here.hostname,
        "kernel": here.release,
        "kernel_version": here.version,
        "boot": here.boot_id,
        "cgroup_root": cgroup_namespace.node_root(root),
        "own_cgroup": _own_cgroup(root),
        "machine": here.machine,
        "os": here.os_name,
        "vendor": here.vendor,
        "product": here.product,
        "consoles": list(here.consoles),
        "hypervisor": asdict(hypervisor.read(root)),
        "steal_counted": _counts_steal(root),
        "cpus": {
            "online": list(online),
            "possible": possible,
            "topology": [asdict(place) for place in cpu.topology(root)],
            ISOLATED: list(cpu.isolated(root) or ()),
            "nohz_full": list(cpu.nohz_full(root) or ()),
            LEFT_OUT: sorted(left_out(config.leave_out_cores, root)),
        },
        "labels": {**here.labels, **config.labels},
        "hz": config.hz,
        "event": config.event,
        "interval_s": config.interval_s,
        "diagnosed": config.diagnose,
        "user_hz": USER_HZ,
        "kernel_config": asdict(kernel),
        "sysctls": sysctl.read(root),
        "timezone": timezone(),
        **more,
    }


def _counts_steal(root: str) -> bool:
    """Whether this machine has counted any stolen time since boot: without a steal clock it never does."""
    data = read_file(at(root, "proc/stat"))
    total = None if data is None else stat.parse(data).total
    return total is not None and bool(total.steal)


def _own_cgroup(root: str) -> str | None:
    """Of this process, where nothing but zombiescope is in it: a container, or its own unit."""
    found = cgroup_namespace.membership(root=root)
    paths = [path for _, path in found.values() if ".." not in path]
    longest = max(paths, key=len, default="")
    return longest if container_at(longest) is not None or longest.endswith("/zombiescope.service") else None


ROOT_GRANT = "CAP_SYS_PTRACE, the host's PID namespace (hostPID: true), and appArmor: Unconfined in the chart"


def note_root(sources: Sources, now_us: int, root: str = "/") -> None:
    """In a container that cannot reach the node's files below process 1: what is not known."""
    if namespaces.hides_node_root(root):
        why = "/proc/1/root is refused; this image's files say nothing about the node: its distribution, cloud labels, "
        why += "container names, units and Ray's logs are not read"
        sources.lacks("host file system", why, ROOT_GRANT, now_us)


class NodeFile:
    """The file, which also says what is missing now."""

    def __init__(self, node_dir: Path, node: dict[str, Any], hand_over: HandOver = at_once) -> None:
        self._hand_over = hand_over
        self._path = node_dir / "node.json"
        self._node = node
        self._missing: list[Missing] | None = None

    def label(self, labels: dict[str, str]) -> None:
        """Learned after the start; written with the next update."""
        if labels != self._node.get("labels"):
            self._node["labels"] = labels
            self._missing = None

    def update(self, missing: list[Missing]) -> None:
        """Replaces the file in one step, if something changed. A disk that does not take it is tried again."""
        if missing == self._missing:
            return
        document = {**self._node, "missing": [asdict(one) for one in missing]}
        data = (json.dumps(document, indent=1) + "\n").encode()
        self._hand_over(partial(self._replace, data, missing))

    def _replace(self, data: bytes, missing: list[Missing]) -> None:
        with suppress(OSError):
            safe_files.replace(self._path, data)
            self._missing = missing


def this_host(root: str = "/") -> Host:
    return host.read(root)
