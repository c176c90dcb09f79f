"""What protects a unit or a container by fact, whatever its name: read from trees of /proc and cgroup2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from zombiescope.audit.protected import protection
from zombiescope.fix import guard, holds
from zombiescope.node.systemd.manager import LoadedUnit

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
CGROUP = "/system.slice/mystery.service"


class Tree:
    """A node with one cgroup and the processes in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cgroup = root / "sys/fs/cgroup" / CGROUP[1:]
        self.cgroup.mkdir(parents=True)
        self.pids: list[int] = []
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text("0::/\n")
        (root / "proc/self/mountinfo").write_text("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")

    def process(self, pid: int, *files: str, below: str = "", ppid: int = 1) -> None:
        place = self.root / f"proc/{pid}"
        (place / "fd").mkdir(parents=True)
        for number, file in enumerate(files, 3):
            (place / "fd" / str(number)).symlink_to(file)
        (place / "stat").write_text(f"{pid} (a b) S {ppid} 1 1 0\n")
        directory = self.cgroup / below
        directory.mkdir(exist_ok=True)
        with (directory / "cgroup.procs").open("a") as procs:
            procs.write(f"{pid}\n")

    def socket(self, local: str, remote: str, state: str, inode: int, file: str = "tcp") -> None:
        (self.root / "proc/net").mkdir(exist_ok=True)
        row = f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"
        (self.root / "proc/net" / file).write_text(HEAD + row)

    @property
    def why(self) -> str | None:
        return holds.why_needed(CGROUP, str(self.root))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("local", "remote", "state", "word"),
    [
        ("00000000:0016", "00000000:0000", "0A", "port 22"),
        ("00000000:094B", "00000000:0000", "0A", "port 2379"),
        ("00000000:192B", "00000000:0000", "0A", "port 6443"),
        ("0100007F:C001", "0200007F:00B3", "01", "BGP"),
        ("00000000:1F90", "00000000:0000", "0A", None),
        ("0100007F:C001", "0200007F:0016", "01", None),
    ],
    ids=["sshd", "etcd", "api server", "a bgp speaker", "a web server", "an ssh client"],
)
def test_a_port_that_the_node_needs_protects_who_has_it(
    tree: Tree, local: str, remote: str, state: str, word: str | None
) -> None:
    tree.process(10, "/dev/null", "socket:[4711]")
    tree.socket(local, remote, state, 4711)
    assert (tree.why is None) is (word is None)
    assert word is None or word in (tree.why or "")


def test_the_port_of_a_neighbour_protects_nobody_else(tree: Tree) -> None:
    tree.process(10, "socket:[1]")
    tree.socket("00000000:0016", "00000000:0000", "0A", 4711)
    assert tree.why is None


@pytest.mark.parametrize(
    ("file", "protects"),
    [("/dev/fuse", True), ("/dev/nvidia-uvm", True), ("/dev/kfd", True), ("/dev/nvidia0", False),
     ("/dev/nvidiactl", False), ("/dev/null", False)],
)  # fmt: skip
def test_a_file_system_server_and_a_tenant_are_protected_and_a_monitor_is_not(
    tree: Tree, file: str, protects: bool
) -> None:
    tree.process(10, file, below="worker")
    assert (tree.why is not None) is protects


@pytest.mark.parametrize(("uid", "protects"), [(1000, True), (33, False), (0, False), (65_534, False)])
def test_processes_of_users_in_the_cgroup_of_a_daemon_are_the_jobs_of_others(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, uid: int, protects: bool
) -> None:
    tree.process(10)
    tree.process(11, below="job_1")
    monkeypatch.setattr(holds, "_uid", lambda pid, _root: {10: 0, 11: uid}[pid])
    assert (tree.why is not None) is protects


def test_a_process_and_what_it_started_are_looked_at(tree: Tree) -> None:
    tree.process(10)
    tree.process(11, ppid=10)
    tree.process(12, "/dev/nvidia-uvm", ppid=11)
    tree.process(13, "/dev/nvidia-uvm")
    below = holds.descendants(10, str(tree.root))
    assert sorted(below) == [10, 11, 12]
    assert holds.uses_accelerator(below, str(tree.root)) == 12


