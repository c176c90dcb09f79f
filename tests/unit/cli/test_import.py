# ruff: noqa: E501 - lines that perf prints are kept whole
"""`zombiescope import` as a person or a script meets it."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.cli import Cli, Done

from zombiescope.cli import start
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.node_directory import Lock
from zombiescope.store.reader import open_recording

AT = 1_775_038_996
CHAIN = "\tffffffff821e81e7 clear_page_erms+0x7 ([kernel.kallsyms])\n\t          16e0ba main+0x7a (/bin/app)\n"
HEADER = (
    "# ========\n# captured on    : Wed Apr  1 10:23:16 2026\n# hostname : node-7\n# nrcpus online : 4\n# ========\n#\n"
)


def text(samples: int, start_s: float = 1000, comm: str = "python3", step_s: float = 0.01) -> str:
    return "".join(
        f"{comm} {7:5}/{7:<5} [{at % 4:03}] {start_s + at * step_s:.6f}: 1 cycles: \n{CHAIN}\n" for at in range(samples)
    )


def write(path: Path, content: str | bytes, modified_s: float = AT) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (modified_s, modified_s))
    return str(path)


def total(place: Path, **filters: Any) -> int:
    """As the views count; the command line itself is tested with the recorder's own recordings."""
    with open_recording(place) as recording:
        return int(Selection(recording, recording.start_us, recording.end_us + 1, Filters(**filters)).counts().sum())


def table(place: Path, name: str) -> list[dict[str, Any]]:
    with open_recording(place) as recording:
        rows: list[dict[str, Any]] = recording.table(name).to_pylist()
        return rows


def why(document: dict[str, Any]) -> dict[str, int]:
    return {each["why"]: each["count"] for each in document["skipped"]}


def test_a_text_becomes_a_recording(cli: Cli, tmp_path: Path) -> None:
    done = cli("import", write(tmp_path / "perf.txt", HEADER + text(300)), "rec", "--json", TZ="UTC")
    document = done.document
    assert document["schema"] == "zombiescope.import/1"
    assert (document["samples"], document["stacks"], document["events"], document["skipped"]) == (300, 1, 0, [])
    assert (document["node"], document["to"], document["from"]) == ("node-7", AT, pytest.approx(AT - 2.99))
    assert document["files"] == [
        {"file": str(tmp_path / "perf.txt"), "format": "perf script text", "samples": 300, "rows": 0}
    ]
    rec = tmp_path / "rec"
    assert total(rec) == total(rec, pids=frozenset({7}), comms=("python3",)) == 300
    assert total(rec, cpus=frozenset({2})) == 75
    assert sum(map(sum, cli("heatmap", "rec", "--json").document["values"])) == 300
    assert cli("flamegraph", "rec", "--json").document["total"] == 300
    info = cli("info", "rec", "--json").document
    assert (info["node"], info["samples"], info["cpus"]) == ("node-7", 300, 4)


def test_files_of_one_boot_lie_on_one_axis(cli: Cli, tmp_path: Path) -> None:
    """A loop of recordings: each file knows its own end only to the second, and they were written with a delay."""
    for number in range(6):
        begin = 1000 + number * 2
        write(tmp_path / f"stacks-{number}.txt", text(200, begin), AT + number * 2 + (0.4 if number == 3 else 0))
    document = cli("import", *(str(tmp_path / f"stacks-{number}.txt") for number in range(6)), "rec", "--json").document
    assert document["samples"] == 1200
    assert document["to"] - document["from"] == pytest.approx(11.99)
    with open_recording(tmp_path / "rec") as recording:
        assert recording.gaps() == []
    times = sorted(row["time"].timestamp() for row in table(tmp_path / "rec", "samples"))
    assert {round(after - before, 3) for before, after in pairwise(times)} == {0.01}


