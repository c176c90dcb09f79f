"""The chart's pod on this machine, with a containerd of its own: what the pod says is missing, as JSON.

    unshare --mount --propagation private python -m tests.shipped.here PACKAGE.deb

Everything that containerd and the pod write lies on file systems that end with the mount namespace; the image is the
.deb's content on the distribution's own Python. It needs no virtual machine and takes seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.agent_process import free_port
from tests.shipped import cri
from zombiescope.lab.node import Done

NODE, PARENT = "ip-10-0-0-7.ec2.internal", "/zombiescope-shipped/pod"
QUIET = 'config={"recorder":{"diagnose":false,"python":false,"whole_stacks":false}}'
OWN = (
    "/run/containerd", "/var/lib/containerd", "/etc/containerd", "/etc/cni", "/opt", "/var/lib/kubelet",
    "/var/log/pods", "/pod", "/var/lib/zombiescope",
)  # fmt: skip
PLUGINS = Path("/usr/lib/cni")
START_S = 60.0
# A machine for tests may have no systemd, and no right to lower a score for the OOM killer.
CONFIG = cri.CONFIG.replace("SystemdCgroup = true", "SystemdCgroup = false").replace(
    "  sandbox_image", "  restrict_oom_score_adj = true\n  disable_apparmor = true\n  sandbox_image"
)


class Here:
    """This machine, as cri.Node."""

    def run(self, *argv: str, stdin: bytes = b"", limit_s: float = 60.0) -> Done:
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=limit_s, check=False)
        return Done(argv, done.returncode, done.stdout, done.stderr, 0.0)

    def shell(self, script: str, *, limit_s: float = 60.0) -> str:
        return self.run("/bin/sh", "-euc", script, limit_s=limit_s).check().text

    def put(self, path: str, data: bytes | str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(data.encode() if isinstance(data, str) else data)


def mount_own() -> None:
    """The caller removes the directories that were not there: here they are covered."""
    for place in map(Path, OWN):
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)


@contextmanager
def containerd(node: Here) -> Iterator[None]:
    with (
        open("/pod/containerd.log", "wb") as log,
        subprocess.Popen(["containerd"], stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            node.shell("for i in $(seq 100); do ctr version && exit 0; sleep 0.2; done; exit 1")
            yield
        finally:
            process.terminate()


def told(node: Here, name: str, *settings: str) -> dict[str, Any]:
    """What status and node.json say is missing, and what the recording is called."""
    pod = cri.start(node, name, NODE, QUIET, *settings, parent=PARENT)
    try:
        end = time.monotonic() + START_S
        while f"recording {NODE} into" not in (log := Path(cri.LOGS, "agent.log").read_text()):
            assert time.monotonic() < end, log
            time.sleep(0.2)
        time.sleep(3)
        status = json.loads(pod.exec("/opt/zombiescope/bin/zombiescope", "status", "--json"))
    finally:
        pod.stop()
    (recording,) = Path("/var/lib/zombiescope").glob("node=*")
    node_file = json.loads((recording / "node.json").read_text())
    node.shell(f"rm -rf /var/lib/zombiescope/* {cri.LOGS}")
    return {
        "status": [one["source"] for one in status["recorders"][0]["missing"]],
        "node.json": [one["source"] for one in node_file["missing"]],
        "name": recording.name, "os": node_file["os"], "own_cgroup": node_file["own_cgroup"],
    }  # fmt: skip


def main(package: str) -> None:
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    mount_own()
    node = Here()
    node.shell(f"dpkg-deb -x {package} /pod/unpacked && mv /pod/unpacked/opt/zombiescope /opt/", limit_s=120.0)
    node.shell(f"mkdir -p /opt/cni/bin && cp {PLUGINS}/ptp {PLUGINS}/host-local {PLUGINS}/loopback /opt/cni/bin/")
    cri.configure(node, CONFIG)
    port = f'metrics={{"port":{free_port()}}}'
    with tempfile.TemporaryDirectory() as place, containerd(node):
        cri.load_images(node, Path(place))
        found = {
            "shared": told(node, "shipped-shared", port),
            "apart": told(node, "shipped-apart", "hostNetwork=false", port),
        }
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
