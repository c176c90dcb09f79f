"""Every table of the schema, through everything that rewrites, cuts, copies or sends a recording.

Rows are drawn from the schema alone (tests/helpers/every_table.py), in segments that number the same things otherwise.
Whatever is done to them, each id stands for the same afterwards, and no table and no row is missing. Whoever adds a
table or a column of ids and forgets a place breaks one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.every_table import SEGMENT_S, Machine, Told, in_window, told
from tests.helpers.made import SECOND, START_US

from zombiescope.lab.wide import WidenError, widen
from zombiescope.store import compact, layout, retention, schema
from zombiescope.store.freeze import freeze
from zombiescope.store.pack import pack
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.shipping.policy import ShippingPolicy
from zombiescope.store.shipping.shipper import Shipper
from zombiescope.store.shipping.target import DirectoryTarget

SEEDS = (1, 2)
FROM_US, TO_US = START_US + 3 * SECOND, START_US + 17 * SECOND
"""A window that begins in the first segment and ends in the second."""
TABLES = pytest.mark.parametrize("table", schema.DATA, ids=lambda table: table.name)


def read(place: Path, start_us: int | None = None, end_us: int | None = None) -> Told:
    with open_recording(place) as recording:
        found = told(recording, start_us, end_us)
        assert recording.damage == []
        return found


def node_dir(place: Path) -> Path:
    return place / "node=lab"


def as_written(place: Path, _: Path) -> Path:
    return place


def as_compacted(place: Path, _: Path) -> Path:
    assert compact.compact(node_dir(place)).segments == 2
    return place


def as_packed(place: Path, out: Path) -> Path:
    with open_recording(place) as recording:
        pack(recording, recording.start_us, recording.end_us + 1, out / "all.zscope")
    return out / "all.zscope"


def as_cut(place: Path, out: Path) -> Path:
    with open_recording(place) as recording:
        pack(recording, FROM_US, TO_US, out / "cut.zscope")
    return out / "cut.zscope"


def as_packed_again(place: Path, out: Path) -> Path:
    return as_cut(as_packed(as_compacted(place, out), out), out)


def as_cut_of_parquet(place: Path, out: Path) -> Path:
    return as_cut(as_compacted(place, out), out)


def as_shipped(place: Path, out: Path) -> Path:
    (out / "state").mkdir()
    policy = ShippingPolicy(target=str(out / "there"), what="everything")
    Shipper(node_dir(place), out / "state", policy, DirectoryTarget(out / "there")).round()
    return out / "there"


def as_shipped_as_parquet(place: Path, out: Path) -> Path:
    return as_shipped(as_compacted(place, out), out)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "done",
    [as_written, as_compacted, as_packed, as_cut, as_packed_again, as_cut_of_parquet, as_shipped,
     as_shipped_as_parquet],
)  # fmt: skip
def test_every_row_says_the_same_afterwards(done: Callable[[Path, Path], Path], seed: int, tmp_path: Path) -> None:
    expected = in_window(Machine(seed).write(tmp_path / "rec"), FROM_US, TO_US)
    found = read(done(tmp_path / "rec", tmp_path), FROM_US, TO_US)
    for table in schema.DATA:
        assert expected[table.name], table.name
        assert found[table.name] == expected[table.name], table.name


@pytest.mark.parametrize("seed", SEEDS)
def test_a_whole_recording_is_whole_afterwards(seed: int, tmp_path: Path) -> None:
    expected = Machine(seed).write(tmp_path / "rec", segments=3)
    assert read(tmp_path / "rec") == expected
    compact.compact(node_dir(tmp_path / "rec"), [segment.name for segment in segments(tmp_path / "rec")[:1]])
    assert read(tmp_path / "rec") == expected, "one segment as Parquet, two as the log"
    assert read(as_packed(tmp_path / "rec", tmp_path)) == expected


def segments(place: Path) -> list[Path]:
    return sorted((node_dir(place) / "log").iterdir())


@pytest.mark.parametrize("compacted", [False, True], ids=["log", "parquet"])
def test_what_is_frozen_says_the_same_when_the_rest_is_gone(compacted: bool, tmp_path: Path) -> None:
    expected = Machine(1).write(tmp_path / "rec")
    if compacted:
        for segment in segments(tmp_path / "rec"):
            compact.compact(node_dir(tmp_path / "rec"), [segment.name])
    window = START_US + (SEGMENT_S + 2) * SECOND, START_US + 18 * SECOND
    freeze(node_dir(tmp_path / "rec"), *window, "test")
    freed = retention.enforce(node_dir(tmp_path / "rec"), 1, 1 << 40, START_US + 100 * SECOND)
    assert freed.parts + freed.segments == 1
    assert read(tmp_path / "rec", *window) == in_window(expected, *window)


# --- other words -----------------------------------------------------------------------------------------------------


def as_redacted(place: Path, out: Path) -> Path:
    with open_recording(place) as recording:
        pack(recording, recording.start_us, recording.end_us + 1, out / "strangers.zscope", redact=True)
    return out / "strangers.zscope"


def as_redacted_from_parquet(place: Path, out: Path) -> Path:
    return as_redacted(as_compacted(place, out), out)


def as_shipped_to_strangers(place: Path, out: Path) -> Path:
    as_compacted(place, out)
    (out / "state").mkdir()
    policy = ShippingPolicy(target=str(out / "there"), what="everything", redact=True)
    Shipper(node_dir(place), out / "state", policy, DirectoryTarget(out / "there")).round()
    return out / "there"


@pytest.mark.parametrize("done", [as_redacted, as_redacted_from_parquet, as_shipped_to_strangers])
def test_with_other_words_every_id_stands_for_the_same(done: Callable[[Path, Path], Path], tmp_path: Path) -> None:
    expected = Machine(1).write(tmp_path / "rec")
    found = read(done(tmp_path / "rec", tmp_path))
    words = _Words()
    for table in schema.DATA:
        assert len(found[table.name]) == len(expected[table.name]), table.name
        for before, after in zip(expected[table.name], found[table.name], strict=True):
            words.compare(table, before, after)


class _Words:
    """One word of a column is always replaced by the same; plain ones, and all that is no text, stay."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def compare(self, table: schema.Table, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
        shown = table.columns if len(before) == len(table.columns) else table.columns[1:]
        for column, one, other in zip(shown, before, after, strict=True):
            if column.ids and one is not None:
                assert other != "lost", (table.name, column.name)
                pairs = zip(one, other, strict=True) if column.kind == "ints" else [(one, other)]
                explains = next(each for each in schema.DICTIONARIES if each.explains == column.ids)
                for pair in pairs:
                    self.compare(explains, *pair)
            elif column.kind == "text" and column.meaning != "plain" and one is not None:
                key = (f"{table.name}.{column.name}", one)
                assert self._known.setdefault(key, other) == other, key
            else:
                assert one == other, (table.name, column.name)


