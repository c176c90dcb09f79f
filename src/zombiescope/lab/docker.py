"""A Docker of the laboratory's own: dockerd and containerd with their own directories, sockets and namespaces.

    enter_own_namespaces()
    with docker(place, cgroup_parent="/zombiescope-lab-docker-loop/docker") as daemon:
        daemon.load("registry.local/ecs-agent:1.2", tree)
        daemon.client("run", "--rm", "--network=host", "registry.local/ecs-agent:1.2", "true")

A Docker that the node has is neither used nor seen. No bridge, no firewall rule, no sysctl; images are imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zombiescope.lab import container_image, programs
from zombiescope.lab.failure import LabError

PROGRAMS = (
    ("dockerd", "docker.io"), ("docker", "docker.io"), ("containerd", "containerd"), ("runc", "runc"),
    ("busybox", "busybox-static"),
)  # fmt: skip
UP_S = 40.0
GONE_S = 10.0
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

    def load(self, name: str) -> None:
        """An image of that name, with a shell in it."""
        tree = container_image.tree(self._place / "tree")
        self.client("import", "-", name, given=container_image.layer(tree))


@contextmanager
def docker(place: Path, *, cgroup_parent: str = "", driver: str = "cgroupfs") -> Iterator[Docker]:
    """`cgroup_parent`: below which the cgroups of containers are made; else where Docker makes them by itself."""
    (place / "containerd.toml").write_text(_CONTAINERD.format(place=place))
    (place / "daemon.json").write_text(json.dumps({"deprecated-key-path": str(place / "key.json")}))
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(_start(place, "containerd", "--config", str(place / "containerd.toml")))
        _wait_for(place / "containerd.sock", started[-1], place / "containerd.log")
        started.append(_start(place, "dockerd", *_options(place, cgroup_parent, driver)))
        daemon = Docker(place)
        _until_it_answers(daemon, started[-1], place / "dockerd.log")
        yield daemon
    finally:
        for process in reversed(started):
            _end(process)


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


def _start(place: Path, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (place / f"{program}.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603  a program of the distribution
            [programs.find(program), *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


def _wait_for(socket: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + UP_S
    while not socket.exists():
        _check(process, log, end)
        time.sleep(0.05)


def _until_it_answers(daemon: Docker, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + UP_S
    while True:
        try:
            daemon.client("version")
        except LabError:
            _check(process, log, end)
            time.sleep(0.1)
        else:
            return


def _check(process: subprocess.Popen[bytes], log: Path, end: float) -> None:
    if process.poll() is None and time.monotonic() < end:
        return
    said = log.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing was logged"]
    raise LabError(f"{log.stem} did not come up: {said[0][-300:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GONE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
