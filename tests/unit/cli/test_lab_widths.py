"""`lab widen` and `lab score --cores`: from recordings to a recording, and to a table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import typer
from tests.helpers.cli import Cli

from zombiescope.cli.failure import Failure
from zombiescope.cli.lab import healthy_hours, width_score, widths
from zombiescope.lab import scenario_run, score_widths
from zombiescope.lab.frame_replay import FrameReplay
from zombiescope.lab.wide import widen
from zombiescope.store.reader import open_recording

KEPT = Path(__file__).parents[2] / "fixtures" / "recordings"
FAULT, CALM = KEPT / "fork-storm.zscope", KEPT / "healthy-nccl-threads.zscope"


def test_widen_makes_a_recording_that_every_command_reads(cli: Cli, tmp_path: Path) -> None:
    wide = tmp_path / "wide"
    made = cli(
        "lab", "widen", str(FAULT), "--onto", str(CALM), "--cores", "24", "--at", "20", "-o", str(wide), "--json"
    )
    assert made.document["width"] == 24
    assert made.document["fault_cores"] == [20, 21]
    assert cli("info", str(wide), "--json").document["cpus"] == 24
    found = cli("diagnose", str(wide), "--json").document["incidents"]
    assert found[0]["causes"][0]["pattern"] == "fork-storm"
    assert {symptom["cpu"] for symptom in found[0]["symptoms"]} <= {20, 21, None}


def test_widen_does_not_write_into_a_directory_that_holds_something(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    done = cli("lab", "widen", str(FAULT), "--cores", "2", "-o", str(tmp_path))
    assert done.code == 1
    assert "is not empty" in done.err


def test_a_node_without_a_background_is_refused(cli: Cli, tmp_path: Path) -> None:
    done = cli("lab", "widen", str(FAULT), "--cores", "8", "-o", str(tmp_path / "wide"))
    assert done.code == 1
    assert "name a healthy recording with --onto" in done.err
    assert not (tmp_path / "wide").exists()


def test_score_of_recordings_counts_by_width_and_background(tmp_path: Path) -> None:
    page, output = tmp_path / "accuracy.md", tmp_path / "score.json"
    page.write_text("# How often\n\ntext\n\n## The scenarios\n\nall of them\n")
    assert width_score.of_recordings(KEPT, [2, 16], [CALM], "fork-storm", output, page, False, False) == 0
    found = json.loads(output.read_text())["widths"]
    lines = {(one["cores"], one["background"]): one for one in found}
    assert lines.keys() == {(2, None), (16, "healthy-nccl-threads")}
    assert all(one["right"] == one["faults"] == 1 for one in lines.values())
    assert lines[16, "healthy-nccl-threads"]["warnings"] == 0
    text = page.read_text()
    assert "| 16 | healthy-nccl-threads | 1 of 1 | - | 0 | - |" in text
    assert text.index("text") < text.index(score_widths.TITLE) < text.index("## The scenarios")


def test_the_section_of_the_page_is_replaced_and_nothing_else() -> None:
    wrong = {
        "scenario": "fork-storm", "kind": "fault", "cores": 96, "background": "healthy-x", "pass": False, "alarms": [],
        "onset_to_named_s": None,
        "expected": {"pattern": "fork-storm", "culprit": "forker"}, "found": {"pattern": None, "culprit": None},
    }  # fmt: skip
    page = "# A\n\n## At every width\n\nold\n\n## The scenarios\n\nall\n"
    once = score_widths.into(page, [wrong])
    assert "old" not in once
    assert "- fork-storm (96 cores, healthy-x): nothing; the truth is fork-storm, forker" in once
    assert once.startswith("# A\n\n## At every width\n")
    assert once.endswith("\n\n## The scenarios\n\nall\n")
    assert score_widths.into(once, [wrong]) == once


def test_jobs_leave_out_what_was_recorded_on_more_cores(tmp_path: Path) -> None:
    faults, healthy = widths.recordings_in(KEPT)
    assert faults.keys() == {"fork-storm", "smaps-reader"}
    assert "healthy-gpu-training" in healthy
    made = widths.jobs(faults, {"calm": CALM}, [2, 16])
    assert [str(job) for job in made] == [
        "fork-storm on 2 cores", "smaps-reader on 2 cores", "fork-storm on 16 cores beside calm",
        "smaps-reader on 16 cores beside calm", "calm on 16 cores",
    ]  # fmt: skip


def test_what_a_node_has_once_stands_beside_training_on_a_wide_one() -> None:
    names = ("healthy-pods", "healthy-web", "healthy-compile-farm", "healthy-gpu-training")
    places = {name: Path(name) for name in names}
    own = {Path(name): 16 if name in names[2:] else 2 for name in names}
    found = {name: widths.other_of(name, places, own).name for name in names}
    assert found == {**{name: name for name in names}, "healthy-pods": "healthy-gpu-training"}


def test_an_hour_is_looked_at_every_minute_at_each_width_that_is_wide_enough() -> None:
    (one,) = healthy_hours.hours({"healthy-nccl-threads": CALM}, [2, 16], seconds=62)
    assert (one["cores"], one["recorded_cores"], one["beside"]) == (16, 16, None)
    assert (one["looks"], one["alarms"]) == (1, [])


def test_a_kept_recording_says_when_it_hurt(tmp_path: Path) -> None:
    assert scenario_run.read_span(tmp_path / "nothing") is None
    scenario_run.write_span(tmp_path / "kept", "fork-storm", 5, 9)
    assert scenario_run.read_span(tmp_path / "kept") == (5, 9)
    (tmp_path / "kept" / scenario_run.FILE).write_text("[]")
    assert scenario_run.read_span(tmp_path / "kept") is None


@pytest.mark.parametrize("text", ["", "many", "0", "2,,3"])
def test_widths_are_numbers(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="numbers of cores"):
        width_score.widths_of(text)


def test_a_directory_without_healthy_recordings_is_refused(tmp_path: Path) -> None:
    shutil.copy(FAULT, tmp_path)
    with pytest.raises(Failure, match="name one with --onto"):
        width_score.measured(tmp_path, [16], [])
    with pytest.raises(Failure, match="lab score --save-recordings DIR"):
        width_score.measured(tmp_path / "nowhere", [16], [CALM])


def test_a_replay_shows_what_was_on_the_disk_at_each_moment(tmp_path: Path) -> None:
    with open_recording(FAULT) as fault:
        widen(fault, [], 2, tmp_path / "whole")
    (source,) = (tmp_path / "whole").iterdir()
    replay = FrameReplay(source, tmp_path / "node=live")
    middle_us = replay.ticks_us[len(replay.ticks_us) // 2]
    replay.write_until(middle_us)
    with open_recording(tmp_path / "node=live") as half, open_recording(source) as whole:
        assert half.end_us == middle_us < whole.end_us
        assert not half.damage
        assert 0 < len(half.table("samples")) < len(whole.table("samples"))
    replay.write_until(replay.ticks_us[-1])
    log = [path.read_bytes() for path in sorted((source / "log").iterdir())]
    assert [path.read_bytes() for path in sorted((tmp_path / "node=live" / "log").iterdir())] == log


def test_live_looks_name_the_fault_before_it_is_over(tmp_path: Path) -> None:
    job = widths.Job("fork-storm", FAULT, 4, "calm", CALM)
    made = widths.outcome(job, live=True)
    assert made.passed
    assert made.live
    assert made.onset_to_named_s is not None
    assert 0 < made.onset_to_named_s <= 8