# --- a wide node -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, dict[int, Told]]:
    """What eight cores say, of the fault of machine 0 and three copies of machine 1; and what those two said."""
    place = tmp_path_factory.mktemp("wide")
    said = {salt: Machine(7, salt, series=False).write(place / str(salt)) for salt in (0, 1)}
    with open_recording(place / "0") as fault, open_recording(place / "1") as calm:
        widen(fault, [calm], 8, place / "wide")
    with open_recording(place / "wide") as recording:
        assert recording.damage == []
        return told(recording), said


@TABLES
def test_no_table_is_lost_on_a_wide_node(table: schema.Table, wide: tuple[Told, dict[int, Told]]) -> None:
    assert wide[0][table.name]


@TABLES
def test_on_a_wide_node_ids_are_those_of_the_same_machine(
    table: schema.Table, wide: tuple[Told, dict[int, Told]]
) -> None:
    """Every word carries its machine: an id that was moved into the range of another one would show."""
    explained = [place for place, column in enumerate(table.columns) if column.ids]
    known = {salt: {row[place] for row in said[table.name] for place in explained} for salt, said in wide[1].items()}
    seen: set[int] = set()
    for row in wide[0][table.name]:
        machines = {salt for place in explained for salt in known if row[place] and row[place] in known[salt]}
        held = [row[place] for place in explained if row[place] is not None]
        if table is not schema.COUNTERS and table is not schema.INTERRUPTS:  # these are added up, by name
            assert "lost" not in held
            if any(column.ids == "task" for column in table.columns):  # which have new pids
                words = [word for each in held if isinstance(each, tuple) for word in each if isinstance(word, str)]
                machines = {int(word[-1]) for word in words if "of machine " in word}
                assert table is schema.SAMPLES or len(machines) <= 1, row
            else:
                assert len(machines) == 1 or not held, row
        seen |= machines
    if explained and table is not schema.COUNTERS:
        assert seen == {0, 1}


