"""A kernel image of one's own where a suite's name stands: what it is, and what is said when it dies."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.helpers.cli import Cli

from zombiescope.lab import boot_files, debian, node, programs
from zombiescope.lab import qemu as accelerator
from zombiescope.lab.boot_files import BUILT_IN, image_release
from zombiescope.lab.failure import LabError
from zombiescope.lab.image import Image
from zombiescope.lab.qemu import TCG, Hardware, Qemu

RELEASE = "4.19.81-own"
PANIC = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"
MODULAR = f"""\
Linux version {RELEASE} (root@build) #3 SMP
\x1b[1mList of all partitions:\x1b[0m
No filesystem could mount root, tried:
{PANIC}
CPU: 0 PID: 1 Comm: swapper/0 Not tainted {RELEASE} #3
Call Trace:
 dump_stack+0x5c/0x7b
 mount_block_root+0x2a3/0x2b0
 kernel_init+0x5/0x100
 ret_from_fork+0x35/0x40
Rebooting in 1 seconds..
"""


def bzimage(version: str = f"{RELEASE} (root@build) #3 SMP") -> bytes:
    """As little of one as says which it is: the boot protocol's magic, and the text its header points to."""
    data = bytearray(0x2000)
    data[0x202:0x206] = b"HdrS"
    data[0x20E:0x210] = (0x1000).to_bytes(2, "little")
    data[0x1200 : 0x1200 + len(version)] = version.encode()
    return bytes(data)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "bzImage"
    path.write_bytes(bzimage())
    return path


def machine(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of QEMU. It writes its arguments to a file."""
    program = tmp_path / "qemu"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n{script}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    found = programs.find

    def find(name: str) -> str:
        return str(program) if name.startswith("qemu") else found(name)

    monkeypatch.setattr(programs, "find", find)
    return tmp_path / "arguments"


probed: list[Path] = []


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "disk"
    made.write_bytes(b"")
    suite = Image(made, tmp_path / "vmlinuz", tmp_path / "initrd", "6.1.0")
    monkeypatch.setattr(boot_files, "image", lambda suite_: suite if suite_ == debian.USERLAND else None)
    probed.clear()

    def software(kernel: Path, _: object) -> tuple[str, ...]:
        probed.append(kernel)
        return TCG

    monkeypatch.setattr(accelerator, "accelerator", software)
    return made


def test_the_release_is_in_the_header_and_nothing_beside_the_file_is_needed(kernel: Path) -> None:
    assert image_release(kernel) == RELEASE
    assert [path.name for path in kernel.parent.iterdir()] == ["bzImage"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no kernel called"),
        (b"", "is not a kernel image"),
        (b"\x7fELF" + bytes(4096), "is not a kernel image"),
        (bzimage()[:0x210], None),
        (bzimage(""), None),
        (bzimage("\x1b[2J" * 9000), None),
    ],
    ids=["nothing", "empty", "vmlinux", "cut", "no name", "a name without end"],
)
def test_what_is_no_kernel_image_is_refused(tmp_path: Path, content: bytes | None, says: str | None) -> None:
    path = tmp_path / "given"
    if content is not None:
        path.write_bytes(content)
    if says is None:
        assert len(release := image_release(path)) < 100
        assert release.isprintable()
        return
    with pytest.raises(LabError, match=says) as error:
        image_release(path)
    assert "bookworm" in str(error.value)
    assert "bzImage" in str(error.value)


def test_a_suite_of_that_name_wins_over_a_file(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / debian.USERLAND).write_bytes(bzimage())
    monkeypatch.chdir(tmp_path)
    assert boot_files.boot_files(debian.USERLAND).release == "6.1.0"


def test_it_boots_with_the_labs_own_disk_and_without_a_ramdisk(
    kernel: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = machine(tmp_path, "exit 0", monkeypatch)
    with pytest.raises(LabError), node.boot(node.Plan("v1", str(kernel), product=False)):
        pass
    given = arguments.read_text().splitlines()
    assert given[given.index("-kernel") + 1] == str(kernel)
    assert "-initrd" not in given
    assert any(f"file={disk}," in word for word in given)
    assert probed == [tmp_path / "vmlinuz"], "whether KVM works is asked of a kernel that is known to boot"
    assert "root=/dev/vda" in given[given.index("-append") + 1]


def test_a_wide_node_has_the_cpus_that_were_asked_for_and_memory_for_them(
    kernel: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = machine(tmp_path, "exit 0", monkeypatch)
    sizes = []
    for cpus in (4, 16):
        with pytest.raises(LabError), node.boot(node.Plan("v2", str(kernel), product=False, cpus=cpus)):
            pass
        given = arguments.read_text().splitlines()
        assert given[given.index("-smp") + 1] == str(cpus)
        sizes.append(int(given[given.index("-m") + 1]))
    assert sizes == [1536, 1536 + 12 * 32]


def test_a_node_that_is_larger_than_this_machine_is_refused(
    kernel: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zombiescope.kernel.meminfo.read", lambda: {"mem_available_bytes": 1 << 30})
    with pytest.raises(LabError, match=r"a node of 16 CPUs needs 1\.9 GB, and 1\.0 GB are free"), \
            node.boot(node.Plan("v2", str(kernel), product=False, cpus=16)):  # fmt: skip
        pass


def test_a_modular_kernel_that_dies_before_the_agent_is_reported_with_its_last_lines(
    kernel: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "console").write_text(MODULAR)
    machine(tmp_path, f"cat {tmp_path}/console", monkeypatch)
    with pytest.raises(LabError) as error, node.boot(node.Plan("v1", str(kernel), product=False)):
        pass
    said = str(error.value)
    assert PANIC in said
    assert "No filesystem could mount root" in said
    assert "Call Trace" not in said
    assert "\x1b" not in said
    assert BUILT_IN in said
    assert said.count(PANIC) == 1


def test_a_machine_that_hangs_says_where(kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, "echo one; echo two; echo three; echo four; exec sleep 60", monkeypatch)
    files = boot_files.BootFiles(kernel, kernel, None, RELEASE, kernel)
    qemu = Qemu(Hardware(kernel, TCG, ports=("agent",)))
    try:
        up = node.LabNode(node.Plan(kernel=str(kernel)), files, qemu, accelerated=False)
        with pytest.raises(LabError, match=r"did not come up within 1 s .*: two \| three \| four\)") as error:
            up.wait_until_up(1.0)
        assert BUILT_IN in str(error.value)
    finally:
        qemu.close()


def test_the_command_says_what_may_stand_there(tmp_path: Path) -> None:
    done = Cli(tmp_path)("lab", "node", "--kernel", str(tmp_path / "no-such"), "--", "true")
    assert done.code != 0
    said = " ".join(done.err.split())
    assert "no kernel called" in said or "qemu-system-x86_64" in said
