"""Whether we see the node or a container."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zombiescope.kernel import namespaces

Node = Callable[[str], str]


def test_the_host(node: Node) -> None:
    root = node("ubuntu-5.4-v1")
    assert namespaces.in_host_pid_namespace(root)
    assert namespaces.in_host_cgroup_namespace(root)
    assert namespaces.in_host("net", root) is True


def test_a_container(node: Node) -> None:
    root = node("container-6.1-v2")
    assert not namespaces.in_host_pid_namespace(root)
    assert not namespaces.in_host_cgroup_namespace(root)
    assert namespaces.in_host("user", root) is True
    assert namespaces.in_host("net", root) is None


def test_a_container_in_the_hosts_pid_namespace_but_not_its_network(tmp_path: Path) -> None:
    for process, inode in (("self", 4026532443), ("1", 4026531992)):
        (tmp_path / f"proc/{process}/ns").mkdir(parents=True)
        (tmp_path / f"proc/{process}/ns/net").symlink_to(f"net:[{inode}]")
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert namespaces.in_host("net", str(tmp_path)) is False


def made(root: Path, *, release: str = "6.8.0", files: dict[str, str] | None = None, **links: str) -> str:
    """A tree with the links of /proc/self/ns: kind -> inode."""
    (root / "proc/self/ns").mkdir(parents=True)
    for kind, inode in links.items():
        (root / f"proc/self/ns/{kind}").symlink_to(f"{kind}:[{inode}]")
    for path, text in {"proc/sys/kernel/osrelease": release, **(files or {})}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return str(root)


@pytest.mark.parametrize(("release", "told"), [("6.18.44", False), ("6.17.1", None), ("garbage", None)])
def test_a_kernel_with_fixed_inodes_settles_it_where_process_1_cannot_be_asked(
    tmp_path: Path, release: str, told: bool | None
) -> None:
    """As with AppArmor's default profile, which refuses /proc/1/ns."""
    root = made(tmp_path, release=release, net="4026532443", mnt="4026532444", pid="4026531836")
    assert namespaces.in_host("net", root) is told
    assert namespaces.in_host("mnt", root) is told


OVERLAY = "30 29 0:28 / / ro,relatime - overlay overlay rw,lowerdir=/a\n31 30 0:5 / /dev rw - tmpfs tmpfs rw\n"
DISK = "30 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"


@pytest.mark.parametrize(
    ("mounts", "cgroup", "hidden"),
    [(OVERLAY, "4026531835", True), (DISK, "4026532500", True), (DISK, "4026531835", False)],
    ids=["an overlay", "another cgroup namespace", "the unit without CAP_SYS_PTRACE"],
)
def test_an_image_from_which_the_nodes_files_cannot_be_reached(
    tmp_path: Path, mounts: str, cgroup: str, hidden: bool
) -> None:
    root = made(tmp_path, files={"proc/self/mountinfo": mounts}, mnt="4026532444", cgroup=cgroup, pid="4026531836")
    assert namespaces.hides_node_root(root) is hidden
    (tmp_path / "proc/1/root").mkdir(parents=True)
    assert namespaces.hides_node_root(root) is False


@pytest.mark.parametrize(
    ("card", "controller", "driver", "misses"),
    [(False, "0x020000", True, True), (True, "0x020000", True, False), (False, "0x020000", False, False),
     (False, "0x010802", True, False)],
    ids=["a controller without an interface", "the card is here", "no driver", "only a disk"],
)  # fmt: skip
def test_a_card_without_an_interface_lies_in_another_network(
    tmp_path: Path, card: bool, controller: str, driver: bool, misses: bool
) -> None:
    device = "sys/bus/pci/devices/0000:00:03.0"
    root = made(tmp_path, files={f"{device}/class": controller, "sys/class/net/lo/mtu": "65536"})
    if driver:
        (tmp_path / device / "driver").mkdir()
    if card:
        (tmp_path / "sys/class/net/eth0/device").mkdir(parents=True)
    assert namespaces._misses_a_card(root) is misses


@pytest.mark.parametrize("misses", [True, False])
def test_where_nobody_can_tell_the_cards_decide(monkeypatch: pytest.MonkeyPatch, misses: bool) -> None:
    namespaces.node_network.cache_clear()
    monkeypatch.setattr(namespaces, "in_host", lambda _kind, _root="/": None)
    monkeypatch.setattr(namespaces, "_misses_a_card", lambda: misses)
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = namespaces.node_network()
    namespaces.node_network.cache_clear()
    assert found == (None if misses else "self")


def test_a_kernel_without_the_kind_of_namespace_has_only_the_hosts(tmp_path: Path) -> None:
    assert namespaces.in_host("time", str(tmp_path)) is True


@pytest.mark.kernel
def test_a_real_pid_namespace_is_not_the_hosts_and_hides_kernel_threads(needs: Any) -> None:
    needs.root()
    needs.program("unshare")
    asking = (
        "from zombiescope.kernel import ksoftirqd, namespaces;"
        "print(namespaces.in_host_pid_namespace(), namespaces.in_host_cgroup_namespace(), ksoftirqd.find())"
    )
    enter = ["unshare", "--pid", "--fork", "--mount-proc", "--cgroup", sys.executable, "-c", asking]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(enter, capture_output=True, text=True, env=environment, check=True)
    assert answer.stdout == "False False {}\n"


def test_this_process() -> None:
    assert namespaces.inode("pid") == Path("/proc/self/ns/pid").stat().st_ino
