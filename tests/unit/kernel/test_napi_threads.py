"""Threads of threaded NAPI: which cards have them, and how long each ran and waited, and where."""

from __future__ import annotations

from pathlib import Path

from zombiescope.kernel import napi_threads


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def thread(root: Path, pid: int, comm: str, cpu: int = 5, wait_ns: int = 6_599_000_000) -> None:
    rest = " ".join(["0"] * 33)
    put(root, f"proc/{pid}/comm", comm)
    put(root, f"proc/{pid}/schedstat", f"8000000 {wait_ns} 17")
    put(root, f"proc/{pid}/stat", f"{pid} ({comm}) S 2 0 {rest} {cpu} 0 0 0 0 0 0 0 0 0 0 0 0 0")


def node(root: Path) -> str:
    put(root, "proc/2/comm", "kthreadd")
    put(root, "proc/2/task/2/children", "14 70 71")
    for pid, comm in ((14, "ksoftirqd/0"), (70, "napi/eth0-8193"), (71, "napi/mlx5_0-82")):
        thread(root, pid, comm)
    put(root, "sys/class/net/eth0/threaded", "1")
    put(root, "sys/class/net/eth1/threaded", "0")
    put(root, "sys/class/net/lo/mtu", "65536")
    return f"{root}/"


def test_cards_and_their_threads(tmp_path: Path) -> None:
    root = node(tmp_path)
    assert napi_threads.threaded_cards(root) == ("eth0",)
    assert napi_threads.find(root) == {70: "napi/eth0-8193", 71: "napi/mlx5_0-82"}
    assert napi_threads.read(70, "napi/eth0-8193", root) == ("napi/eth0-8193", 8_000, 6_599_000, 5)


def test_a_pid_that_another_task_took_is_not_read(tmp_path: Path) -> None:
    root = node(tmp_path)
    assert napi_threads.read(71, "napi/eth0-8194", root) is None
    assert napi_threads.read(99, "napi/eth0-8194", root) is None
