"""User symbols of real processes: living, replaced, confined to roots of their own, unreadable."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from zombiescope._native import elf_build_id
from zombiescope.symbols import maps, resolver
from zombiescope.symbols import process as procmap
from zombiescope.symbols.elf import ElfCache
from zombiescope.symbols.maps import Mappings
from zombiescope.symbols.process import CHANGED_AFTER_S, FIRST_WAIT_S, LiveProcess, ProcessMaps
from zombiescope.symbols.resolver import EXITED, UNREADABLE, Frame, UserSymbols

pytestmark = pytest.mark.kernel


class Needs(Protocol):
    def root(self) -> None: ...


# Tells where its functions are, then waits for a line; the line may name a program to execute in its place.
PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) int NAME(int x) { __asm__ volatile(""); return x + 1; }
#ifdef WITH_LIBRARY
int library_function(int);
#else
static int library_function(int x) { return x; }
#endif
int main(void) {
    char line[4096];
    printf("%lu %lu\\n", (unsigned long) NAME, (unsigned long) library_function);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\\n")] = 0;
        execl(line, line, (char *) 0);
    }
    return 0;
}
"""
LIBRARY = "int library_function(int x) { return x * 2; }"

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    def compiled(source: str, *options: str, name: str = "agent", function: str = "work") -> Path:
        out = tmp_path_factory.mktemp("built") / name
        command = ["gcc", "-O1", "-Wl,--build-id=sha1", "-o", str(out), "-x", "c", "-", "-x", "none"]
        subprocess.run([*command, *options, f"-DNAME={function}"], input=source, text=True, check=True)
        return out

    return compiled


class Child:
    """A running PROGRAM and the addresses that it printed."""

    def __init__(self, command: list[str | Path]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.pid = self.process.pid
        self.read_addresses()

    def read_addresses(self) -> None:
        assert self.process.stdout is not None
        self.function, self.library_function = (int(word) for word in self.process.stdout.readline().split())

    def execute(self, program: Path) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{program}\n")
        self.process.stdin.flush()
        self.read_addresses()

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


Start = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[Start]:
    children: list[Child] = []

    def started(*command: str | Path) -> Child:
        children.append(Child(list(command)))
        return children[-1]

    yield started
    for child in children:
        child.stop()


def no_query(*_: object) -> None:
    raise OSError(errno.ENOTTY, "no such request")


@pytest.fixture(params=["query", "read"])
def symbols(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[UserSymbols]:
    """With the kernel's answer for one address, and with the whole of maps as before kernel 6.11."""
    monkeypatch.setattr(ProcessMaps, "queries", True)
    if request.param == "read":
        monkeypatch.setattr(procmap, "query_map", no_query)
    made = UserSymbols()
    yield made
    made.close()


def refused(*_: object) -> int:
    raise PermissionError


@pytest.fixture
def without_map_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a recorder is meant to run: CAP_SYS_ADMIN is not among its capabilities."""
    monkeypatch.setattr(LiveProcess, "_open_map_file", refused)


@pytest.fixture
def by_path_only(without_map_files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the libraries of a process: /proc/PID/exe does not lead to them."""
    monkeypatch.setattr(LiveProcess, "_open_exe", refused)


@pytest.mark.parametrize("options", [("-pie", "-fPIE"), ("-no-pie", "-fno-pie"), ("-static",)])
def test_living_process(build: Build, start: Start, symbols: UserSymbols, options: tuple[str, ...]) -> None:
    child = start(build(PROGRAM, *options))
    frames = symbols.resolve(child.pid, [child.function, child.function + 1, 8])
    assert frames == [Frame("work", "agent", "user")] * 2 + [None]
    assert not symbols.denied
    assert not symbols.failures


def test_library_of_a_stripped_program(build: Build, start: Start, symbols: UserSymbols) -> None:
    library = build(LIBRARY, "-shared", "-fPIC", name="libwork.so")
    program = build(PROGRAM, "-DWITH_LIBRARY", "-s", str(library), f"-Wl,-rpath,{library.parent}")
    child = start(program)
    mapping = next(mapping for mapping in mappings_of(child) if mapping.module == "agent")
    offset = child.function - mapping.start + mapping.pgoff
    frames = symbols.resolve_at(child.pid, [child.function, child.library_function])
    assert frames == [
        Frame(f"agent+0x{offset:x}", "agent", "user"),
        Frame("library_function", "libwork.so", "user"),
    ]


def test_many_processes_of_one_program_cost_one_table(build: Build, start: Start, symbols: UserSymbols) -> None:
    program = build(PROGRAM)
    for _ in range(5):
        child = start(program)
        assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]
    assert symbols.cache.misses == 1


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mappings_of(child: Child) -> Mappings:
    directory = os.open(f"/proc/{child.pid}", os.O_PATH)
    try:
        return maps.read(directory)
    finally:
        os.close(directory)


def test_descriptors_are_bounded_and_let_go(build: Build, start: Start) -> None:
    before = descriptors()
    symbols = UserSymbols(ElfCache(keep_names_bytes=0), max_processes=3)
    children = [start(build(PROGRAM)) for _ in range(6)]
    pipes = 2 * len(children)
    for child in children:
        assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]
    assert descriptors() == before + pipes + 3
    symbols.close()
    assert descriptors() == before + pipes


