"""Every command that a plan, a report, an error, a help text or a document prints works as it is printed.

Commands of ours are read by the real command line; where a recording suffices they are run on one, with nothing put in
their place. It is of a morning in Berlin, so that the times in examples lie in it. Commands of others are not run: they
have to be shell, and to start with a program that exists on Linux nodes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tests.helpers import printed
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.recordings import START_US, write_recording
from tests.helpers.scenes import Scene

from zombiescope import audit
from zombiescope.cli.main import run
from zombiescope.diagnosis.diagnose import Diagnosis

FROM_S = 220
"""10:57 in Berlin, after START_US."""
LASTS_S = 75 * 60
PACKS = ("incident", "good", "bad", "node-a", "node-b", "healthy", "x")
FOLDERS = ("rec", "healthy", "sick", "healthy-node", "night", "DIR", "out/zombiescope", "wide")

READS_A_RECORDING = {
    "cgroups", "compact", "containers", "cores", "diagnose", "diff", "events", "export", "flamegraph", "freeze",
    "heatmap", "history", "info", "pack", "stacks", "status",
}  # fmt: skip
ELSEWHERE = ("~", "/", "--live", "--follow", "--ray-job", "--job", "--incident", "--condition", "./caught",
             "zombie.zscope")  # fmt: skip
"""Words of examples that look at another place or wait for something: these lines are only read. Those of the tutorial
(./caught) are run by tests/newcomer."""

PROGRAMS = {
    "auditctl", "awk", "bpftool", "cat", "chmod", "chrt", "conntrack", "coredumpctl", "crictl", "dcgm-exporter", "df",
    "dmesg", "docker", "echo", "ethtool", "find", "findmnt", "grep", "grubby", "head", "install", "iostat", "ip",
    "ipmitool", "iptables-save", "ipvsadm", "journalctl", "kill", "kubectl", "ln", "loginctl", "ls", "lsns",
    "lsof", "lspci", "mkdir", "modinfo", "mount", "mv", "nft", "numactl", "numastat", "nvidia-smi", "perf", "printf",
    "ps", "renice", "rm", "sed", "sleep", "slabtop", "smartctl", "sort", "ss", "strace", "sudo", "sysctl", "systemctl",
    "systemd-cgtop", "taskset", "tee", "tr", "umount", "uniq", "update-grub", "wc", "xargs", "zombiescope",
}  # fmt: skip
PLACEHOLDERS = {"BAD", "COMMAND", "DIR", "FILE", "NAME", "PID", "QUIET", "TIME", "UNIT"}
"""Words that nobody can paste."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file and directory that an example names."""
    made = tmp_path_factory.mktemp("printed")
    rec = made / "rec"
    write_recording(
        rec, start_us=START_US + FROM_S * 1_000_000, seconds=LASTS_S, segment_s=900, hz=7, interval_us=10_000_000
    )
    for name in FOLDERS[1:]:
        shutil.copytree(rec, made / name)
    assert run(["pack", str(rec), "--from", "12:00", "--to", "12:10", "-o", str(made / "incident.zscope")]) == 0
    for name in PACKS[1:]:
        shutil.copy(made / "incident.zscope", made / f"{name}.zscope")
    return made


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node whose recording is ./rec, and where no recorder runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("ZOMBIESCOPE_DIR", "rec")
    return tmp_path


@pytest.fixture
def with_files(place: Path, at_home: Path) -> Path:
    """And with what examples name."""
    for name in place.iterdir():
        (at_home / name.name).symlink_to(name)
    return at_home


HERE = {"39": "1"}
"""The core that examples look at, and one that this recording has."""


def runs(arguments: list[str]) -> bool:
    """Whether a recording is all that it needs."""
    foreign = any(word.startswith(ELSEWHERE) for word in arguments[1:])
    return arguments[0] in READS_A_RECORDING and not foreign


# --- help and documents ----------------------------------------------------------------------------------------------


PRINTED = {**printed.of_help(), **printed.of_documents()}
LINES = sorted({line for line in PRINTED.values() if "make " not in line})