@TABLES
def test_on_a_wide_node_pids_and_gpus_are_their_own(table: schema.Table, wide: tuple[Told, dict[int, Told]]) -> None:
    """A word of machine 1 stands beside a number that none of machine 0 has."""
    own = {meaning: {row[table.names.index(name)] for row in wide[1][0][table.name] for name in table.meant(meaning)}
           for meaning in ("pid", "gpu")}  # fmt: skip
    if not any(own.values()) or table in (schema.LEAKS, schema.CONTAINERS):
        return
    for row in wide[0][table.name]:
        if "machine 1" in repr(row):
            for meaning, numbers in own.items():
                for name in table.meant(meaning):
                    number = row[table.names.index(name)]
                    assert number is None or number not in numbers, (name, row)


COPIES = 3


@pytest.mark.parametrize("table", [schema.PYTHON, schema.WHOLE_STACKS, schema.GPU_PROCESSES], ids=lambda one: one.name)
def test_each_copy_has_processes_of_its_own(table: schema.Table, wide: tuple[Told, dict[int, Told]]) -> None:
    pid = table.names.index("pid")
    once, copied = ({row[pid] for row in said[table.name] if row[pid]} for said in (wide[1][1], wide[0]))
    own = {row[pid] for row in wide[1][0][table.name]}
    assert len(copied - own) == COPIES * len(once)


@pytest.mark.parametrize("table", [schema.GPUS, schema.GPU_SECONDS, schema.GPU_PROCESSES], ids=lambda one: one.name)
def test_each_copy_has_gpus_of_its_own(table: schema.Table, wide: tuple[Told, dict[int, Told]]) -> None:
    gpu = table.names.index("gpu")
    assert {row[gpu] for row in wide[0][table.name] if row[gpu] is not None} == set(range(2 * (COPIES + 1)))


def test_two_copies_have_two_cards(wide: tuple[Told, dict[int, Told]]) -> None:
    gpu, uuid = (schema.GPUS.names.index(name) for name in ("gpu", "uuid"))
    tiles = [
        {row[uuid] for row in wide[0]["gpus"] if row[gpu] in (2 * each, 2 * each + 1)} for each in range(COPIES + 1)
    ]
    words = [{word for word in tile if word} for tile in tiles]
    assert all(words)
    assert len(set().union(*words)) == sum(map(len, words))


def test_what_a_card_counts_never_falls(wide: tuple[Told, dict[int, Told]]) -> None:
    rows = [dict(zip(schema.GPUS.names, row, strict=True)) for row in wide[0]["gpus"]]
    for gpu in range(2, 2 * (COPIES + 1)):  # those of the copies; the fault's are as they were recorded
        counts = [row["pcie_replays"] for row in rows if row["gpu"] == gpu and row["pcie_replays"] is not None]
        assert counts
        assert counts == sorted(counts)


def test_a_second_of_a_gpu_is_there_once(wide: tuple[Told, dict[int, Told]]) -> None:
    seconds = [row[:2] for row in wide[0]["gpu_seconds"] if row[1] >= 2]
    assert len(set(seconds)) == len(seconds)
    assert all(time % SECOND == 0 for time, _ in seconds)


def test_a_table_that_nobody_widens_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(1, series=False).write(tmp_path / "rec")
    later = schema.Table(200, "later", (schema.Column("time", "time"),))
    monkeypatch.setattr(schema, "TABLES", (*schema.TABLES, later))
    monkeypatch.setitem(schema.BY_NAME, "later", later)
    with (
        open_recording(tmp_path / "rec") as recording,
        pytest.raises(WidenError, match="the table later cannot be widened"),
    ):
        widen(recording, [recording], 4, tmp_path / "wide")


