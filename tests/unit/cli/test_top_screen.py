"""One frame of top: it fits, and it says what is true."""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import replace
from datetime import UTC

import pytest
from rich.text import Text
from tests.helpers.recordings import SECOND, WALK, write_recording

from zombiescope.cli.top.panels import breadcrumb
from zombiescope.cli.top.screen import View, compose
from zombiescope.cli.top.strips import cell, level, strip, tall_strip
from zombiescope.query.recent import CoreTick, Recent
from zombiescope.query.worst import Worst
from zombiescope.store.log import SegmentReader

IDLE = CoreTick(0, 0, 0, 0, 0, 0)
LOST = CoreTick(0, 1, 0, 0, 0, 0)


@functools.cache
def view_of(cpus: int, passed_s: int = 26) -> View:
    """A node whose last core hangs in the kernel from second 20 to second 26."""
    with tempfile.TemporaryDirectory() as place:
        written = write_recording(place, cpus=cpus, seconds=40, hz=9, busy=0.06)
        assert written.incident is not None
        recent = Recent()
        for path in written.segments:
            with path.open("rb") as file:
                for frame in SegmentReader(file).frames():
                    if frame.wall_us <= written.start_us + passed_s * SECOND:
                        recent.update(frame)
        node = json.loads((written.node_dir / "node.json").read_text())
    bad = written.incident
    who = ("kubelet", 1201, "kubelet.service")
    worst = Worst(bad.from_us, bad.from_us + SECOND, cpus - 1, 1.0, 9, *who, 1.0, WALK)
    return View(node, recent, UTC, "live", worst=worst)


def text_of(view: View, width: int = 80, height: int = 24) -> str:
    return "\n".join(line.plain for line in compose(view, width, height))


@pytest.mark.parametrize("cpus", [1, 2, 8, 96, 192])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (250, 80), (80, 12), (40, 24), (20, 6), (80, 1)])
def test_a_frame_fills_the_terminal_and_never_more(cpus: int, width: int, height: int) -> None:
    lines = compose(view_of(cpus), width, height)
    assert len(lines) == height
    assert max(line.cell_len for line in lines) <= width


@pytest.mark.parametrize("cpus", [2, 96, 192])
def test_the_average_stands_beside_the_core_that_it_hides(cpus: int) -> None:
    shown = text_of(view_of(cpus))
    assert f"core {cpus - 1} at 100% system for the last 6 s" in shown
    assert "node average" in shown
    assert "100% sys" in shown


@pytest.mark.parametrize(("cpus", "width", "height"), [(96, 80, 24), (192, 80, 24), (96, 120, 40)])
def test_with_many_cores_all_are_seen_and_the_hottest_first(cpus: int, width: int, height: int) -> None:
    lines = [line.plain for line in compose(view_of(cpus), width, height)]
    caption = next(number for number, line in enumerate(lines) if f"{cpus} cores now" in line)
    heat = [line.split()[1] for line in lines[caption + 1 :] if len(line.split()) == 2]
    assert sum(map(len, heat)) == cpus
    assert "".join(heat).index("█") == cpus - 1
    first_strip = next(line for line in lines[caption + 1 :] if "% " in line)
    assert first_strip.split()[0] == str(cpus - 1)


def test_few_cores_each_have_their_strip_in_the_kernels_order() -> None:
    labels = [line.plain.split()[0] for line in compose(view_of(8), 80, 40) if line.plain.strip()]
    assert [label for label in labels if label.isdigit()] == [str(cpu) for cpu in range(8)]
    by_heat = [
        line.plain.split()[0] for line in compose(replace(view_of(8), by_heat=True), 80, 40) if line.plain.strip()
    ]
    assert next(label for label in by_heat if label.isdigit()) == "7"


def test_panels_say_who_what_and_what_is_missing() -> None:
    shown = text_of(view_of(2))
    assert "kubelet (pid 1201, kubelet.service)" in shown
    assert "memcg_numa_stat_show › mem_cgroup_nr_lru_pages" in shown
    assert "68,442 dying of 68,682 memory cgroups, 240 live" in shown
    assert "most in /ecs/* (" in shown
    assert "ecs.service was restarted" in shown
    assert "nic_reset" in shown
    assert "of a core · 43 MB" in shown
    assert "blind to  systemd  (no D-Bus socket: mount /run/dbus)" in shown


def test_an_event_that_repeats_is_one_line_with_its_count() -> None:
    shown = text_of(view_of(2))
    assert shown.count("ecs.service was restarted") == 1
    assert "3× ecs.service was restarted" in shown


def test_nothing_measured_is_said_and_is_not_health() -> None:
    empty = View({"node": "lab", "missing": None}, Recent(), UTC, "live")
    shown = text_of(empty)
    assert "waiting for the first tick" in shown
    assert "memory cgroups are not counted" in shown
    assert "no core is lost" not in shown


def test_a_quiet_node_is_said_to_be_quiet() -> None:
    assert "no core is starved now" in text_of(view_of(2, 15))


def test_help_replaces_the_panels() -> None:
    shown = text_of(replace(view_of(2), help=True))
    assert "pause, and continue" in shown
    assert "blind to" not in shown


def test_the_height_of_a_cell_is_busy_time_and_only_saturation_is_full() -> None:
    heights = [cell(CoreTick(busy, 0, 0, 0, 0, 0))[0] for busy in (0, 0.1, 0.5, 0.94, 0.95, 1)]
    assert heights == ["▁", "▁", "▄", "▇", "█", "█"]
    assert cell(None)[0] not in heights


def test_the_colour_of_a_cell_is_the_mode_that_took_the_time() -> None:
    styles = [
        cell(CoreTick(**{"user": 0, "system": 0, "irq": 0, "softirq": 0, "steal": 0, "iowait": 0} | {mode: 1.0}))[1]
        for mode in ("user", "system", "irq", "softirq", "steal")
    ]
    assert len(set(styles)) == 5
    assert cell(IDLE)[1] != cell(CoreTick(0, 0, 0, 0, 0, 1))[1]


def test_a_strip_is_blank_before_the_recording_began() -> None:
    assert strip([IDLE, LOST], 5).plain == "   ▁█"
    assert strip([IDLE, None, LOST], 2).plain == "╌█"
    assert strip([LOST], 0).plain == ""


def test_a_tall_strip_stands_user_on_kernel_time() -> None:
    half = CoreTick(0.5, 0.5, 0, 0, 0, 0)
    rows = tall_strip([IDLE, half, None, LOST], 5, 4)
    assert [row.plain for row in rows] == ["  █ █", "  █ █", "  █ █", " ▁█╌█"]
    kernel, user = rows[3].spans[1].style, rows[0].spans[-2].style
    assert kernel != user


def test_levels_have_one_width() -> None:
    assert {level(core).cell_len for core in (None, IDLE, LOST, CoreTick(0, 0, 0, 0, 1, 0))} == {13}


def test_a_path_is_cut_at_its_outer_end() -> None:
    assert breadcrumb(WALK, 200).plain == " › ".join(WALK)
    cut = breadcrumb(WALK, 60).plain
    assert cut.startswith("… › ")
    assert cut.endswith("memcg_numa_stat_show › mem_cgroup_nr_lru_pages")
    assert len(cut) <= 60
    assert isinstance(breadcrumb((), 60), Text)
