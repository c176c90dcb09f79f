"""Settings that a plan may change, as they are: numbers and one choice, and nothing else that such a file may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.kernel import sysctl


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_values_are_told_as_sysctl_prints_them(tmp_path: Path) -> None:
    put(tmp_path, "proc/sys/kernel/printk", "7\t4\t1\t7\n")
    put(tmp_path, "proc/sys/vm/oom_dump_tasks", "1\n")
    put(tmp_path, sysctl.THP_DEFRAG, "always defer defer+madvise [madvise] never\n")
    assert sysctl.read(str(tmp_path)) == {
        "kernel.printk": "7 4 1 7",
        "vm.oom_dump_tasks": "1",
        "/sys/kernel/mm/transparent_hugepage/defrag": "madvise",
    }


@pytest.mark.parametrize("text", ["", "$(touch pwned)\n", "1; rm -rf /\n", "9" * 100, "1 2\nx"])
def test_what_is_no_number_is_not_told(tmp_path: Path, text: str) -> None:
    put(tmp_path, "proc/sys/kernel/numa_balancing", text)
    put(tmp_path, sysctl.THP_DEFRAG, f"[{text}]")
    assert sysctl.read(str(tmp_path)) == {}
