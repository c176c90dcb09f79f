"""A file is known by what is in it."""

from __future__ import annotations

import pytest

from zombiescope.imports.inputs import detect
from zombiescope.imports.perf_data import is_perf_data


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"PERFILE2\x68\x00\x00\x00\x00\x00\x00\x00", "perf-data"),
        (b"2ELIFREP", "perf-data"),
        (b"# ========\n# captured on    : Sun Nov 15 11:38:06 2026\n", "perf-script"),
        (
            b"apt-get 10397 [000] 12089.187050:    2004008 cpu-clock:ppp: \n\tffffffff821e81e7 f+0x7 ([k])\n\n",
            "perf-script",
        ),
        (b"apt-get \n\tffffffff821e81e7 f\n\tffffffff821e81e7 f\n\n", "perf-script"),
        (b"          perf 12 12089.187050: cycles: ffffffff821e81e7 f+0x7 ([k])\n", "perf-script"),
        (b"a;b;c 12\nmain 3\n", "collapsed"),
        (b'# {"metadata": {}}\n0;c;x;main 3\n', "collapsed"),
        (b"swapper;start_secondary;cpu_startup_entry;do_idle 1.5\n", "collapsed"),
        (b"[12612.193516] new mount options\n[12613.193516] another\n continuation\n", "kernel-log"),
        (b"[Sun Nov 15 11:46:46 2026] new mount options\n", "kernel-log"),
        (
            b"-- Boot 3f --\nNov 15 11:46:46 node1 kernel: [ 1.000000] x\nNov 15 11:46:46 node1 sshd[1]: y\n",
            "kernel-log",
        ),
        (b"2026-11-15T11:46:46+0000 node1 kernel: text\n", "kernel-log"),
        (b'{"__REALTIME_TIMESTAMP":"1","MESSAGE":"x"}\n', "kernel-log"),
        (b'{"sysstat": {\n\t"hosts": [\n', "mpstat"),
        (b"#subsys_name\thierarchy\tnum_cgroups\tenabled\n", "proc-cgroups"),
        (b"/sys/fs/cgroup/memory\n/sys/fs/cgroup/memory/a\n", "cgroup-list"),
        (b"", None),
        (b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", None),
        (b"Dear all,\nplease find attached.\nBest\n", None),
        (b'{"some": "json"}', None),
    ],
)
def test_detect(head: bytes, name: str | None) -> None:
    assert detect(head) == name
    assert (detect(head) == "perf-data") == is_perf_data(head)
