"""Paths of /proc/PID/cgroup as seen from inside a cgroup namespace, on the files of such a pod."""

from pathlib import Path

import pytest

from zombiescope.kernel import cgroup_namespace

UNIT = "0::/../../../../system.slice/sshd.service\n"


def node(
    root: Path, *, mount_root: str | None, first: str = "0::/../../../../init.scope\n", host_pid: bool = True
) -> str:
    """A pod four levels below the root; the whole hierarchy is mounted unless `mount_root` is None."""
    for process, text in (("self", "0::/\n"), ("1", first), ("7", UNIT)):
        (root / f"proc/{process}/ns").mkdir(parents=True)
        (root / f"proc/{process}/cgroup").write_text(text)
    (root / "proc/self/ns/cgroup").symlink_to("cgroup:[4026532442]")
    (root / "proc/self/ns/pid").symlink_to(f"pid:[{4026531836 if host_pid else 4026532441}]")
    mounts = "" if mount_root is None else f"30 1 0:26 {mount_root} /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"
    (root / "proc/self/mountinfo").write_text(mounts)
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cgroup.controllers").write_text("memory cpu\n")
    return str(root)


@pytest.mark.parametrize("mount_root", ["/../../../..", None])
def test_a_task_of_the_node(tmp_path: Path, mount_root: str | None) -> None:
    root = node(tmp_path, mount_root=mount_root)
    assert cgroup_namespace.membership(7, root)[0][1] == "/system.slice/sshd.service"
    assert cgroup_namespace.sees_node_paths(0, root)


def test_of_two_mounts_at_one_place_the_upper_one_counts(tmp_path: Path) -> None:
    """runc mounts the container's own view; the pod's volume with the node's hierarchy lies over it."""
    root = node(tmp_path, mount_root="/../../../..")
    mounts = tmp_path / "proc/self/mountinfo"
    mounts.write_text("29 1 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n" + mounts.read_text())
    assert cgroup_namespace.membership(7, root)[0][1] == "/system.slice/sshd.service"


def test_neither_the_whole_hierarchy_nor_the_hosts_processes(tmp_path: Path) -> None:
    # The mount shows only the container's part: its directory has what only the root lacks.
    root = node(tmp_path, mount_root="/", host_pid=False)
    (tmp_path / "sys/fs/cgroup/cgroup.events").write_text("populated 1\n")
    assert cgroup_namespace.membership(7, root)[0][1] == "/../../../../system.slice/sshd.service"
    assert not cgroup_namespace.sees_node_paths(0, root)


def test_a_first_process_that_was_moved_is_no_measure(tmp_path: Path) -> None:
    root = node(tmp_path, mount_root=None, first="0::/../../../user.slice\n")
    assert not cgroup_namespace.sees_node_paths(0, root)


def test_in_the_hosts_namespace_paths_stay_as_they_are(tmp_path: Path) -> None:
    root = node(tmp_path, mount_root="/")
    (tmp_path / "proc/self/ns/cgroup").unlink()
    assert cgroup_namespace.membership(7, root)[0][1] == UNIT[3:-1]
    assert cgroup_namespace.sees_node_paths(0, root)
