"""Debian's real Slurm on this machine: whose a job's samples are, and a node that is drained with a reason.

`make test-agent` runs it. munged, slurmctld and slurmd listen on the loopback and end with the test.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.agent_process import free_port, until

pytestmark = [pytest.mark.agent, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
HEALTH = ROOT / "deploy/slurm/zombiescope-health"
EPILOG = ROOT / "deploy/slurm/zombiescope-epilog"
BUSY = "import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end: pass"
LEAK = {
    "id": "a1", "from": 1.0, "to": 9.0, "state": "open", "severity": "critical", "symptoms": [], "ruled_out": [],
    "causes": [{"pattern": "zombie-memcg", "summary": "kubelet walks 68,440 dead cgroups", "repair": "NONE"}],
}  # fmt: skip


@dataclass(frozen=True)
class Slurm:
    place: Path
    node: str
    environment: dict[str, str]

    def ask(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def show(self) -> str:
        return self.ask("scontrol", "--oneliner", "show", "node", self.node)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    needs = Needs()
    needs.root()
    needs.perf_events()
    for program in ("munged", "slurmctld", "slurmd"):
        if shutil.which(program) is None:
            needs.lack(f"needs {program} (Debian package slurm-wlm)")
    place = tmp_path_factory.mktemp("slurm")
    node = socket.gethostname().partition(".")[0]
    (place / "bin").mkdir()
    _script(place / "bin/zombiescope", f'exec {sys.executable} -P -m zombiescope.cli.main "$@"')
    # slurmd starts its programs with an environment of their own.
    exported = f"export PATH={place}/bin:$PATH ZOMBIESCOPE_RUNTIME_DIR={place}/run ZOMBIESCOPE_DIR={place}/rec"
    for script in (HEALTH, EPILOG):
        _script(place / "bin" / script.name, f"{exported} SLURM_CONF={place}/slurm.conf\nexec {script}")
    (place / "key").write_bytes(os.urandom(1024))
    (place / "key").chmod(0o600)
    _configure(place, node)
    environment = {
        **os.environ, "SLURM_CONF": str(place / "slurm.conf"), "ZOMBIESCOPE_RUNTIME_DIR": str(place / "run"),
        "PATH": f"{place}/bin:{os.environ['PATH']}", "ZOMBIESCOPE_DIR": str(place / "rec"),
    }  # fmt: skip
    (place / "run").mkdir(mode=0o755)
    munge = [f"--{name}={place}/{file}" for name, file in (("socket", "munge.sock"), ("key-file", "key"))]
    munge += [f"--pid-file={place}/munge.pid", f"--log-file={place}/munge.log", f"--seed-file={place}/seed"]
    daemons = [["munged", "--force", "-F", *munge], ["slurmctld", "-D"], ["slurmd", "-D"]]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in daemons:
            with (place / f"{command[0]}.out").open("wb") as log:
                running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            if command[0] == "munged":
                until("munged listens", (place / "munge.sock").exists)
        found = Slurm(place, node, environment)
        until("the node is idle", lambda: "IDLE" in _state(found))
        yield found
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for top in Path("/sys/fs/cgroup").glob(f"*/slurm_{node}"):
            for folder, _, _ in os.walk(top, topdown=False):
                Path(folder).rmdir()


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def _state(slurm: Slurm) -> str:
    done = subprocess.run(
        ["sinfo", "-h", "-o", "%T"], env=slurm.environment, capture_output=True, text=True, timeout=30
    )
    return done.stdout.upper()


def _configure(place: Path, node: str) -> None:
    (place / "slurm.conf").write_text(f"""
ClusterName=t
SlurmctldHost={node}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.sock
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
ReturnToService=2
MailProg=/bin/true
HealthCheckProgram={place}/bin/{HEALTH.name}
HealthCheckInterval=5
HealthCheckNodeState=ANY
Epilog={place}/bin/{EPILOG.name}
NodeName={node} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES State=UP
""")
    (place / "cgroup.conf").write_text("CgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n")
    for folder in ("state", "spool"):
        (place / folder).mkdir()


def test_the_samples_of_a_job_are_its_own_in_every_view(slurm: Slurm) -> None:
    record = ["zombiescope", "record", str(slurm.place / "job"), "--for", "14s", "--quiet"]
    recorder = subprocess.Popen(record, env=slurm.environment)
    try:
        time.sleep(3)
        job = slurm.ask("srun", "-n1", "sh", "-c", f'echo $SLURM_JOB_ID; exec {sys.executable} -c "{BUSY}"').strip()
    finally:
        assert recorder.wait(60) == 0
    place = str(slurm.place / "job")
    stacks = json.loads(slurm.ask("zombiescope", "flamegraph", place, "--container", f"slurm-{job}", "--json"))
    assert stacks["total"] > 20, "a machine that does much else gives it a tenth of its six seconds"
    listed = json.loads(slurm.ask("zombiescope", "containers", place, "--json"))
    (one,) = [each for each in listed["containers"] if each["name"] == f"slurm-{job}"]
    assert (one["runtime"], one["owner"]) == ("slurm", f"slurm/{job}")
    assert listed_claims(listed) == 0


def listed_claims(document: dict[str, object]) -> int:
    containers = document["containers"]
    assert isinstance(containers, list)
    return sum(each.get("runtime") is None and "slurm" in str(each.get("id")) for each in containers)


def test_a_node_with_a_leak_is_drained_with_the_reason_and_given_back(slurm: Slurm) -> None:
    place = slurm.place / "rec"
    recorder = subprocess.Popen(
        ["zombiescope", "up", str(place), "--for", "100s"], env=slurm.environment, stdout=subprocess.DEVNULL
    )
    try:
        until("the live diagnosis works", lambda: slurm_says(slurm) == 0)
        (node_dir,) = place.glob("node=*")
        note(node_dir, LEAK)
        until("the node is drained", lambda: "DRAIN" in slurm.show())
        assert "Reason=zombiescope: CgroupLeak: kubelet walks 68,440 dead cgroups" in slurm.show()
        note(node_dir, {**LEAK, "state": "closed"})
        until("the node is given back", lambda: "DRAIN" not in slurm.show())
        slurm.ask("scontrol", "update", f"nodename={slurm.node}", "state=drain", "reason=disk swap")
        note(node_dir, LEAK)
        time.sleep(8)
        assert "Reason=disk swap" in slurm.show(), "somebody else's reason stays"
        note(node_dir, {**LEAK, "state": "closed"})
        time.sleep(8)
        assert "DRAIN" in slurm.show(), "and so does their drain"
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.wait(60)
        subprocess.run(
            ["scontrol", "update", f"nodename={slurm.node}", "state=resume"], env=slurm.environment, check=False
        )


def slurm_says(slurm: Slurm) -> int:
    return subprocess.run(
        ["zombiescope", "status", "--condition", "any"], env=slurm.environment, capture_output=True, timeout=30
    ).returncode


def note(node_dir: Path, incident: dict[str, object]) -> None:
    """As the live diagnosis notes it; its next pass keeps an incident that it does not see as over."""
    aside = node_dir / "incidents.new"
    aside.write_text(json.dumps({"at": time.time(), "incidents": [incident]}))
    aside.rename(node_dir / "incidents.json")
