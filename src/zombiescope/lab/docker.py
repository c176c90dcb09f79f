"""A Docker of the laboratory's own: dockerd and containerd with their own directories, sockets and namespaces.

    enter_own_namespaces()
    with docker(place, cgroup_parent="/zombiescope-lab-docker-loop/docker") as daemon:
        daemon.load("registry.local/ecs-agent:1.2")
        daemon.client("run", "--rm", "--network=host", "registry.local/ecs-agent:1.2", "true")

A Docker that the node has is neither used nor seen. No bridge, no firewall rule, no sysctl; images are imported.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zombiescope.lab import container_image, programs
from zombiescope.lab.daemons import Daemons
from zombiescope.lab.failure import LabError

PROGRAMS = (
    ("dockerd", "docker.io"), ("docker", "docker.io"), ("containerd", "containerd"), ("runc", "runc"),
    ("busybox", "busybox-static"),
)  # fmt: skip
_CONTAINERD = """\
version = 2
root = "{place}/containerd/root"
state = "{place}/containerd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{place}/containerd.sock"
"""


class Docker:
    """A daemon that answers, in the namespaces of this process."""

    def __init__(self, place: Path) -> None:
        self._place = place

    @property
    def environment(self) -> dict[str, str]:
        """With it, any `docker` talks to this daemon and to no other."""
        own = {"DOCKER_HOST": f"unix://{self._place}/docker.sock", "DOCKER_CONFIG": str(self._place)}
        return {**os.environ, **own}

    def client(self, *arguments: str, given: bytes | None = None, limit_s: float = 60.0) -> str:
        done = subprocess.run(  # noqa: S603  Docker's client, its arguments from a scenario
            [programs.find("docker"), *arguments], input=given or b"", capture_output=True, timeout=limit_s,
            check=False, env=self.environment,
        )  # fmt: skip
        if done.returncode:
            raise LabError(f"docker {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
        return done.stdout.decode()

    def answers(self) -> bool:
        try:
            self.client("version")
        except LabError:
            return False
        return True

    def load(self, name: str) -> None:
        """An image of that name, with a shell in it."""
        tree = container_image.tree(self._place / "tree")
        self.client("import", "-", name, given=container_image.layer(tree))


@contextmanager
def docker(place: Path, *, cgroup_parent: str = "", driver: str = "cgroupfs") -> Iterator[Docker]:
    """`cgroup_parent`: below which the cgroups of containers are made; else where Docker makes them by itself."""
    (place / "containerd.toml").write_text(_CONTAINERD.format(place=place))
    (place / "daemon.json").write_text(json.dumps({"deprecated-key-path": str(place / "key.json")}))
    daemon = Docker(place)
    with Daemons(place) as daemons:
        daemons.start("containerd", "--config", str(place / "containerd.toml"))
        daemons.wait_until((place / "containerd.sock").exists)
        daemons.start("dockerd", *_options(place, cgroup_parent, driver))
        daemons.wait_until(daemon.answers)
        yield daemon


def _options(place: Path, cgroup_parent: str, driver: str) -> list[str]:
    chosen = [
        f"--config-file={place}/daemon.json", f"--data-root={place}/data", f"--exec-root={place}/exec",
        f"--pidfile={place}/docker.pid", f"--host=unix://{place}/docker.sock",
        f"--containerd={place}/containerd.sock", f"--exec-opt=native.cgroupdriver={driver}",
        f"--storage-driver={_storage(place)}", "--bridge=none", "--iptables=false", "--ip6tables=false",
        "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false", "--oom-score-adjust=0",
    ]  # fmt: skip
    return [*chosen, f"--cgroup-parent={cgroup_parent}"] if cgroup_parent else chosen


def _storage(place: Path) -> str:
    """overlay2 where a kernel can mount one there: not on an overlay, as in a container."""
    names = [place / "probe" / name for name in ("lower", "upper", "work", "merged")]
    for name in names:
        name.mkdir(parents=True, exist_ok=True)
    lower, upper, work, merged = map(str, names)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    tried = subprocess.run(  # noqa: S603
        [programs.find("mount"), "-t", "overlay", "overlay", "-o", options, merged], capture_output=True, check=False
    )
    if tried.returncode:
        return "vfs"
    subprocess.run([programs.find("umount"), merged], capture_output=True, check=True)  # noqa: S603
    return "overlay2"
