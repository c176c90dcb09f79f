"""Each rule on the smallest root that shows it, and on the nearest one that does not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope import audit
from zombiescope.audit import Finding, rules
from zombiescope.audit.rules import auto_restart, nic_one_core, session_churn
from zombiescope.kernel.nic_queue import NicQueue
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.show import RunningUnit

SYSTEM = "usr/lib/systemd/system"
Audited = Callable[..., dict[str, Finding]]


@pytest.fixture
def audited(tmp_path: Path) -> Audited:
    """Findings by id of a root that holds these files; services named x are enabled and their program is there."""

    def made(**files: str) -> dict[str, Finding]:
        wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        defaults = {"etc/machine-id": "1" * 32, "bin/x": "#!/bin/sh\n"}
        for name, text in (defaults | files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            unit = path.name
            if name.startswith(SYSTEM) and "@" not in unit and not (wants / unit).is_symlink():
                (wants / unit).symlink_to(f"/{SYSTEM}/{unit}")
        (tmp_path / "bin/x").chmod(0o755)
        return {finding.id: finding for finding in audit.examine(tmp_path).findings}

    return made


def service(text: str = "", unit: str = "") -> str:
    return f"[Unit]\n{unit}[Service]\nExecStart=/bin/x\n{text}"


def test_every_file_of_the_folder_is_a_rule() -> None:
    files = {path.stem for path in Path(rules.__file__).parent.glob("*.py")} - {"__init__"}
    assert len(rules.every()) == len(files) >= 13
    assert len({rule.ID for rule in rules.every()}) == len(files)
    assert all(rule.TITLE and rule.__doc__ for rule in rules.every())


def test_a_loop_is_found_and_a_limited_one_is_not(audited: Audited) -> None:
    found = audited(
        **{
            f"{SYSTEM}/loops.service": service("Restart=always\nRestartSec=5\n"),
            f"{SYSTEM}/limited.service": service("Restart=always\nRestartSec=1\n"),
            f"{SYSTEM}/once.service": service("Type=oneshot\nRestart=always\nRestartSec=5\n"),  # systemd refuses it
        }
    )
    assert set(found) == {"endless-restart:loops.service"}


def test_a_default_of_the_manager_makes_a_loop_and_is_named(audited: Audited) -> None:
    found = audited(
        **{
            f"{SYSTEM}/x.service": service("Restart=always\n"),
            "etc/systemd/system.conf": "[Manager]\nDefaultStartLimitIntervalSec=0\n",
        }
    )
    places = [(item.file, item.line) for item in found["endless-restart:x.service"].evidence]
    assert ("/etc/systemd/system.conf", 2) in places


def test_a_program_that_is_missing(audited: Audited) -> None:
    found = audited(
        **{
            f"{SYSTEM}/gone.service": "[Service]\nExecStart=/opt/gone\n",
            f"{SYSTEM}/gone-loops.service": "[Service]\nExecStart=/opt/gone\nRestart=always\nRestartSec=9\n",
            f"{SYSTEM}/ignored.service": "[Service]\nExecStart=-/opt/gone\n",
            f"{SYSTEM}/guarded.service": "[Unit]\nConditionPathExists=/opt/gone\n[Service]\nExecStart=/opt/gone\n",
            f"{SYSTEM}/unguarded.service": "[Unit]\nConditionPathExists=!/opt/gone\n[Service]\nExecStart=/opt/gone\n",
            f"{SYSTEM}/in-path.service": "[Service]\nExecStart=x\n",
            f"{SYSTEM}/other-root.service": "[Service]\nRootDirectory=/srv\nExecStart=/opt/gone\n",
            f"{SYSTEM}/at-run-time.service": "[Service]\nExecStart=/run/gone\n",
            f"{SYSTEM}/specifier.service": "[Service]\nExecStart=/opt/%H/gone\n",
        }
    )
    severities = {name: finding.severity for name, finding in found.items() if name.startswith("missing-program")}
    assert severities == {
        "missing-program:gone.service": "warning",
        "missing-program:gone-loops.service": "critical",
        "missing-program:unguarded.service": "warning",
    }


def test_an_agent_where_nothing_shows_the_platform(audited: Audited) -> None:
    found = audited(**{f"{SYSTEM}/ecs.service": service()})
    assert found["foreign-agent:ecs.service"].severity == "info"
    assert "nothing here shows" in found["foreign-agent:ecs.service"].why


def test_an_agent_at_home(audited: Audited) -> None:
    found = audited(**{f"{SYSTEM}/ecs.service": service(), "etc/ecs/ecs.config": "# here\nECS_CLUSTER=prod\n"})
    assert "foreign-agent:ecs.service" not in found


def test_a_cloud_agent_in_another_cloud(audited: Audited) -> None:
    units = {f"{SYSTEM}/google-guest-agent.service": service()}
    assert "foreign-agent:google-guest-agent.service" not in audited(**units)
    found = audited(**units, **{"usr/lib/modules/5.15.0-1051-aws/modules.order": ""})
    assert found["foreign-agent:google-guest-agent.service"].severity == "warning"


def test_a_failure_that_reboots(audited: Audited) -> None:
    found = audited(**{f"{SYSTEM}/x.service": service("Restart=always\n", "StartLimitAction=reboot-force\n")})
    assert "reboot-force" in found["restart-reboots:x.service"].why


@pytest.mark.parametrize(
    ("timer", "severity"),
    [
        ("OnCalendar=minutely", "warning"),
        ("OnCalendar=*:0/10", "info"),
        ("OnUnitActiveSec=30s", "warning"),
        ("OnCalendar=daily", None),
        ("OnCalendar=minutely\nOnCalendar=\nOnCalendar=daily", None),
        ("OnBootSec=10s", None),
    ],
)
def test_timers_that_churn(audited: Audited, timer: str, severity: str | None) -> None:
    found = audited(**{f"{SYSTEM}/t.timer": f"[Timer]\n{timer}\n", f"{SYSTEM}/t.service": service("Type=oneshot\n")})
    finding = found.get("timer-churn:t.timer")
    assert (finding.severity if finding else None) == severity


def test_a_fix_is_a_command_that_changes_this_root(audited: Audited, tmp_path: Path) -> None:
    units = {
        f"{SYSTEM}/often.timer": "[Timer]\nOnUnitActiveSec=1min\nOnBootSec=1min\n",
        f"{SYSTEM}/reboots.service": service(unit="StartLimitAction=reboot\n"),
        f"{SYSTEM}/limited.service": service("Restart=always\nRestartSec=9\nStartLimitIntervalSec=2min ' $(false)\n"),
    }
    found = audited(**units)
    for id_ in ("timer-churn:often.timer", "restart-reboots:reboots.service", "misplaced-limit:limited.service"):
        commands = [line for line in found[id_].fix if not line.startswith("#")]
        assert commands
        assert all(str(tmp_path) in command for command in commands)
        for command in commands:
            subprocess.run(["sh", "-ec", command], check=True)
    settings = {path.parent.name: path.read_text() for path in tmp_path.glob("etc/systemd/system/*.d/50-*.conf")}
    assert settings == {
        "often.timer.d": "[Timer]\nOnCalendar=\nOnCalendar=hourly\n",
        "reboots.service.d": "[Unit]\nStartLimitAction=none\n",
        "limited.service.d": "[Unit]\nStartLimitIntervalSec=2min ' $(false)\n",
    }
    again = {finding.id for finding in audit.examine(tmp_path).findings}
    assert not {"timer-churn:often.timer", "restart-reboots:reboots.service"} & again


def test_evidence_of_a_very_long_line_is_short(audited: Audited) -> None:
    found = audited(**{f"{SYSTEM}/long.service": f"[Service]\nExecStart=/bin/gone {'A' * 100_000}\n"})
    text = found["missing-program:long.service"].evidence[0].text
    assert text.startswith("ExecStart=/bin/gone AAA")
    assert text.endswith("... (100,020 characters)")
    assert len(text) < 500


def test_docker_of_a_kubernetes_node_is_not_simply_switched_off(audited: Audited) -> None:
    found = audited(**{f"{SYSTEM}/{name}.service": service() for name in ("docker", "kubelet")})
    assert found["foreign-agent:docker.service"].fix[0].startswith("# if nothing here uses it: ")


def test_cron_opens_sessions_only_where_pam_says_so(audited: Audited) -> None:
    files = {
        f"{SYSTEM}/cron.service": service(),
        "etc/cron.d/often": "*/5 * * * * root run\n",
        "etc/pam.d/cron": "@include common-session-noninteractive\n",
        "etc/pam.d/common-session-noninteractive": "session required pam_unix.so\n",
    }
    assert "session-churn:cron.service" not in audited(**files)
    files["etc/pam.d/common-session-noninteractive"] += "session optional pam_systemd.so\n"
    finding = audited(**files)["session-churn:cron.service"]
    assert finding.evidence[0].line == 1
    assert finding.evidence[-1].file == "/etc/pam.d/common-session-noninteractive"


@pytest.mark.parametrize(
    ("words", "sysctl", "found"),
    [
        ("console=ttyS0,115200", "", True),
        ("console=ttyS0,115200 quiet", "", False),
        ("console=ttyS0,115200 loglevel=4", "", False),
        ("console=ttyS0,115200", "vm.oom_dump_tasks = 0", False),
        ("console=ttyS0,115200 quiet", "kernel.printk = 7 4 1 7", True),
        ("console=tty1", "", False),
        ("console=hvc0", "", False),
        ("", "", False),
    ],
)
def test_the_console(audited: Audited, words: str, sysctl: str, found: bool) -> None:
    files = {"etc/kernel/cmdline": words, "etc/sysctl.d/10.conf": sysctl, "lib/modules/6.1.0/modules.order": ""}
    assert ("serial-console" in audited(**files)) == found


@pytest.mark.parametrize(
    ("sysctl", "severity"),
    [
        ("", "info"),
        ("kernel.watchdog_thresh = 2", None),
        ("kernel.watchdog_thresh = 0", "warning"),
        ("kernel.watchdog = 0", "warning"),
        ("-kernel/watchdog_thresh=60", "info"),
    ],
)
def test_the_watchdog(audited: Audited, sysctl: str, severity: str | None) -> None:
    finding = audited(**{"etc/sysctl.d/10.conf": sysctl, "lib/modules/6.1.0/modules.order": ""}).get("late-watchdog")
    assert (finding.severity if finding else None) == severity


@pytest.mark.parametrize("name", ["kernel.softlockup_panic", "kernel.hardlockup_panic"])
def test_a_watchdog_that_ends_the_node_is_not_made_quicker(audited: Audited, name: str) -> None:
    def fix(sysctl: str) -> str:
        files = {"etc/sysctl.d/10.conf": sysctl, "lib/modules/6.1.0/modules.order": ""}
        return "\n".join(audited(**files)["late-watchdog"].fix)

    off = "kernel.softlockup_panic = 0\nkernel.hardlockup_panic = 0\n"
    assert "watchdog_thresh=2" in fix(off)
    assert "watchdog_thresh=2" not in fix(off + f"{name} = 1\n")
    assert fix("").startswith("# only where kernel.softlockup_panic and kernel.hardlockup_panic are 0")


def test_the_hierarchy_of_the_command_line_beats_that_of_the_distribution(audited: Audited) -> None:
    files = {
        "etc/os-release": "ID=ubuntu\nVERSION_ID=20.04\n",
        "lib/modules/5.4.0-1-generic/modules.order": "",
        "boot/grub/grub.cfg": "menuentry x {\n  linux /vmlinuz root=LABEL=x ro systemd.unified_cgroup_hierarchy=1\n}\n",
    }
    assert "cgroup-v1:numa-stat-walk" not in audited(**files)
    files["boot/grub/grub.cfg"] = files["boot/grub/grub.cfg"].replace("hierarchy=1", "hierarchy=0")
    finding = audited(**files)["cgroup-v1:numa-stat-walk"]
    assert ("/boot/grub/grub.cfg", 2) in [(item.file, item.line) for item in finding.evidence]


def test_a_kernel_whose_hierarchy_is_not_known(audited: Audited) -> None:
    found = audited(**{"lib/modules/5.4.0/modules.order": ""})
    assert found["kernel-path:numa-stat-walk"].severity == "info"
    assert "cannot be seen here" in found["kernel-path:numa-stat-walk"].why


def queue(interface: str, number: int, *cpus: int, direction: str = "rxtx") -> NicQueue:
    return NicQueue(interface, number, direction, 30 + number, cpus, f"{interface}-{number}")


def test_a_card_that_one_core_serves(tmp_path: Path) -> None:
    queues = (
        queue("one", 0, 3),
        queue("all", 0, 0, direction="rx"),
        queue("all", 1, 0, direction="rx"),
        queue("all", 2, 5, direction="tx"),
        queue("spread", 0, 0),
        queue("spread", 1, 1),
        queue("anywhere", 0, 0, 1, 2, 3),
    )
    with Root(tmp_path) as root:
        node = audit.look(root)
        found = {finding.id: finding.severity for finding in nic_one_core.judge(queues, 8, node)}
        assert found == {"nic-one-core:one": "warning", "nic-one-core:all": "warning"}
        assert not list(nic_one_core.judge(queues, 1, node))
        mask = tmp_path / "sys/class/net/one/queues/rx-0/rps_cpus"
        mask.parent.mkdir(parents=True)
        mask.write_text("00,000000ff\n")
        found = {finding.id: finding.severity for finding in nic_one_core.judge(queues, 8, node)}
        assert found["nic-one-core:one"] == "info"


def running(name: str, active: str, sub: str, **properties: object) -> RunningUnit:
    return RunningUnit(name, "loaded", active, sub, dict(properties))


@pytest.mark.parametrize(
    ("unit", "severity"),
    [
        (
            running("x.service", "activating", "auto-restart", NRestarts=3, Restart="always", RestartUSec=10**7),
            "critical",
        ),
        (running("x.service", "activating", "auto-restart", NRestarts=0, Restart="always"), "warning"),  # it will end
        (running("x.service", "activating", "auto-restart"), "warning"),  # systemd did not describe it in time
        (running("x.service", "active", "running", NRestarts=9, StateChangeTimestamp=1), "info"),  # long ago
        (running("x.service", "active", "running", NRestarts=2), None),
        (running("x.service", "failed", "failed", NRestarts=9), None),  # it was given up
    ],
)
def test_states_of_a_running_unit(tmp_path: Path, unit: RunningUnit, severity: str | None) -> None:
    with Root(tmp_path) as root:
        node = audit.look(root, {unit.name: unit})
        found = [finding.severity for finding in auto_restart.find(node)]
    assert found == ([severity] if severity else [])


def test_nobody_is_told_to_stop_what_the_node_needs(tmp_path: Path) -> None:
    for name, told in (("containerd.service", False), ("ssh.service", False), ("x.service", True)):
        unit = running(name, "activating", "auto-restart", NRestarts=30, Restart="always", RestartUSec=10**7)
        with Root(tmp_path) as root:
            (finding,) = auto_restart.find(audit.look(root, {name: unit}))
        assert any("systemctl" in line for line in finding.fix) is told


def test_session_scopes_that_pile_up(tmp_path: Path) -> None:
    scopes = {f"session-{n}.scope": running(f"session-{n}.scope", "active", "abandoned") for n in range(30)}
    with Root(tmp_path) as root:
        (finding,) = session_churn.find(audit.look(root, scopes))
        assert "30 session scopes exist, 30 of them abandoned" in finding.why
        assert not list(session_churn.find(audit.look(root, dict(list(scopes.items())[:5]))))


def test_our_own_unit_is_what_we_ask_of_others(audited: Audited) -> None:
    """It is started again without end, by design: the catalogue says why, and the finding is a remark."""
    unit = (Path(__file__).parents[3] / "packaging/zombiescope.service").read_text()
    found = audited(
        **{
            f"{SYSTEM}/zombiescope.service": unit.replace("/opt/zombiescope/bin/zombiescope", "/bin/x"),
            "etc/passwd": "zombiescope:x:998:998::/:/usr/sbin/nologin\n",
            "etc/group": "zombiescope:x:998:\n",
        }
    )
    ours = {name: found[name].severity for name in found if name.endswith(":zombiescope.service")}
    assert ours == {"endless-restart:zombiescope.service": "info"}


# --- restarts that systemd does not see ------------------------------------------------------------------------------

LOOP = "#!/bin/sh\n# while true; docker run\nwhile :; do\n  docker run --rm agent:1\n  sleep 10\ndone\n"


@pytest.mark.parametrize(
    ("text", "script", "severity"),
    [
        ("ExecStart=/bin/x\n", LOOP, "warning"),
        ("ExecStart=/bin/sh /bin/x --verbose\n", LOOP, "warning"),
        ("ExecStart=/bin/sh -c 'while true; do systemd-run --wait job; sleep 1; done'\n", "", "warning"),
        ("ExecStart=/usr/bin/supervisord -n\n", "", "info"),
        ("ExecStart=/bin/x\n", "#!/bin/sh\nexec docker run --rm agent:1\n", None),
        ("ExecStart=/bin/x\n", "#!/bin/sh\nwhile read line; do echo $line; done\n", None),
        ("ExecStart=/bin/x\n", "#!/bin/sh\ndocker run --rm agent:1\nwhile true; do sleep 60; done\n", None),
        ("ExecStart=/bin/x\n", "\x7fELF while true docker run\0", None),
        ("ExecStart=/bin/sh -c 'while true; do echo docker; done'\n", "", None),
    ],
    ids=["a loop", "by a shell", "one line", "supervisord", "once", "a loop without", "before the loop", "a binary",
         "only the word"],
)  # fmt: skip
def test_restarts_inside_a_unit_are_found_in_scripts(
    audited: Audited, text: str, script: str, severity: str | None
) -> None:
    found = audited(**{f"{SYSTEM}/inside.service": f"[Service]\n{text}", "bin/x": script or "#!/bin/sh\n"})
    mine = found.get("inner-restart:inside.service")
    assert (mine.severity if mine else None) == severity
    if mine is not None:
        assert "NRestarts stays 0" in mine.why
        assert any("systemctl" in line and "inside.service" in line for line in mine.fix)


def test_the_agent_of_the_founding_case_restarts_inside_its_unit(audited: Audited) -> None:
    """Its packaged unit is limited: RestartPreventExitStatus=5 keeps systemd from restarting it, and hides the loop."""
    unit = "[Service]\nExecStart=/bin/x\nRestart=on-failure\nRestartPreventExitStatus=5\nRestartSec=10s\n"
    kubelet = {"etc/kubernetes/kubelet.conf": "x\n"}
    found = audited(**{f"{SYSTEM}/ecs.service": unit, **kubelet})["inner-restart:ecs.service"]
    assert found.severity == "warning"
    assert "ecs-init creates the agent's container anew" in found.why
    assert any("systemctl" in line and "ecs.service" in line for line in found.fix)


def test_on_its_own_platform_that_is_no_warning(audited: Audited) -> None:
    unit = "[Service]\nExecStart=/bin/x\n"
    found = audited(**{f"{SYSTEM}/ecs.service": unit, "etc/ecs/ecs.config": "ECS_CLUSTER=prod\n"})
    assert found["inner-restart:ecs.service"].severity == "info"