def test_a_folder_stands_for_its_files_and_the_name_says_nothing(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "night"
    folder.mkdir()
    write(folder / "a.svg", text(10))
    write(folder / "b.bin", gzip.compress(text(20, 1010).encode()))
    write(folder / ".hidden", text(20))
    assert cli("import", str(folder), "rec", "--json").document["samples"] == 30


def test_all_that_a_person_collected_by_hand(cli: Cli, tmp_path: Path) -> None:
    lockup = (
        "[ 1001.500000] watchdog: BUG: soft lockup - CPU#2 stuck for 23s! [kubelet:810499]\n[ 1001.600000] ordinary\n"
    )
    load = '{"cpu": "0", "usr": 1.0, "nice": 0.0, "sys": 99.0, "iowait": 0.0, "irq": 0.0, "soft": 0.0, "steal": 0.0, "guest": 0.0, "gnice": 0.0, "idle": 0.0}'
    mpstat = (
        '{"sysstat": {"hosts": [{"nodename": "node-7", "date": "2026-04-01", "statistics": ['
        f'{{"timestamp": "10:23:15", "cpu-load": [{load}]}}, {{"timestamp": "10:23:16", "cpu-load": [{load}]}}]}}]}}}}'
    )
    files = [
        write(tmp_path / "perf.txt", HEADER + text(300)),
        write(tmp_path / "dmesg", lockup, AT + 9000),
        write(tmp_path / "mpstat.json", mpstat),
        write(tmp_path / "cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t68680\t1\n"),
        write(tmp_path / "dirs", "".join(f"/sys/fs/cgroup/memory/{at}\n" for at in range(240))),
    ]
    done = cli("import", *files, "rec", "--json", TZ="UTC")
    assert (done.document["samples"], done.document["events"]) == (300, 1)
    # Seconds since boot became wall clock by the profile beside it, not by the age of the file.
    (event,) = table(tmp_path / "rec", "events")
    assert (event["kind"], event["time"].timestamp()) == ("soft_lockup", pytest.approx(AT - 1.49))
    cores = table(tmp_path / "rec", "cores")
    assert [(core["cpu"], core["system_ms"], core["interval_us"]) for core in cores] == [(0, 990, 1_000_000)] * 2
    assert "who leaks them: not recorded" in cli("cgroups", "rec").out
    memory = cli("cgroups", "rec", "--json").document["memory"]
    assert (memory["total"], memory["live"], memory["dying"]) == (68680, 240, 68440)


def test_a_second_import_is_added(cli: Cli, tmp_path: Path) -> None:
    cli("import", write(tmp_path / "a.txt", HEADER + text(10)), "rec")
    assert cli("import", write(tmp_path / "b.txt", HEADER + text(20)), "rec").code == 0
    assert total(tmp_path / "rec") == 30
    again = cli("import", str(tmp_path / "b.txt"), "rec", "--json").document
    assert [note for note in again["notes"] if "before" in note] == [
        f"{tmp_path / 'b.txt'} was imported into this recording before: what is in both counts twice"
    ]


def test_standard_input_and_collapsed_stacks(cli: Cli, tmp_path: Path) -> None:
    def piped(*arguments: str, data: bytes) -> Done:
        command = [sys.executable, "-m", "zombiescope.cli.main", "import", *arguments]
        done = subprocess.run(
            command, input=data, capture_output=True, cwd=cli.home, env=cli.environment(), check=False
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    assert piped("-", "rec", "--json", data=text(30).encode()).document["samples"] == 30
    assert piped("-", "rec.gz", "--json", data=gzip.compress(text(30).encode())).document["samples"] == 30
    assert piped("-", "folded", "--json", "--start", str(AT), data=b"a;b 70\na;c 5\n").document["samples"] == 2
    assert total(tmp_path / "folded") == 75
    with open_recording(tmp_path / "folded") as recording:
        assert recording.start_us == AT * 1_000_000


def test_a_start_that_was_given(cli: Cli, tmp_path: Path) -> None:
    name = write(tmp_path / "a.txt", text(101))
    for given in (str(AT), "2026-04-01T10:23:16", "2026-04-01T10:23:16+00:00"):
        place = f"rec-{given[:13]}{len(given)}"
        document = cli("import", name, place, "--json", "--start", given, TZ="UTC").document
        assert (document["from"], document["to"]) == (AT, AT + 1)
        assert any("--start" in note for note in document["notes"])


def test_what_cannot_be_used_is_named_and_the_rest_imported(cli: Cli, tmp_path: Path) -> None:
    whole = gzip.compress(HEADER.encode() + text(3000).encode())
    files = [
        write(tmp_path / "letter", "Dear all,\nplease find attached\nBest\n"),
        write(tmp_path / "empty", ""),
        write(tmp_path / "cut.gz", whole[: len(whole) // 2]),
        str(tmp_path / "absent"),
    ]
    done = cli("import", *files, "rec", "--json")
    assert done.code == 0
    skipped = why(done.document)
    assert f"{files[0]} is in none of the formats that can be imported; --format overrides this" in skipped
    assert f"{files[1]} is empty" in skipped
    assert f"the rest of {files[2]}: the compressed stream ends early" in skipped
    assert f"{files[3]}: No such file or directory" in skipped
    assert 0 < done.document["samples"] < 3000
    assert all(each in done.err for each in skipped)


def test_why_nothing_of_it_can_be_used(cli: Cli, tmp_path: Path) -> None:
    import zstandard

    whole = zstandard.compress(text(3000).encode())
    damaged = write(tmp_path / "damaged.zst", whole[:20] + bytes(200) + whole[220:])
    (tmp_path / "folder").mkdir()
    assert "the compressed stream is damaged" in cli("import", damaged, "rec").err
    assert "folder is a folder without files" in cli("import", "folder", "rec").err
    done = cli("import", write(tmp_path / "perf.txt", text(3)), "rec", "--symbols", "absent")
    assert (done.code, done.err.count("\n"), "absent is not a directory" in done.err) == (1, 1, True)


def test_a_full_place_for_temporary_files_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    from zombiescope.imports import inputs
    from zombiescope.imports.stream import Stream

    # A device that is always full, in place of a small file system that only root could mount.
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("wb"))  # noqa: SIM115
    stream = Stream(io.BytesIO(b"PERFILE2" + bytes(1 << 20)), lambda _: None)
    with pytest.raises(OSError, match=r"No space left on device in /.*TMPDIR"):
        inputs._aside(stream)


def test_nothing_to_import_is_a_failure_of_one_line(cli: Cli, tmp_path: Path) -> None:
    for name in (write(tmp_path / "letter", "Dear all\n"), str(tmp_path / "absent"), write(tmp_path / "empty", "")):
        done = cli("import", name, "rec")
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert name in done.err
    done = cli("import", write(tmp_path / "odd", "letters\n"), "rec", "--format", "perf-script")
    assert (done.code, done.err.count("\n"), "next:" in done.out) == (1, 1, False)
    assert "skipped: lines that are no perf script text" in done.out
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize(
    "arguments",
    [(), ("perf.txt",), ("perf.txt", "rec", "--format", "jpeg"), ("perf.txt", "rec", "--start", "noon"),
     ("perf.txt", "rec", "--node", "a/b"), ("perf.txt", "rec", "--nonsense")],
)  # fmt: skip
def test_wrong_usage(cli: Cli, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write(tmp_path / "perf.txt", text(3))
    done = cli("import", *arguments)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert start.plain_import(["import", *arguments]) is None or arguments[2:3] in (("--format",), ("--start",))


def test_where_a_recorder_runs_or_ran_nothing_is_imported(cli: Cli, tmp_path: Path) -> None:
    name = write(tmp_path / "perf.txt", text(3))
    node = tmp_path / "live" / "node=other"
    (node / "log").mkdir(parents=True)
    (node / "node.json").write_text("{}")
    lock = Lock(node, 1)
    done = cli("import", name, "live")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "is being recorded into" in done.err
    lock.release()
    assert cli("import", name, "live").code == 0
    done = cli("import", name, "live", "--node", "other")
    assert done.code == 1
    assert "made by the recorder" in done.err
    done = cli("import", name, name)
    assert (done.code, "is not a directory" in done.err) == (1, True)


def test_files_of_two_nodes_are_not_mixed(cli: Cli, tmp_path: Path) -> None:
    one = write(tmp_path / "one", HEADER + text(3))
    two = write(tmp_path / "two", HEADER.replace("node-7", "node-8") + text(3))
    done = cli("import", one, two, "rec")
    assert done.code == 1
    assert "node-7" in done.err
    assert "node-8" in done.err
    assert cli("import", one, two, "rec", "--node", "both").code == 0


def test_side_files_alone_name_their_node(cli: Cli, tmp_path: Path) -> None:
    line = "Apr  1 10:23:16 node-9 systemd[1]: ecs.service: Scheduled restart job, restart counter is at 7.\n"
    document = cli("import", write(tmp_path / "journal", line), "rec", "--json", TZ="UTC").document
    assert (document["node"], document["events"], document["samples"], document["from"]) == ("node-9", 1, 0, AT)


def test_the_summary_says_what_to_do_next(cli: Cli, tmp_path: Path) -> None:
    done = cli("import", write(tmp_path / "perf.txt", HEADER + text(300) + "odd line\n"), "rec", TZ="UTC")
    assert "rec: node node-7, 300 samples" in done.out
    assert "from 2026-04-01 10:23:13 to 2026-04-01 10:23:16 UTC" in done.out
    assert "captured on" in done.out
    assert "skipped: lines that are no perf script text" in done.out
    assert done.out.endswith("next: zombiescope diagnose rec\n")


def test_the_short_cut_does_the_same(cli: Cli, tmp_path: Path) -> None:
    name = write(tmp_path / "perf.txt", HEADER + text(30))
    command = [sys.executable, "-m", "zombiescope.cli.start", "import", name]
    environment = cli.environment(TZ="UTC")

    def short(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, cwd=cli.home, env=environment, check=False
        )
        return done.returncode, done.stdout, done.stderr

    long = cli("import", name, "a", "--json", TZ="UTC")
    assert short("b", "--json") == (long.code, long.out.replace('"a"', '"b"'), long.err)
    long = cli("import", name, name, TZ="UTC")
    assert short(name) == (long.code, long.out, long.err)
    assert short("--help")[0] == 0
    assert short("c", "--start", str(AT))[0] == 0


def test_the_short_cut_loads_nothing_heavy(cli: Cli, tmp_path: Path) -> None:
    name = write(tmp_path / "perf.txt", HEADER + text(30))
    command = [sys.executable, "-X", "importtime", "-m", "zombiescope.cli.start", "import", name, "rec"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cli.home, env=cli.environment(), check=True)
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "zombiescope" in loaded
    assert loaded.isdisjoint({"numpy", "pyarrow", "typer", "rich", "click", "pydantic"})


def test_much_becomes_parquet_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zombiescope.cli import import_run
    from zombiescope.imports.session import Options

    monkeypatch.setattr(import_run, "COMPACTED_FROM", 100)
    import_run.perform(
        [write(tmp_path / "perf.txt", HEADER + text(300))], str(tmp_path / "rec"), Options(), as_json=True
    )
    assert list((tmp_path / "rec" / "node=node-7").glob("date=*/samples-*.parquet"))
    assert total(tmp_path / "rec") == 300


def test_perf_data_and_its_text_tell_the_same(cli: Cli, tmp_path: Path, needs: Needs) -> None:
    needs.root()
    perf = needs.binary("perf", "linux-perf")
    needs.perf_events()
    load = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); cat /proc/self/stat > /dev/null; done"
    record = (perf, "record", "-q", "-a", "-g", "-F", "499", "-o", "perf.data", "--", "sh", "-c", load)
    subprocess.run(record, check=True, capture_output=True, cwd=tmp_path)
    printed = subprocess.run(
        (perf, "script", "--header", "-F", "+pid", "-i", "perf.data"), check=True, capture_output=True, cwd=tmp_path
    )
    (tmp_path / "perf.txt").write_bytes(printed.stdout)
    shutil.copystat(tmp_path / "perf.data", tmp_path / "perf.txt")
    binary = cli("import", "perf.data", "binary", "--json").document
    words = cli("import", "perf.txt", "words", "--json").document
    assert binary["node"] == words["node"]
    assert binary["perf_events"] == words["perf_events"]
    assert abs(binary["from"] - words["from"]) < 2
    here = tmp_path
    for filters in ({}, {"cpus": frozenset({0})}, {"comms": ("cat",)}, {"mode": "kernel"}, {"idle": True}):
        assert total(here / "binary", **filters) == total(here / "words", **filters)