def test_there_are_examples() -> None:
    assert len(LINES) > 100


@pytest.mark.parametrize("line", LINES)
def test_an_example_is_shell_and_is_understood(line: str, with_files: Path) -> None:
    is_shell(line)
    assert printed.ours(line)
    for arguments in printed.ours(line):
        printed.parse(arguments)


@pytest.mark.parametrize("line", [line for line in LINES if any(map(runs, printed.ours(line)))])
def test_an_example_runs_on_a_recording(line: str, with_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in filter(runs, printed.ours(line)):
        if "-o" in arguments:
            (with_files / arguments[arguments.index("-o") + 1]).unlink(missing_ok=True)
        there = [HERE.get(word, word) for word in arguments]
        assert run(there) in (0, 3), capsys.readouterr().err


def test_documents_name_targets_that_the_makefile_has() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (printed.ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for line in PRINTED.values() for word in re.findall(r"\bmake ([a-z-]+)", line)}
    assert named
    assert named <= targets


# --- errors, missing sources, notes ----------------------------------------------------------------------------------


MESSAGES = {
    where: line
    for where, line in printed.of_source().items()
    if not where.startswith("diagnosis/patterns/") and not line.startswith("zombiescope x")
}
"""Without plans, which are run below with their values, and without those whose command is a variable."""


@pytest.mark.parametrize("where", sorted(MESSAGES))
def test_what_a_message_asks_for_is_understood(where: str) -> None:
    """A message may also just name a command (what `zombiescope pack` made): then there is one of that name."""
    for arguments in printed.ours(MESSAGES[where]):
        try:
            printed.parse(arguments)
        except typer.BadParameter:
            assert len(arguments) == 1


# --- plans -----------------------------------------------------------------------------------------------------------


def commands(found: Diagnosis) -> Iterator[str]:
    """What every plan of a diagnosis tells to type."""
    for incident in found.incidents:
        for cause in incident.causes:
            yield from (str(step) for step in cause.fix.steps if step.command is not None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_a_plan_can_be_pasted(row: Row, at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the node itself, whose recording is the one that commands read unless told otherwise."""
    for line in commands(row.confirms(row.base(Scene())).diagnose(at_home / "rec")):
        can_be_pasted(line)
        for arguments in filter(runs, printed.ours(line)):
            assert run(arguments) in (0, 3), (line, capsys.readouterr().err)


def test_the_plan_of_what_no_pattern_explains_works_wherever_the_recording_is(
    at_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It speaks of moments of this recording, which is not that of the machine where it is read."""
    monkeypatch.delenv("ZOMBIESCOPE_DIR")
    found = Scene().hog("do_syscall_64 __x64_sys_bpf an_unheard_of_function").diagnose(at_home / "elsewhere")
    (cause,) = [cause for each in found.incidents for cause in each.causes if cause.pattern == "unknown-kernel-hog"]
    lines = [str(step) for step in cause.fix.steps if step.command is not None]
    assert any("flamegraph" in line for line in lines)
    for line in lines:
        can_be_pasted(line)
        for arguments in filter(runs, printed.ours(line)):
            assert run(arguments) in (0, 3), (line, capsys.readouterr().err)


@pytest.mark.parametrize("root", sorted((printed.ROOT / "tests/fixtures/roots").iterdir()), ids=lambda root: root.name)
def test_the_fixes_of_an_audit_can_be_pasted(root: Path) -> None:
    for finding in audit.examine(root).findings:
        for line in finding.fix:
            can_be_pasted(line)


def can_be_pasted(line: str) -> None:
    is_shell(line)
    assert not re.search(r"<[A-Za-z][^>]*>", line), f"a placeholder: {line}"
    assert not PLACEHOLDERS & set(printed.words(line)), line
    for arguments in printed.ours(line):
        printed.parse(arguments)
    unknown = [program for program in printed.programs(line) if program.rpartition("/")[2] not in PROGRAMS]
    assert not unknown, line


def is_shell(line: str) -> None:
    done = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