def test_exec_is_noticed_without_being_told(build: Build, start: Start, symbols: UserSymbols) -> None:
    # GIVEN two programs that are loaded at the same place
    old = build(PROGRAM, "-no-pie", "-fno-pie")
    new = build(PROGRAM, "-no-pie", "-fno-pie", name="next", function="other_work")
    child = start(old)
    assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]
    # WHEN the process executes the second
    child.execute(new)
    # THEN the same pid has the second's names
    assert symbols.resolve(child.pid, [child.function]) == [Frame("other_work", "next", "user")]


def test_library_mapped_later_is_found(build: Build, symbols: UserSymbols) -> None:
    # GIVEN our own mappings, looked at before a library was loaded
    ctypes = pytest.importorskip("ctypes")
    assert symbols.resolve(os.getpid(), [8]) == [None]
    library = ctypes.CDLL(build(LIBRARY, "-shared", "-fPIC", name="liblate.so"))
    address = ctypes.cast(library.library_function, ctypes.c_void_p).value
    # WHEN a record said that something was mapped
    time.sleep(CHANGED_AFTER_S)
    symbols.changed(os.getpid())
    # THEN it is there
    assert symbols.resolve(os.getpid(), [address]) == [Frame("library_function", "liblate.so", "user")]


def test_maps_are_not_read_again_for_every_address_that_is_nowhere(
    build: Build, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a kernel without PROCMAP_QUERY
    monkeypatch.setattr(ProcessMaps, "queries", False)
    process = LiveProcess(start(build(PROGRAM)).pid)
    now_s = time.monotonic()
    monkeypatch.setattr("zombiescope.symbols.process.time.monotonic", lambda: now_s)
    reads: list[float] = []
    really_read = maps.read

    def counted(directory: int) -> Mappings:
        reads.append(now_s)
        return really_read(directory)

    monkeypatch.setattr(maps, "read", counted)
    counts = []
    # WHEN an address that is nowhere is looked for once a second
    for _ in range(20):
        assert process.maps.locate([8]) == [None]
        counts.append(len(reads))
        now_s += FIRST_WAIT_S
    # THEN the waits between reads double
    assert [counts.index(n) for n in sorted(set(counts))] == [0, 1, 3, 7, 15]
    process.close()


def test_query_and_text_tell_the_same(build: Build, start: Start) -> None:
    child = start(build(PROGRAM))
    process = LiveProcess(child.pid)
    listed = [mapping for mapping in mappings_of(child) if mapping.path != "[vsyscall]"]
    located = process.maps.locate([mapping.end - 1 for mapping in listed])
    process.close()
    assert located == listed


def test_process_that_exits_is_said_to_be_gone(build: Build, start: Start, symbols: UserSymbols) -> None:
    child = start(build(PROGRAM))
    symbols.resolve(child.pid, [child.function])
    # WHEN it has exited but was not waited for, and when it is gone for good
    child.process.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert symbols.resolve(child.pid, [child.function]) == [EXITED]
    child.stop()
    assert symbols.resolve(child.pid, [child.function]) == [EXITED]


def test_names_after_exit_from_mappings_read_before(build: Build, start: Start, symbols: UserSymbols) -> None:
    child = start(build(PROGRAM))
    mappings = mappings_of(child)
    child.stop()
    assert symbols.resolve(child.pid, [child.function], mappings) == [Frame("work", "agent", "user")]


@pytest.mark.usefixtures("without_map_files")
def test_deleted_program(build: Build, start: Start, symbols: UserSymbols) -> None:
    program = build(PROGRAM)
    child = start(program)
    # WHEN it is removed and another is put in its place, as an update does
    program.unlink()
    shutil.copy(build(PROGRAM, function="impostor"), program)
    # THEN the names are those of the file that runs
    assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]


