"""What holds for every diagnosis: confidences mean something, and every number can be found where it was read."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.made import HZ
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.pattern_scenes import READ
from tests.helpers.recordings import START_US
from tests.helpers.scenes import Scene

from zombiescope.diagnosis.diagnose import ITS_OWN, Diagnosis, _with_our_own, diagnose
from zombiescope.diagnosis.incident import Actor, Cause, Fix, Incident, Link
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.store import columns, schema
from zombiescope.store.reader import Recording, open_recording

SCENES = [(row, which) for row in ROWS for which in ("confirms", "refutes")]


@pytest.mark.parametrize(("row", "which"), SCENES, ids=lambda value: value if isinstance(value, str) else value.pattern)
def test_confidences_and_numbers(row: Row, which: str, tmp_path: Path) -> None:
    scene = getattr(row, which)(row.base(Scene()))
    with open_recording(scene.write(tmp_path)) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
        for incident in found.incidents:
            sure = [cause.confidence for cause in incident.causes]
            assert sure == sorted(sure, reverse=True)
            assert not {cause.pattern for cause in incident.causes} & {one.pattern for one in incident.ruled_out}
            for cause in incident.causes:
                assert 0 <= cause.confidence <= 1
                assert cause.proof != "literature" or cause.confidence <= 0.6
                for link in cause.chain:
                    assert_can_be_found(recording, cause, link)
                assert_hog_was_sampled(recording, incident, cause)
            for symptom in incident.symptoms:
                assert_symptom_was_recorded(recording, symptom)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_two_windows_that_hold_an_incident_call_it_by_the_same_id(row: Row, tmp_path: Path) -> None:
    scene = row.confirms(row.base(Scene()))
    with open_recording(scene.write(tmp_path)) as recording:
        start_us, end_us = recording.start_us, recording.end_us + 1
        whole = diagnose(recording, start_us, end_us)
        for earlier_s, later_s in ((1, 0), (2.7, 0), (0, 3), (0, 1.4), (3, 3)):
            from_us, to_us = start_us + int(earlier_s * 1e6), end_us - int(later_s * 1e6)
            other = diagnose(recording, from_us, to_us)
            mine, theirs = (_named_within(found, from_us, to_us) for found in (whole, other))
            assert mine == theirs, (earlier_s, later_s)


def test_what_came_before_in_a_longer_window_does_not_rename_an_incident(tmp_path: Path) -> None:
    scene = Scene(cores=False).hog(f"{READ} show_mountinfo seq_path_root prepend_path")
    for at_s in (1.0, 3.0, 4.2):
        scene.hog(f"{READ} proc_single_show", from_s=at_s, to_s=at_s + 0.5)
    with open_recording(scene.write(tmp_path)) as recording:
        end_us = recording.end_us + 1
        longer, shorter = (diagnose(recording, START_US + at_s * 1_000_000, end_us).incidents[0] for at_s in (0, 2))
        assert longer.from_us < shorter.from_us
        assert longer.id == shorter.id


def _named_within(found: Diagnosis, from_us: int, to_us: int) -> dict[str, str]:
    """id -> pattern of the incidents that lie inside a window and have a second of quiet on both sides."""
    return {
        incident.id: incident.causes[0].pattern
        for incident in found.incidents
        if incident.causes and from_us + 1_000_000 <= incident.from_us and incident.to_us <= to_us - 1_000_000
    }


def assert_hog_was_sampled(recording: Recording, incident: Incident, cause: Cause) -> None:
    """CPU of the hog, counted anew: samples of its name, its process or its owner in the time of some symptom."""
    used = cause.hog.cores
    if used is None or cause.hog.comm is None:
        return
    tasks = recording.table("tasks").to_pydict()
    names = zip(tasks["task"], tasks["comm"], tasks["pid"], tasks["unit"], tasks["ppid"], strict=True)
    rows = list(names)
    first = next(row for row in rows if row[1] == cause.hog.comm and row[2] == cause.hog.pid)
    same = [{row[0] for row in rows if row[place] == first[place]} for place in (0, 1, 2, 3, 4)]
    samples = recording.table("samples")
    time, task = (columns.numbers(samples.column(name)) for name in ("time", "task"))
    spans = {(symptom.from_us, symptom.to_us) for symptom in incident.symptoms}
    spans |= {(incident.from_us, incident.to_us), (min(span[0] for span in spans), max(span[1] for span in spans))}
    spans |= {(from_us - 10_000_000, to_us + 1_000_000) for from_us, to_us in spans}
    counted = [
        np.count_nonzero(np.isin(task, sorted(mine)) & (time >= from_us) & (time < to_us))
        / HZ
        / (to_us - from_us)
        * 1e6
        for mine in same
        for from_us, to_us in spans
        if to_us > from_us
    ]
    assert any(abs(value - used) <= 0.02 * used + 0.002 for value in counted), (cause.hog, counted)


def assert_symptom_was_recorded(recording: Recording, symptom: Symptom) -> None:
    assert recording.start_us - 1_000_000 <= symptom.from_us <= symptom.to_us <= recording.end_us + 1_000_000
    ratio = symptom.facts.get("ratio")
    if symptom.kind == "core_saturated":
        rows = recording.table("cores").to_pydict()
        times = [at.timestamp() * 1e6 for at in rows["time"]]
        spent = [
            (rows["system_ms"][n] + rows["irq_ms"][n] + rows["softirq_ms"][n]) * 1000 / rows["interval_us"][n]
            for n in range(len(times))
            if rows["cpu"][n] == symptom.cpu and symptom.from_us < times[n] <= symptom.to_us
        ]
        assert ratio == pytest.approx(sum(min(one, 1.0) for one in spent) / len(spent), abs=0.01)
    if symptom.kind == "event":
        rows = recording.table("events").to_pydict()
        assert symptom.facts["event"] in rows["kind"]


def assert_can_be_found(recording: Recording, cause: Cause, link: Link) -> None:
    """A number is in the table that is named, or is a sum, a mean or a share of what is there."""
    if link.value is None or link.step in ("symptom", "hog", "culprit"):
        return
    assert link.source is not None, link
    if link.source == "node.json":
        assert link.value == "none" or str(link.value) in str(recording.node)
        return
    if isinstance(link.value, str):
        assert link.value in str(recording.table(link.source).to_pydict()), link
        return
    check = {"counters": _in_counters, "interrupts": _in_counters, "samples": _in_samples, "cores": _in_cores}
    assert check.get(link.source, _in_rows)(recording, float(link.value), link), (cause.pattern, link)


def _in_counters(recording: Recording, value: float, link: Link) -> bool:
    rows = recording.table(str(link.source))
    amounts = "value" if link.source == "counters" else "count"
    series, numbers = (columns.numbers(rows.column(name)) for name in ("series", amounts))
    for one in np.unique(series):
        mine = numbers[series == one]
        sums = np.concatenate([[0], np.cumsum(mine)])
        if value in (sums[:, None] - sums[None, :]) or value in mine:
            return True
    return value == 0


def _in_samples(recording: Recording, value: float, link: Link) -> bool:
    """CPU is samples by rate and time; more than all of them is invented."""
    return bool(0 <= value <= recording.table("samples").num_rows / HZ)


def _in_cores(recording: Recording, value: float, link: Link) -> bool:
    """A level that some core had, a sum over seconds of one core or of all, or a mean between what they had."""
    rows = recording.table("cores")
    cpu, interval = (columns.numbers(rows.column(name)) for name in ("cpu", "interval_us"))
    for name in rows.column_names[3:]:
        numbers = columns.numbers(rows.column(name))
        levels = numbers * 1000 / interval if name.endswith("_ms") else numbers / max(int(numbers.sum()), 1)
        if link.value_unit == "ratio" and levels.min() - 1e-4 <= value <= min(levels.max() * 3, 1) + 1e-4:
            return True
        for mine in (numbers, *(numbers[cpu == one] for one in np.unique(cpu))):
            sums = np.concatenate([[0], np.cumsum(mine)])
            if value in mine or value in (sums[:, None] - sums[None, :]):
                return True
    return False


def _in_rows(recording: Recording, value: float, link: Link) -> bool:
    rows = recording.table(str(link.source))
    known = {each for name in rows.column_names for each in rows.column(name).to_pylist() if not isinstance(each, list)}
    return value in known or value <= rows.num_rows


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording in which every table has something to say."""
    scene = Scene().vmstat(pgfault=700_000, pgscan_kswapd=90_000).census(6_000, 70_000).interrupts("TLB", 90_000)
    scene.leak("/ecs/*", 68_000, 500, 500, "ecs-agent").cgroup_stats(
        "/a", nr_periods=100, nr_throttled=90, throttled_us=9_000_000
    )
    scene.gauge("dentry", "negative", 1_000_000).event("nic_reset", "reset", nic="eth0").mode(
        2, steal=0.5, softnet_dropped=900
    )
    scene.hog("do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet")
    scene.hog("asm_exc_page_fault exc_page_fault handle_mm_fault", "python", cpu=0, pid=77)
    return scene.write(tmp_path_factory.mktemp("rich"))


