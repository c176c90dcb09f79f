"""Whole images, as files: what is found in them, where it stands, and what is not found."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.audit import Audit, Finding, examine

ROOTS = Path(__file__).parents[2] / "fixtures" / "roots"
NODES = Path(__file__).parents[2] / "fixtures"


def audit(name: str) -> Audit:
    return examine(ROOTS / name)


def found(of: Audit) -> dict[str, str]:
    return {finding.id: finding.severity for finding in of.findings}


def one(of: Audit, identity: str) -> Finding:
    (finding,) = [finding for finding in of.findings if finding.id == identity]
    return finding


def test_the_deep_learning_image_of_ubuntu_on_a_kubernetes_node() -> None:
    of = audit("ubuntu-20.04-dlami")
    assert of.platform == "kubernetes"
    assert not of.live
    assert found(of) == {
        "foreign-agent:ecs.service": "critical",
        "missing-program:nvidia-exporter.service": "critical",
        "cgroup-v1:numa-stat-walk": "critical",
        "endless-restart:ecs.service": "warning",
        "inner-restart:ecs.service": "warning",
        "endless-restart:nvidia-exporter.service": "warning",
        "misplaced-limit:nvidia-exporter.service": "warning",
        "endless-restart:amazon-ssm-agent.service": "info",  # every 15 minutes
        "endless-restart:kubelet.service": "info",  # by design
        "foreign-agent:docker.service": "info",
        "timer-churn:sysstat-collect.timer": "info",
        "kernel-path:slab-cache-per-cgroup": "info",
        "late-watchdog": "info",
    }
    assert of.findings[0].id == "foreign-agent:ecs.service"


def test_a_finding_says_where_it_stands_and_what_to_do() -> None:
    finding = one(audit("ubuntu-20.04-dlami"), "endless-restart:ecs.service")
    places = {(item.file, item.line, item.text) for item in finding.evidence}
    assert ("/lib/systemd/system/ecs.service", 8, "Restart=on-failure") in places
    assert ("/lib/systemd/system/ecs.service", 9, "RestartSec=10s") in places
    assert "8,640 starts a day" in finding.why
    assert "RestartPreventExitStatus=5" in finding.fix[-1]
    assert all(str(ROOTS / "ubuntu-20.04-dlami") in line for line in finding.fix)


def test_the_same_agent_with_the_line_that_ends_its_loop() -> None:
    of = audit("amazon-linux-2")
    assert found(of) == {
        "cgroup-v1:numa-stat-walk": "critical",
        "foreign-agent:ecs.service": "warning",
        "inner-restart:ecs.service": "warning",
        "session-churn:crond.service": "warning",
        "kernel-path:memory-stat-walk": "warning",
        "kernel-path:shrinker-walk": "warning",
        "serial-console": "warning",
        "endless-restart:ecs.service": "info",
        "endless-restart:kubelet.service": "info",
        "kernel-path:slab-cache-per-cgroup": "info",
        "late-watchdog": "info",
    }
    assert "stays stopped" in one(of, "foreign-agent:ecs.service").why
    assert "stay stopped after status 5" in one(of, "endless-restart:ecs.service").why


def test_debian_with_instances_an_alias_and_a_mask() -> None:
    of = audit("debian-12")
    assert found(of) == {"endless-restart:app@slow.service": "warning", "late-watchdog": "info"}
    texts = {(item.file, item.text) for item in of.findings[0].evidence}
    assert ("/etc/systemd/system/app@slow.service.d/delay.conf", "RestartSec=30") in texts


def test_fedora_before_its_first_boot() -> None:
    of = audit("fedora-40")
    assert found(of) == {
        "endless-restart:wanted.service": "warning",
        "endless-restart:slower.service": "info",
        "late-watchdog": "info",
    }
    assert "disable wanted.service" in of.findings[0].fix[0]


def test_a_container_image_without_systemd() -> None:
    of = audit("alpine-container")
    assert of.findings == ()
    assert of.missing[0].why == "no systemd and no unit file in this root"


def test_what_only_a_generator_would_make_is_unknown() -> None:
    (missing,) = audit("ubuntu-20.04-dlami").missing
    assert missing.source == "generator: /etc/fstab"
    assert "only known after boot" in missing.why


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("ubuntu-5.4-v1", {"cgroup-v1:numa-stat-walk", "kernel-path:slab-cache-per-cgroup", "serial-console"}),
        ("al2023-6.12-v2", {"serial-console"}),
        ("container-6.1-v2", set()),
    ],
)  # fmt: skip
def test_the_kernel_of_a_running_node(node: str, expected: set[str]) -> None:
    assert set(found(examine(NODES / node))) == expected