def test_a_path_that_leads_out_or_is_the_root_is_not_looked_at(tree: Tree) -> None:
    tree.process(10, "/dev/fuse")
    for path in ("/", "/../system.slice", "relative", ""):
        assert holds.why_needed(path, str(tree.root)) is None


NEEDED = """
    chronyd frr bird etcd kube-apiserver cri-dockerd calico-node flanneld ovn-controller strongswan wg-quick@wg0
    keepalived weka-agent glusterd beegfs-helperd mmfsd nvidia-dcgm host-containerd nodeadm-run pbs condor ray
"""


def unit(*wanted_by: str) -> LoadedUnit:
    known = ("a.service", "loaded", "active", "running", "enabled", "", (), wanted_by, "", "", None, None, None)
    return LoadedUnit(*known, has_job=False)


def test_what_the_network_waits_for_is_protected() -> None:
    assert guard.needed_unit(unit("network-online.target")) is not None
    assert guard.needed_unit(unit("multi-user.target")) is None
    assert guard.needed_unit(None) is None


@pytest.mark.parametrize("name", NEEDED.split())
def test_what_a_node_needs_by_name_is_protected(name: str) -> None:
    assert protection(f"{name}.service") is not None


@pytest.mark.parametrize("name", ["ecs", "agent", "telegraf", "node-exporter", "datadog-agent", "frr-exporter"])
def test_an_agent_that_nobody_waits_for_is_not(name: str) -> None:
    assert protection(f"{name}.service") is None


POD = "/kubepods.slice/kubepods-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice/cri-containerd-" + "a" * 64 + ".scope"


@pytest.mark.parametrize(
    ("pod", "container", "cgroup"),
    [
        ("rank-0", None, "/x"),
        (None, "a" * 64, POD),
        (None, "a" * 64, f"/kubepods/burstable/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427/{'a' * 64}"),
        (None, "k8s_main_rank-0_ml_uid_0", "/docker/x"),
    ],
)
def test_a_pods_container_is_never_frozen(pod: str | None, container: str | None, cgroup: str) -> None:
    assert guard.never_frozen(pod, container, cgroup) is not None


def test_a_container_of_nobodys_pod_may_be_frozen() -> None:
    assert guard.never_frozen(None, "b" * 64, f"/docker/{'b' * 64}") is None


@pytest.mark.parametrize(
    ("line", "comm", "protects"),
    [
        ("40 23 0:40 / /home rw - autofs auto.home rw,fd=7,pgrp=77,timeout=300,indirect", "automount", True),
        ("40 23 0:40 / /home rw - autofs systemd-1 rw,fd=7,pgrp=1,timeout=300,direct", "automount", False),
        ("41 23 0:41 / /gpfs rw - gpfs gpfs0 rw", "mmfsd", True),
        ("41 23 0:41 / /gpfs rw - gpfs gpfs0 rw", "mmfs-looker", False),
        ("42 23 8:1 / /data rw - ext4 /dev/sda1 rw", "mmfsd", False),
    ],
    ids=["automounter", "another's autofs", "mmfsd", "a near name", "nothing of it is mounted"],
)
def test_who_serves_a_mount_in_use_is_protected(tree: Tree, line: str, comm: str, protects: bool) -> None:
    tree.process(77, "/dev/null")
    (tree.root / "proc/77/stat").write_text(f"77 ({comm}) S 1 77 77 0\n")
    table = tree.root / "proc/self/mountinfo"
    table.write_text(f"{table.read_text()}{line}\n")
    assert (tree.why is not None) is protects
    assert not protects or "serves the mount /" in str(tree.why)


@pytest.mark.parametrize(
    ("needs", "protects"), [("mnt-data.mount", True), ("home.automount", True), ("job.service", False)]
)
def test_a_unit_that_a_mount_needs_is_protected(needs: str, protects: bool) -> None:
    known = replace(unit(), stops_with=(needs,))
    assert (guard.needed_unit(known) is not None) is protects
