"""How kernels were built."""

from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope.kernel import kconfig
from zombiescope.kernel.kconfig import KernelConfig

Node = Callable[[str], str]


@pytest.mark.parametrize(
    ("name", "release", "expected"),
    [
        (
            "el7-3.10",
            "3.10.0-1160.119.1.el7.x86_64",
            KernelConfig(1000, "tick", True, "voluntary", False, True, False),
        ),
        ("ubuntu-5.4-v1", "5.4.0-1103-aws", KernelConfig(250, "tick", False, "voluntary", False, True, True)),
        # booted with preempt=full
        ("debian-6.1-v2", "6.1.0-28-cloud-amd64", KernelConfig(250, "tick", True, "full", True, True, True)),
        # VIRT_CPU_ACCOUNTING_GEN is built in, but no CPU is nohz_full
        (
            "al2023-6.12-v2",
            "6.12.40-63.114.amzn2023.x86_64",
            KernelConfig(250, "tick", True, "none", True, False, True),
        ),
    ],
)
def test_from_config_gz_boot_or_modules(node: Node, name: str, release: str, expected: KernelConfig) -> None:
    assert kconfig.read(node(name), release) == expected


def test_context_tracking_is_exact_where_cpus_are_nohz_full(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/config-6.6").write_text("CONFIG_VIRT_CPU_ACCOUNTING_GEN=y\nCONFIG_HZ=1000\n")
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/nohz_full").write_text("1-3\n")
    assert kconfig.read(str(tmp_path), "6.6").accounting == "virt_gen"


def test_a_container_knows_nothing(node: Node) -> None:
    assert kconfig.read(node("container-6.1-v2"), "6.1") == KernelConfig(None, None, None, None, None, None, None)


def test_a_broken_config_gz_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(b"\x1f\x8b broken")
    assert kconfig.read(str(tmp_path), "6.1").hz is None


def test_this_machine_if_it_tells() -> None:
    found = kconfig.read()
    assert found.hz in (None, 100, 250, 300, 1000)
    if found.hz is not None:
        assert found.accounting is not None
        assert found.preempt is not None


@pytest.mark.parametrize(
    ("text", "preempt"),
    [("none voluntary (full) lazy", "full"), ("none (voluntary) full", "voluntary"),
     ("none voluntary full (lazy)", "lazy"), ("", "voluntary"), ("(odd)", "voluntary")],
)  # fmt: skip
def test_a_dynamic_kernel_says_how_it_preempts_now(tmp_path: Path, text: str, preempt: str) -> None:
    for path, content in (("boot/config-6.13", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n"),
                          ("sys/kernel/debug/sched/preempt", text)):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{content}\n")
    assert kconfig.read(str(tmp_path), "6.13").preempt == preempt
