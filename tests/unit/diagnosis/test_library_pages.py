"""Pages of libraries are given back; what is a process's own stays."""

from __future__ import annotations

import subprocess
import sys

from zombiescope.diagnosis import library_pages

SMAPS = b"""\
7f0000000000-7f0000010000 r-xp 00001000 fe:00 77 /lib/liba.so
Rss:                  64 kB
Anonymous:             0 kB
7f0000010000-7f0000020000 r--p 00001000 fe:00 77 /lib/liba.so
Rss:                  32 kB
Anonymous:            32 kB
7f0000020000-7f0000030000 rw-p 00001000 fe:00 77 /lib/liba.so
Rss:                  32 kB
Anonymous:             0 kB
7f0000030000-7f0000040000 r--s 00001000 fe:00 78 /shared
Rss:                  32 kB
Anonymous:             0 kB
7f0000040000-7f0000050000 r--p 00000000 00:00 0
Rss:                  16 kB
Anonymous:             0 kB
7f0000050000-7f0000060000 r-xp 00000000 00:00 0 [vdso]
Rss:                   8 kB
Anonymous:             0 kB
7f0000060000-7f0000070000 r--p 00001000 fe:00 79 /a name with spaces
Rss:                   4 kB
Anonymous:             0 kB
7f0000070000-7f0000080000 r--p 00001000 fe:00 80 /no/anonymous/line
Rss:                   4 kB
7f0000080000-7f0000090000 rw-p 00001000 00:00 0 [heap]
Rss:                   4 kB
Anonymous:             0 kB
"""
PROGRAM = """
import re
import numpy as np, pyarrow as pa
from zombiescope.diagnosis import library_pages
def resident(kind):
    text = open("/proc/self/smaps_rollup").read()
    return int(re.search(rf"^{kind}: +([0-9]+) kB", text, re.M)[1]) * 1024
before, mine = resident("Rss"), resident("Anonymous")
given = library_pages.give_back()
after = resident("Rss")
assert given > 10_000_000, given
assert after < before - given / 2, (before, given, after)
assert resident("Anonymous") >= mine, "something of our own is gone"
assert np.sort([3, 1, 2]).tolist() == [1, 2, 3]
assert pa.array([1, 2]).to_pylist() == [1, 2]
"""


def test_only_what_its_file_still_has_is_given_back() -> None:
    """Relocated, writable, shared and nameless mappings are not; nor those of which it is not said."""
    assert list(library_pages.clean(SMAPS)) == [
        (0x7F0000000000, 0x7F0000010000, 64 * 1024),
        (0x7F0000060000, 0x7F0000070000, 4 * 1024),
    ]


def test_a_process_works_on_without_them() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