# --- the schema ------------------------------------------------------------------------------------------------------


def test_the_schema_declares_what_its_names_say() -> None:
    """A column that sounds like an id or a pid is one; the class refuses the exact names, this the rest."""
    words = {"stack": "stack", "frame": "frame", "task": "task", "series": "series", "pid": "pid", "tid": "pid",
             "ppid": "pid", "cpu": "cpu", "gpu": "gpu"}  # fmt: skip
    tables = {*schema.TABLES, *schema.ROLLUPS, *schema.SUMMARIES, *schema.RETIRED.values()}
    for table in tables - {schema.MINUTES}:  # longest_cpu of a minute is for people
        for column in table.columns:
            last = column.name.rpartition("_")[2]
            if column.kind in ("int", "ints") and last in words:
                assert column.meaning == words[last], f"{table.name}.{column.name}"


def test_a_column_of_ids_cannot_be_declared_without_saying_so() -> None:
    for name in ("stack", "frame", "task", "series", "cpu", "gpu", "pid", "tid", "ppid", "start_ticks"):
        with pytest.raises(ValueError, match=f"the column {name} must say"):
            schema.Column(name, "int")
    with pytest.raises(ValueError, match="cannot be text stack"):
        schema.Column("callers", "text", "stack")
    with pytest.raises(ValueError, match="cannot be int nonsense"):
        schema.Column("callers", "int", "nonsense")


def test_a_dictionary_stands_before_what_it_uses() -> None:
    for place, table in enumerate(schema.DICTIONARIES):
        assert table.columns[0].ids == table.explains
        later = {each.explains for each in schema.DICTIONARIES[place + 1 :]}
        assert {column.ids for column in table.id_columns[1:]} <= later
    assert {table.explains for table in schema.DICTIONARIES} == set(schema.ID_KINDS)


def test_numbers_and_names_of_tables_are_their_own() -> None:
    every = [*schema.TABLES, *schema.ROLLUPS, *schema.SUMMARIES, *schema.RETIRED.values()]
    assert len({table.number for table in every}) == len(every)
    for table in every:
        assert layout._TABLE.fullmatch(table.name)


# --- recordings made so far ------------------------------------------------------------------------------------------


def made_before(place: Path) -> None:
    """As an older version compacted: its manifests have no revision."""
    for path in node_dir(place).glob("date=*/part-*.json"):
        text = path.read_text()
        assert f'"revision":{layout.REVISION}' in text
        path.write_text(text.replace(f',"revision":{layout.REVISION}', ""))


def whole(recording: Recording) -> int:
    [part] = recording.parts
    return part.count(schema.WHOLE_STACKS)


def test_whole_stacks_that_an_older_version_compacted_are_not_read(tmp_path: Path) -> None:
    expected = Machine(1).write(tmp_path / "rec")
    as_compacted(tmp_path / "rec", tmp_path)
    made_before(tmp_path / "rec")
    found = read(tmp_path / "rec")
    assert found.pop("whole_stacks") == []
    assert expected.pop("whole_stacks")
    assert found == expected
    with open_recording(tmp_path / "rec") as recording:
        assert whole(recording) == 0
    for done in (as_packed, as_cut):
        assert read(done(tmp_path / "rec", tmp_path))["whole_stacks"] == []


def test_whole_stacks_that_are_still_in_the_log_are_right(tmp_path: Path) -> None:
    """A segment's ids are its own: what was wrong came of compaction, and of reading two segments at once."""
    expected = Machine(1).write(tmp_path / "rec")
    assert read(tmp_path / "rec")["whole_stacks"] == expected["whole_stacks"]
    as_compacted(tmp_path / "rec", tmp_path)
    assert read(tmp_path / "rec")["whole_stacks"] == expected["whole_stacks"]


def test_every_table_has_a_number_of_its_own() -> None:
    tables = [*schema.TABLES, *schema.ROLLUPS, *schema.SUMMARIES]
    assert len({table.number for table in tables}) == len(tables)
    assert not {table.number for table in tables} & schema.RETIRED.keys(), "a number that older segments use"
