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
