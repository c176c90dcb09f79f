"""ksoftirqd threads, found and followed."""

import shutil
from collections.abc import Callable
from pathlib import Path

from zombiescope.kernel import cpu, ksoftirqd, namespaces
from zombiescope.kernel.ksoftirqd import Ksoftirqd
from zombiescope.kernel.schedstat import RunDelay

Node = Callable[[str], str]


def test_threads_are_found_by_a_scan_where_children_are_not_listed(node: Node) -> None:
    assert ksoftirqd.find(node("ubuntu-5.4-v1")) == {0: 10, 1: 18}


def test_a_process_that_only_has_the_name_is_no_kernel_thread(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "node"
    shutil.copytree(node("ubuntu-5.4-v1") + "/proc", root / "proc", symlinks=True)
    (root / "proc/77").mkdir()
    (root / "proc/77/comm").write_text("ksoftirqd/5\n")
    (root / "proc/77/stat").write_text("77 (ksoftirqd/5) S 1 " + "0 " * 40 + "\n")
    assert ksoftirqd.find(str(root)) == {0: 10, 1: 18}


def test_a_container_sees_none_and_says_why(node: Node) -> None:
    threads = Ksoftirqd(node("container-6.1-v2"))
    threads.follow((0, 1))
    assert threads.read() is None
    assert threads.why is not None
    assert "PID namespace" in threads.why


def test_run_delays_are_read_and_a_new_cpu_is_picked_up(node: Node, tmp_path: Path) -> None:
    # GIVEN a node with threads for two CPUs
    root = tmp_path / "node"
    shutil.copytree(node("ubuntu-5.4-v1") + "/proc", root / "proc", symlinks=True)
    threads = Ksoftirqd(str(root))
    threads.follow((0, 1))
    assert threads.read() == {
        0: RunDelay(412033110, 81203311, 91203),
        1: RunDelay(312033110, 71203311, 81203),
    }

    # WHEN a third comes online
    shutil.copytree(root / "proc/18", root / "proc/26")
    (root / "proc/26/comm").write_text("ksoftirqd/2\n")
    threads.follow((0, 1, 2))

    # THEN it is read too
    assert sorted(threads.read() or {}) == [0, 1, 2]
    threads.close()


def test_this_machine_has_one_for_each_online_cpu() -> None:
    threads = Ksoftirqd()
    threads.follow(cpu.online() or ())
    found = threads.read()
    threads.close()
    if namespaces.in_host_pid_namespace():
        assert found is not None
        assert sorted(found) == list(cpu.online() or ())
        assert all(delay.run_ns >= 0 and delay.wait_ns >= 0 for delay in found.values())
    else:
        assert found is None
