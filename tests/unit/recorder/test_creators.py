"""Who makes a cgroup: it keeps its unit when it joins its own children, and a number is not another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.kernel import process
from zombiescope.recorder.creators import HOLDS_S, Creators
from zombiescope.recorder.ledger import Creator

ID = "5e1f" * 16


class Proc:
    """Processes of a node, as /proc shows them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now_s = 100.0

    def runs(self, pid: int, comm: str, cgroups: str, started: int = 5) -> None:
        place = self.root / "proc" / str(pid)
        place.mkdir(parents=True, exist_ok=True)
        (place / "stat").write_text(f"{pid} ({comm}) S 1 1 1 0 -1 0 {'0 ' * 12}{started} {'0 ' * 25}\n")
        (place / "cgroup").write_text(cgroups)

    def ends(self, pid: int) -> None:
        for file in (self.root / "proc" / str(pid)).iterdir():
            file.unlink()

    def creators(self, comm: str | None = None) -> Creators:
        return Creators(lambda _: comm, str(self.root), lambda: self.now_s)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


@pytest.mark.parametrize(
    ("cgroups", "made"),
    [
        # version 1, hybrid: it joined its child in the memory hierarchy; systemd's own line has its unit
        (f"6:memory:/ecs/{ID}\n1:name=systemd:/system.slice/leaky.service\n", f"/ecs/{ID}"),
        # by the time of the look it is in another of its children
        (f"6:memory:/ecs/{ID}\n1:name=systemd:/system.slice/leaky.service\n", f"/ecs/{ID[::-1]}"),
        (f"6:memory:/ecs/{ID}\n0::/system.slice/leaky.service\n", f"/ecs/{ID}"),
        # version 2: the child lies in its unit
        ("0::/system.slice/leaky.service/job-1\n", "/system.slice/leaky.service/job-1"),
        (f"0::/system.slice/leaky.service/{ID}/inner\n", f"/system.slice/leaky.service/{ID}"),
    ],
)
def test_a_creator_that_joined_its_own_child_keeps_its_unit(proc: Proc, cgroups: str, made: str) -> None:
    proc.runs(42, "leaky", cgroups)
    assert proc.creators().of(made, 42, 42) == Creator("leaky", 42, "leaky.service", None)


def test_a_creator_in_a_container_has_that_container(proc: Proc) -> None:
    proc.runs(42, "agent", f"6:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n")
    assert proc.creators().of(f"/docker/{ID}/job-1", 42, 42) == Creator("agent", 42, None, ID)


def test_a_number_that_was_used_again_is_another_process(proc: Proc) -> None:
    creators = proc.creators()
    proc.runs(42, "agent", "0::/system.slice/agent.service\n", started=5)
    assert creators.of("/x/a", 42, 42) == Creator("agent", 42, "agent.service")
    proc.runs(42, "agent", "0::/system.slice/other.service\n", started=900)
    proc.now_s += HOLDS_S + 1
    assert creators.of("/x/b", 42, 42) == Creator("agent", 42, "other.service")


def test_another_name_is_another_process_at_once(proc: Proc) -> None:
    names = iter(("agent", "runc"))
    creators = Creators(lambda _: next(names), str(proc.root), lambda: proc.now_s)
    proc.runs(42, "agent", "0::/system.slice/agent.service\n")
    assert creators.of("/x/a", 42, 42) == Creator("agent", 42, "agent.service")
    proc.runs(42, "runc", "0::/system.slice/containerd.service\n", started=6)
    assert creators.of("/x/b", 42, 42) == Creator("runc", 42, "containerd.service")


def test_one_that_is_gone_has_the_name_that_the_rings_know(proc: Proc) -> None:
    assert proc.creators("runc").of("/x/a", 4242, 4242) == Creator("runc", 4242)
    assert proc.creators().of("/x/a", 4242, 4242) is None


def test_a_storm_reads_a_process_once_a_second(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.runs(42, "agent", "0::/system.slice/agent.service\n")
    creators, reads, read = proc.creators("agent"), [], process.read

    def counted(pid: int, root: str, *, cmdline: bool) -> process.Process | None:
        reads.append(pid)
        return read(pid, root, cmdline=cmdline)

    monkeypatch.setattr(process, "read", counted)
    for number in range(1000):
        creators.of(f"/x/{number}", 42, 42)
    assert len(reads) == 1
