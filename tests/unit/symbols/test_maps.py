"""/proc/PID/maps as text, and mappings as records tell them."""

from __future__ import annotations

import os

import pytest

from zombiescope.symbols.maps import (
    MAX_MAPPINGS,
    Mapping,
    MappingKind,
    Mappings,
    kind_of,
    parse,
    read,
    recorded,
)

TEXT = rb"""55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 131 /usr/bin/agent
55d0c0a02000-55d0c0a06000 r-xp 00002000 fe:01 131                        /usr/bin/agent
55d0c0a06000-55d0c0a07000 rw-p 00006000 fe:01 131 /usr/bin/agent
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000100000-7f0000200000 r-xp 00010000 103:00a 9007199254740993         /opt/my lib\012x.so (deleted)
7f0000300000-7f0000301000 r-xp 00000000 00:00 0                          [anon:v8]
7f0000400000-7f0000401000 r-xs 00000000 00:01 55                         /memfd:code (deleted)
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


def file_at(start: int, end: int, path: str = "/lib/a.so", pgoff: int = 0) -> Mapping:
    return Mapping(start, end, pgoff, 1, 1, path, False, "file")


def test_only_executable_mappings_are_kept_in_order() -> None:
    mappings = list(parse(TEXT))
    assert [mapping.kind for mapping in mappings] == ["file", "anon", "file", "jit", "memfd", "vdso", "vdso"]
    assert mappings[0] == Mapping(
        0x55D0C0A02000, 0x55D0C0A06000, 0x2000, 131, os.makedev(0xFE, 1), "/usr/bin/agent", False, "file"
    )


def test_escapes_wide_devices_and_deletion_are_understood() -> None:
    library = list(parse(TEXT))[2]
    assert (library.path, library.deleted) == ("/opt/my lib\nx.so", True)
    assert (library.dev, library.inode) == (os.makedev(0x103, 0xA), 9007199254740993)


def test_names_that_are_no_text_survive() -> None:
    (mapping,) = parse(b"1000-2000 r-xp 00000000 fe:01 7 /tmp/\xff\xfe.so\n")
    assert os.fsencode(mapping.path) == b"/tmp/\xff\xfe.so"


def test_address_is_found_from_its_first_to_its_last_byte() -> None:
    mappings = parse(TEXT)
    first = next(iter(mappings))
    assert mappings.find(first.start) is first
    assert mappings.find(first.end - 1) is first
    assert mappings.find(first.end) is None
    assert mappings.find(0) is None
    assert mappings.find((1 << 64) - 1) is None
    assert Mappings().find(1) is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/usr/lib/libc.so.6", "file"),
        ("/memfd:x", "memfd"),
        ("/dev/zero", "anon"),
        ("/SYSV00000000", "anon"),
        ("//anon", "anon"),
        ("", "anon"),
        ("[heap]", "anon"),
        ("[anon:jit]", "jit"),
        ("[stack]", "stack"),
        ("[vdso]", "vdso"),
        ("[uprobes]", "vdso"),
    ],
)
def test_kinds(path: str, kind: MappingKind) -> None:
    assert kind_of(path) == kind


def test_later_record_covers_what_it_overlaps() -> None:
    # GIVEN a file mapped over the middle of another, as the loader does with reserved ranges
    below = file_at(0x1000, 0x9000, "/lib/below.so", pgoff=0x100)
    top = file_at(0x3000, 0x5000, "/lib/top.so")

    # WHEN both are laid in the order of their records
    mappings = Mappings([below, top])

    # THEN what is left of the first keeps its offsets
    assert [(mapping.start, mapping.end, mapping.pgoff) for mapping in mappings] == [
        (0x1000, 0x3000, 0x100),
        (0x3000, 0x5000, 0),
        (0x5000, 0x9000, 0x4100),
    ]


def test_record_that_covers_others_replaces_them() -> None:
    old = [file_at(0x1000, 0x2000), file_at(0x2000, 0x3000), file_at(0x8000, 0x9000)]
    assert [mapping.start for mapping in Mappings([*old, file_at(0x0800, 0x4000)])] == [0x0800, 0x8000]
    assert list(Mappings([file_at(0x1000, 0x1000)])) == []


def test_record_tells_what_maps_would() -> None:
    mapping = recorded(0x1000, 0x2000, 0x3000, b"/usr/bin/agent (deleted)", build_id=b"\x01" * 20)
    assert (mapping.end, mapping.path, mapping.deleted) == (0x3000, "/usr/bin/agent", True)
    assert (mapping.kind, mapping.build_id) == ("file", b"\x01" * 20)
    assert recorded(0x1000, 1, 0x1000, b"//anon", build_id=b"").build_id is None


def test_number_of_mappings_is_bounded() -> None:
    lines = b"".join(b"%x-%x r-xp 00000000 fe:01 7 /a.so\n" % (i, i + 1) for i in range(MAX_MAPPINGS + 10))
    assert len(parse(lines)) == MAX_MAPPINGS
    assert len(Mappings(file_at(i, i + 1) for i in range(MAX_MAPPINGS + 10))) == MAX_MAPPINGS


def test_our_own_mappings_hold_our_own_code() -> None:
    fd = os.open("/proc/self", os.O_PATH)
    try:
        mappings = read(fd)
    finally:
        os.close(fd)
    assert any(mapping.path == "[vdso]" for mapping in mappings)
    assert any(mapping.path.startswith("/") and mapping.inode for mapping in mappings)


def test_kernel_thread_has_no_mappings() -> None:
    fd = os.open("/proc/2", os.O_PATH)
    try:
        with pytest.raises((ProcessLookupError, PermissionError)):
            read(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "line",
    [b"x-y r-xp 0 0:0 0", b"1000-2000 r-xp", b"1000 r-xp 0 08:01 7 /a", b"\x141000-2000 r-xp 0 08:01 7 /a", b"a b cxd",
     b"1000-2000 r-xp 0 08:01 " + b"9" * 5000 + b" /a", b"1" * 17 + b"-2 r-xp 0 08:01 7 /a"],
)  # fmt: skip
def test_a_line_that_the_kernel_does_not_print_is_passed_over(line: bytes) -> None:
    good = b"1000-2000 r-xp 00000000 08:01 7   /bin/a b\n"
    assert [mapping.path for mapping in parse(line + b"\n" + good)] == ["/bin/a b"]
