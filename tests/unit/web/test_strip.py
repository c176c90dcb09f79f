"""The strip against the rows that it is made of, counted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.helpers.cli import Cli
from tests.helpers.page_server import PageServer
from tests.helpers.recordings import SECOND, Written, write_recording

from zombiescope.documents.columns import Columns, decoded
from zombiescope.documents.strip import columns
from zombiescope.model.modes import DRAWN_MODES as MODES
from zombiescope.query.strip import FULL, NOT_MEASURED, strip
from zombiescope.questions.window import WHOLE, WindowQuestion
from zombiescope.store.reader import open_recording


def test_each_column_shows_the_worst_tick_of_each_core(written: Written) -> None:
    with open_recording(written.dir) as recording:
        rows = recording.numpy("cores")
        drawn = strip(recording, recording.start_us, recording.end_us + 1, 6)
    start, span = drawn.start_us, drawn.end_us - drawn.start_us
    best: dict[tuple[int, int], tuple[tuple[float, float], int]] = {}
    for at in range(len(rows["cpu"])):
        middle = int(rows["time"][at].astype(np.int64)) - int(rows["interval_us"][at]) // 2 - start
        cell = (middle * drawn.columns // span, int(rows["cpu"][at]))
        kernel = sum(float(rows[f"{mode}_ms"][at]) for mode in ("system", "irq", "softirq"))
        busy = kernel + sum(float(rows[f"{mode}_ms"][at]) for mode in ("user", "nice", "steal"))
        best[cell] = max(best.get(cell, ((-1.0, -1.0), -1)), ((kernel, busy), at))
    assert drawn.cpus == (0, 1, 2, 3)
    assert len(best) == 6 * 4
    for (column, cpu), (_, at) in best.items():
        shown = [int(drawn.modes[mode][column * 4 + cpu]) for mode in MODES]
        true = [rows["user_ms"][at] + rows["nice_ms"][at], *(rows[f"{mode}_ms"][at] for mode in MODES[1:])]
        kernel = sum(shown[1:4])
        assert kernel == pytest.approx(sum(true[1:4]) * FULL / 1000, abs=2)
        assert sum(shown[:5]) == pytest.approx(min(1000, sum(true[:5])) * FULL / 1000, abs=4)


def test_the_lost_core_is_seen_where_the_average_hides_it(written: Written) -> None:
    assert written.incident is not None
    with open_recording(written.dir) as recording:
        drawn = strip(recording, recording.start_us, recording.end_us + 1, 12)
    column = int((written.incident.from_us + 2 * SECOND - drawn.start_us) // drawn.column_us)
    assert drawn.modes["system"][column * 4 + written.incident.cpu] > 240
    assert drawn.worst_core[column] == written.incident.cpu
    assert drawn.average_kernel[column] < 0.5


def test_what_was_not_recorded_is_not_zero(written: Written) -> None:
    with open_recording(written.dir) as recording:
        drawn = strip(recording, recording.start_us - 60 * SECOND, recording.end_us + 1, 4)
    assert (drawn.modes["user"][: 4 * 2] == NOT_MEASURED).all()
    assert np.isnan(drawn.average_busy[:2]).all()
    assert drawn.worst_core[:2].tolist() == [-1, -1]
    assert not np.isnan(drawn.average_busy[2:]).any()


def test_there_are_never_more_columns_than_ticks(server: PageServer) -> None:
    header, arrays = server.api("strip", last="10s", columns=5000).columns
    assert header["columns"] == 10
    assert {name: len(array) for name, array in arrays.items()} == {
        **dict.fromkeys(MODES, 40), "average_busy": 10, "average_kernel": 10, "worst_core": 10,
    }  # fmt: skip
    assert not (arrays["system"] == NOT_MEASURED).any()


def test_short_ticks_and_a_core_that_came_later(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = write_recording(tmp_path_factory.mktemp("short") / "rec", cpus=2, seconds=10, interval_us=100_000)
    with open_recording(made.dir) as recording:
        drawn = strip(recording, recording.start_us, recording.end_us + 1, 10)
    assert drawn.cpus == (0, 1)
    assert not (drawn.modes["user"] == NOT_MEASURED).any()


def test_columns_are_read_back_and_start_at_multiples_of_eight() -> None:
    arrays: dict[str, npt.NDArray[Any]] = {
        "a": np.arange(3, dtype=np.uint8),
        "b": np.arange(5, dtype=np.float64),
        "c": np.zeros(0, np.uint32),
        "d": np.array([-1, 7], np.int32),
    }
    data = Columns("strip", {"from": 1.5, "names": ["ä"]}, arrays).encoded()
    header, found = decoded(data)
    assert (header["schema"], header["from"], header["names"]) == ("zombiescope.strip/1", 1.5, ["ä"])
    assert [entry["type"] for entry in header["arrays"]] == ["u8", "f64", "u32", "i32"]
    for name, array in arrays.items():
        assert found[name].tolist() == array.tolist()
    assert (8 + int.from_bytes(data[4:8], "little")) % 8 == 0
    with pytest.raises(ValueError, match="are not columns"):
        decoded(b"PNG1xxxxxxxx")


def test_a_profile_without_counters_is_drawn_from_its_samples(tmp_path: Path) -> None:
    # GIVEN the profile of the founding case alone, imported
    cli = Cli(tmp_path)
    assert cli("demo", "--output", "case", "--json").code == 0
    (profile,) = (tmp_path / "case/raw").glob("perf-*")
    assert cli("import", str(profile), "alone").code == 0
    with open_recording(tmp_path / "alone") as recording:
        alone = columns(recording, WHOLE.choose(recording), 600)
    with open_recording(tmp_path / "case/recording") as recording:
        both = columns(recording, WindowQuestion(last="30s").choose(recording), 600)
    # THEN core 39 is lost for the same seconds as its counters say
    assert (alone.scalars["from_samples"], both.scalars["from_samples"]) == (True, False)
    for drawn in (alone, both):
        system = drawn.arrays["system"].reshape(drawn.scalars["columns"], -1)[:, 39]
        assert np.flatnonzero((system > 240) & (system != NOT_MEASURED)).tolist() == list(range(14, 20))
        assert np.nanmax(drawn.arrays["average_kernel"]) < 0.2