def test_deleted_library(needs: Needs, build: Build, start: Start, symbols: UserSymbols) -> None:
    needs.root()
    library = build(LIBRARY, "-shared", "-fPIC", name="libwork.so")
    child = start(build(PROGRAM, "-DWITH_LIBRARY", str(library), f"-Wl,-rpath,{library.parent}"))
    library.unlink()
    frames = symbols.resolve(child.pid, [child.library_function])
    assert frames == [Frame("library_function", "libwork.so", "user")]


@pytest.mark.usefixtures("by_path_only")
def test_own_mount_namespace(needs: Needs, build: Build, start: Start, symbols: UserSymbols, tmp_path: Path) -> None:
    needs.root()
    # GIVEN a path that is one program for us and another in the namespace of the process
    shutil.copy(build(PROGRAM, function="impostor"), tmp_path / "agent")
    genuine = build(PROGRAM)
    script = 'mount -t tmpfs none "$1" && cp "$2" "$1/agent" && exec "$1/agent"'
    child = start("unshare", "-m", "sh", "-c", script, "sh", tmp_path, genuine)
    # THEN the process's own is used
    assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]
    assert not symbols.notes


@pytest.mark.parametrize("namespace", [[], ["unshare", "-m"]])
@pytest.mark.usefixtures("by_path_only")
def test_own_root(
    needs: Needs, build: Build, start: Start, symbols: UserSymbols, tmp_path: Path, namespace: list[str]
) -> None:
    needs.root()
    # GIVEN a process in a chroot, whose paths maps prints from outside it
    (tmp_path / "opt").mkdir()
    shutil.copy(build(PROGRAM, "-static"), tmp_path / "opt/agent")
    child = start(*namespace, "chroot", tmp_path, "/opt/agent")
    assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]


@pytest.mark.usefixtures("by_path_only")
def test_overlay_root(needs: Needs, build: Build, start: Start, symbols: UserSymbols, tmp_path: Path) -> None:
    needs.root()
    # GIVEN a program in the lower layer of an overlay, as in every container
    for name in ("disk", "merged"):
        (tmp_path / name).mkdir()
    script = """
    mount -t tmpfs none "$1/disk" && mkdir "$1/disk/lower" "$1/disk/upper" "$1/disk/work" &&
    cp "$2" "$1/disk/lower/agent" &&
    cd "$1/disk" && mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none "$1/merged" &&
    exec chroot "$1/merged" /agent
    """
    child = start("unshare", "-m", "sh", "-c", script, "sh", tmp_path, build(PROGRAM, "-static"))
    assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]


@pytest.mark.usefixtures("without_map_files")
@pytest.mark.parametrize(
    ("dev", "inode", "believed", "noted"),
    [
        (lambda dev: dev, 0, True, None),
        (lambda _: os.makedev(0, 77), 0, True, "accepted by path and inode"),
        (lambda _: os.makedev(0, 77), 1, True, "accepted by path"),
        (lambda dev: dev, 1, False, None),
        (lambda _: os.makedev(259, 77), 0, False, None),
        (lambda _: os.makedev(259, 77), 1, False, None),
    ],
)
def test_numbers_that_do_not_agree(
    build: Build, start: Start, symbols: UserSymbols,
    dev: Callable[[int], int], inode: int, believed: bool, noted: str | None,
) -> None:  # fmt: skip
    # GIVEN a process whose maps print other numbers than stat() gives, as on btrfs and older overlayfs
    child = start(build(PROGRAM))
    mapping = mappings_of(child).find(child.function)
    assert mapping is not None
    other = replace(mapping, dev=dev(mapping.dev), inode=mapping.inode + inode)
    if not os.major(mapping.dev) and other.dev != mapping.dev:
        pytest.skip("programs are built on a file system without a number of its own")
    # WHEN it is resolved
    frames = symbols.resolve(child.pid, [child.function], [other])
    # THEN another inode on the same device is another file, and so is any on another numbered one; the rest is noted
    assert (frames == [Frame("work", "agent", "user")]) is believed
    assert symbols.notes == ({noted: 1} if noted else {})
    assert ("replaced" in symbols.failures) is not believed


