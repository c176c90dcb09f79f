"""Hierarchies of v1, v2, hybrid and container nodes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zombiescope.kernel import cgroup
from zombiescope.kernel.cgroup import hierarchies, of_controller

Node = Callable[[str], str]


@pytest.mark.parametrize(
    ("name", "number", "version", "mount"),
    [
        ("el7-3.10", 6, 1, "/sys/fs/cgroup/memory"),
        ("ubuntu-5.4-v1", 6, 1, "/sys/fs/cgroup/memory"),
        ("guest-6.18-v1", 4, 1, "/sys/fs/cgroup/memory"),
        ("debian-6.1-v2", 0, 2, "/sys/fs/cgroup"),
        ("al2023-6.12-v2", 0, 2, "/sys/fs/cgroup"),
    ],
)
def test_the_hierarchy_of_memory(node: Node, name: str, number: int, version: int, mount: str) -> None:
    found = of_controller("memory", hierarchies(node(name)))

    assert found is not None
    assert (found.number, found.version) == (number, version)
    assert found.mount == node(name) + mount
    assert found.whole


def test_a_container_sees_only_its_own_part(node: Node) -> None:
    found = of_controller("memory", hierarchies(node("container-6.1-v2")))
    assert found is not None
    assert found.version == 2
    assert not found.whole


def test_a_mount_of_the_whole_is_preferred_to_one_of_a_part(node: Node) -> None:
    # The node also has /kubepods/burstable of the memory hierarchy mounted at a path with a space.
    data = Path(node("ubuntu-5.4-v1"), "proc/self/mountinfo").read_bytes()
    mounts = [mount for mount in cgroup.parse_mountinfo(data) if "memory" in mount.options]
    assert [(mount.path, mount.root) for mount in mounts] == [
        ("/sys/fs/cgroup/memory", "/"),
        ("/var/lib/with space/memory", "/kubepods/burstable"),
    ]


def test_controllers_mounted_together_and_named_hierarchies(node: Node) -> None:
    found = {hierarchy.number: hierarchy for hierarchy in hierarchies(node("el7-3.10"))}
    assert found[2].controllers == {"cpu", "cpuacct"}
    assert found[2].mount == node("el7-3.10") + "/sys/fs/cgroup/cpu,cpuacct"
    assert found[1].controllers == {"name=systemd"}


def test_memory_on_v2_of_kernels_that_hide_it_from_proc_cgroups(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "node"
    shutil.copytree(node("debian-6.1-v2"), root, symlinks=True)
    (root / "proc/cgroups").write_text("#subsys_name\thierarchy\tnum_cgroups\tenabled\n")
    found = of_controller("memory", hierarchies(str(root)))
    assert found is not None
    assert found.number == 0


def test_a_hierarchy_that_is_not_mounted_here_is_known_by_number(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "node"
    shutil.copytree(node("guest-6.18-v1"), root, symlinks=True)
    (root / "proc/self/mountinfo").write_text("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n")
    found = of_controller("memory", hierarchies(str(root)))
    assert found is not None
    assert (found.number, found.mount, found.whole) == (4, None, False)


def test_the_rows_of_proc_cgroups(node: Node) -> None:
    data = Path(node("ubuntu-5.4-v1"), "proc/cgroups").read_bytes()
    assert cgroup.parse_cgroups(data)["memory"] == cgroup.Controller("memory", 6, 68680, True)
    assert "#subsys_name" not in cgroup.parse_cgroups(data)


def test_membership_keeps_colons_of_the_path() -> None:
    found = cgroup.parse_membership(b"1:name=systemd:/x:y\n3:cpu,cpuacct:/a\n0::/\n7:cut")
    assert found == {
        1: (frozenset({"name=systemd"}), "/x:y"),
        3: (frozenset({"cpu", "cpuacct"}), "/a"),
        0: (frozenset(), "/"),
    }


def test_the_directory_of_a_process_path(node: Node) -> None:
    root = node("debian-6.1-v2")
    memory = of_controller("memory", hierarchies(root))
    assert memory is not None
    assert cgroup.directory(memory, "/system.slice/cron.service") == f"{root}/sys/fs/cgroup/system.slice/cron.service"
    assert cgroup.directory(memory, "/") == f"{root}/sys/fs/cgroup"
    assert cgroup.directory(memory, "/system.slice/gone.service") is None
    assert cgroup.directory(memory, "/../../system.slice/cron.service") is None


@pytest.mark.kernel
def test_roots_of_this_machine_are_told_from_their_children(needs: Any) -> None:
    needs.root()
    mounted = [(h.mount, h.whole) for h in hierarchies() if h.mount is not None and os.access(h.mount, os.W_OK)]
    for mount, whole in mounted:
        child = Path(mount, f"zombiescope-test-{os.getpid()}")
        child.mkdir()
        try:
            assert not cgroup.is_root(str(child))
            assert cgroup.is_root(mount) == whole
        finally:
            child.rmdir()


_MOUNT_AND_ASK = """
set -e
mount -t "$1" -o "$2" none "$4"
"$3" -c 'import sys; from zombiescope.kernel import cgroup; print(cgroup.is_root(sys.argv[1]))' "$4"
"""


@pytest.mark.kernel
def test_the_root_of_a_real_cgroup_namespace_is_no_root(needs: Any, tmp_path: Path) -> None:
    # GIVEN a process in a cgroup below the root, in a cgroup namespace of its own
    needs.root()
    needs.program("unshare")
    memory = of_controller("memory", hierarchies())
    assert memory is not None
    assert memory.mount is not None
    child = Path(memory.mount, f"zombiescope-ns-{os.getpid()}")
    child.mkdir()
    kind = ("cgroup", "memory") if memory.version == 1 else ("cgroup2", "rw")
    enter = f'echo $$ > {child}/cgroup.procs; exec unshare --cgroup --mount sh -c "$0" sh "$@"'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    # WHEN it mounts the hierarchy
    try:
        asking = ["sh", "-c", enter, _MOUNT_AND_ASK, *kind, sys.executable, str(tmp_path)]
        answer = subprocess.run(asking, capture_output=True, text=True, env=environment, check=False)
    finally:
        child.rmdir()

    # THEN the directory it sees as / is known to be a part
    assert answer.stdout == "False\n", answer.stderr


def test_this_machine_has_a_memory_hierarchy() -> None:
    found = of_controller("memory", hierarchies())
    assert found is not None
    assert found.mount is not None
    assert Path(found.mount, "cgroup.procs").exists()