@pytest.mark.parametrize("seed", range(24))
def test_a_damaged_recording_is_diagnosed_as_far_as_it_goes(seed: int, rich: Path, tmp_path: Path) -> None:
    (whole,) = rich.rglob("*.seg")
    dice, data = random.Random(seed), bytearray(whole.read_bytes())
    if seed % 3 == 0:
        del data[dice.randrange(200, len(data)) :]
    for _ in range(0 if seed % 3 == 0 else dice.choice((1, 5, 40))):
        data[dice.randrange(100, len(data))] ^= 1 << dice.randrange(8)
    log = tmp_path / "node=lab" / "log"
    log.mkdir(parents=True)
    (log / whole.name).write_bytes(data)
    (tmp_path / "node=lab" / "node.json").write_bytes((rich / "node=lab" / "node.json").read_bytes())
    with open_recording(tmp_path) as recording:
        diagnose(recording, recording.start_us, recording.end_us + 1)


@pytest.mark.parametrize("seed", range(12))
def test_any_rows_at_all_are_diagnosed(seed: int, rich: Path, tmp_path: Path) -> None:
    """Rows that no recorder writes: columns without values, ids that nothing explains, tables left out."""
    dice = random.Random(seed)
    scene = Scene().vmstat().census(5, 7).hog("do_syscall_64 vfs_read").cgroup_stats("/a", nr_periods=0)
    scene.write(tmp_path)
    with open_recording(rich) as recording:
        tables = {
            table.name: [
                _spoilt(row, dice) for row in zip(*recording.table(table.name).to_pydict().values(), strict=True)
            ]
            for table in schema.TABLES
            if dice.random() < 0.8
        }
    from tests.helpers.recordings import write_segment

    other = tmp_path / "other"
    write_segment(other, {name: [_integers(row) for row in rows] for name, rows in tables.items()})
    with open_recording(other) as recording:
        diagnose(recording, recording.start_us, recording.end_us + 1)