@pytest.mark.usefixtures("without_map_files")
def test_a_file_that_not_everybody_may_read_is_not_taken_by_its_path(
    build: Build, start: Start, symbols: UserSymbols
) -> None:
    """Whoever has a mount namespace of his own can put any file of root's under the path of his program."""
    program = build(PROGRAM)
    child = start(program)
    mapping = mappings_of(child).find(child.function)
    assert mapping is not None
    program.chmod(0o711)
    other = replace(mapping, dev=os.makedev(0, 77))
    assert symbols.resolve(child.pid, [child.function], [other]) != [Frame("work", "agent", "user")]
    assert symbols.notes == {}


def as_user(uid: int, act: Callable[[], object]) -> Any:
    """What `act` returns when an ordinary user calls it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.write(writer, json.dumps(act()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def test_without_privileges_it_is_counted_and_not_raised(needs: Needs, build: Build, start: Start) -> None:
    needs.root()
    child = start(build(PROGRAM))

    def resolve() -> object:
        symbols = UserSymbols()
        return symbols.resolve(child.pid, [child.function]), symbols.denied

    frames, denied = as_user(65534, resolve)
    assert frames == [list(UNREADABLE)]
    assert denied == {"/proc/PID/maps": 1}


def test_maps_readable_but_root_closed(needs: Needs, build: Build, start: Start) -> None:
    # GIVEN mappings (CAP_PERFMON shows them) but neither root nor exe, which want CAP_SYS_PTRACE
    needs.root()
    program = build(PROGRAM)
    for folder in (program.parent, program.parent.parent, program.parent.parent.parent):
        folder.chmod(0o755)
    child = start(program)
    mappings = mappings_of(child)

    def resolve() -> object:
        symbols = UserSymbols()
        return symbols.resolve(child.pid, [child.function], mappings), symbols.denied

    # WHEN an ordinary user resolves them
    frames, denied = as_user(65534, resolve)

    # THEN the file of the same device and inode under our own root is used, and the refusals are counted
    assert frames == [["work", "agent", "user"]]
    assert denied["/proc/PID/root"] == 1


def test_processes_with_many_mappings_do_not_add_up(
    build: Build, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN room for the mappings of two or three processes, each having more than a few
    monkeypatch.setattr(ProcessMaps, "queries", False)
    monkeypatch.setattr(resolver, "FEW_MAPPINGS", 1)
    monkeypatch.setattr(resolver, "MAX_MAPPINGS", 12)
    symbols = UserSymbols()
    # WHEN six of them are resolved
    for _ in range(6):
        child = start(build(PROGRAM))
        assert symbols.resolve(child.pid, [child.function]) == [Frame("work", "agent", "user")]
    # THEN the oldest were dropped
    assert sum(len(process.maps) for process in symbols._processes.values()) <= 12
    symbols.close()


def test_names_of_the_dead_through_the_living(build: Build, start: Start) -> None:
    # GIVEN two processes of one program, its names left in a file that only they can reach
    program = build(PROGRAM)
    living, dead = start(program), start(program)
    symbols = UserSymbols(ElfCache(keep_names_bytes=0))
    main = living.function
    assert symbols.resolve(living.pid, [main]) == [Frame("work", "agent", "user")]
    mappings = Mappings(
        replace(mapping, inode=0, dev=0, build_id=elf_build_id(program.read_bytes()))
        for mapping in mappings_of(dead)
        if mapping.module == "agent"
    )
    symbols._names.clear()
    program.unlink()
    # WHEN one of them is gone
    dead.stop()
    # THEN the other leads to its names
    assert symbols.resolve(dead.pid, [dead.function], mappings) == [Frame("work", "agent", "user")]
    symbols.close()