def _spoilt(row: tuple[object, ...], dice: random.Random) -> tuple[object, ...]:
    return tuple(value if place == 0 or dice.random() < 0.97 else None for place, value in enumerate(row))


def _integers(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(int(value.timestamp() * 1e6) if hasattr(value, "timestamp") else value for value in row)


OWN = "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + "c0ff" * 16 + ".scope"


@pytest.mark.parametrize(
    ("hog", "culprit", "is_ours"),
    [
        (OWN, None, True), ("/system.slice/dd.service", f"{OWN}/helpers", True), (f"{OWN}2", None, False),
        (None, "/kubepods.slice/kubepods-pod1.slice", False),
    ],
)  # fmt: skip
def test_a_cause_in_the_recorders_own_container_says_that_it_is_zombiescope(
    hog: str | None, culprit: str | None, is_ours: bool
) -> None:
    cause = Cause(
        "cfs-throttle", "kernel", 0.9, "a container was stopped by its own CPU limit", Actor(cgroup=hog),
        None if culprit is None else Actor(cgroup=culprit), (), (), Fix("raise it"),
    )  # fmt: skip
    given = Incident("a", 1, 2, "closed", "warning", (), (cause,))
    (told,) = _with_our_own(given, OWN).causes
    assert told.summary.endswith(ITS_OWN) is is_ours
    assert _with_our_own(given, None) == given
