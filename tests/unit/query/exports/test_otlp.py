"""OTLP profiles, decoded by OpenTelemetry's own package."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.profiles.v1development import profiles_pb2
from tests.helpers import truth
from tests.helpers.truth import imported

from zombiescope.query.exports import otlp
from zombiescope.query.selection import Filters
from zombiescope.store.reader import Recording
from zombiescope.store.sample_event import SampleEvent


def decoded(recording: Recording, filters: Filters | None = None) -> profiles_pb2.ProfilesData:
    out = BytesIO()
    otlp.write(truth.samples(recording, filters), out)
    data = profiles_pb2.ProfilesData()
    data.ParseFromString(out.getvalue())
    return data


class Reader:
    """Follows the positions of a file to what they stand for."""

    def __init__(self, data: profiles_pb2.ProfilesData) -> None:
        self.data = data
        self.tables = data.dictionary

    def profiles(self) -> list[profiles_pb2.Profile]:
        scopes = [scope for resource in self.data.resource_profiles for scope in resource.scope_profiles]
        return [profile for scope in scopes for profile in scope.profiles]

    def text(self, position: int) -> str:
        return str(self.tables.string_table[position])

    def stack(self, position: int) -> tuple[tuple[str, str], ...]:
        """(name, module), outermost first."""
        frames = []
        for place in reversed(self.tables.stack_table[position].location_indices):
            location = self.tables.location_table[place]
            module = self.tables.mapping_table[location.mapping_index].filename_strindex
            name = self.tables.function_table[location.lines[0].function_index].name_strindex
            frames.append((self.text(name), self.text(module)))
        return tuple(frames)

    def attributes(self, positions: Any) -> dict[str, Any]:
        found = {}
        for position in positions:
            attribute = self.tables.attribute_table[position]
            value = attribute.value
            found[self.text(attribute.key_strindex)] = getattr(value, value.WhichOneof("value"))
        return found


def test_every_sample_keeps_its_time_core_thread_and_stack(odd: Recording) -> None:
    reader = Reader(decoded(odd))
    found: Counter[object] = Counter()
    for profile in reader.profiles():
        for sample in profile.samples:
            known = reader.attributes(sample.attribute_indices)
            names = tuple(name for name, _ in reader.stack(sample.stack_index))
            assert len(sample.values) == len(sample.timestamps_unix_nano)
            for time_ns in sample.timestamps_unix_nano:
                assert profile.time_unix_nano <= time_ns < profile.time_unix_nano + profile.duration_nano
                who = (known.get(key) for key in ("process.pid", "thread.id", "thread.name", "cpu.logical_number"))
                found[time_ns // 1000, *who, names] += 1
    assert found == Counter((row.time_us, row.pid, row.tid, row.comm, row.cpu, row.names) for row in truth.rows(odd))


def test_tables_begin_with_nothing_and_hold_nothing_twice(odd: Recording) -> None:
    tables = decoded(odd).dictionary
    for field, table in tables.ListFields():
        first = table[0]
        if field.name == "link_table":
            assert (first.trace_id, first.span_id) == (bytes(16), bytes(8))
        else:
            assert not first if isinstance(first, str) else first.ByteSize() == 0, field.name
        values = [value if isinstance(value, str) else value.SerializeToString() for value in table]
        assert len(set(values)) == len(values), field.name
    assert len(tables.ListFields()) == 7, "every table is there"


def test_samples_of_one_stack_thread_and_core_are_one(odd: Recording) -> None:
    samples = [sample for profile in Reader(decoded(odd)).profiles() for sample in profile.samples]
    keys = [(sample.stack_index, tuple(sample.attribute_indices)) for sample in samples]
    assert len(set(keys)) == len(keys)
    assert all(list(times) == sorted(times) for times in (sample.timestamps_unix_nano for sample in samples))


def test_who_and_what_it_is_of(recording: Recording) -> None:
    data = decoded(recording)
    reader = Reader(data)
    resources = [
        {pair.key: pair.value.string_value for pair in one.resource.attributes} for one in data.resource_profiles
    ]
    assert {one["host.name"] for one in resources} == {"lab"}
    assert {one["os.build_id"] for one in resources} == {"5.4.0-1024-aws"}
    assert {"zombiescope.systemd.unit", "container.id", "k8s.pod.uid"} <= {key for one in resources for key in one}
    services = [one["service.name"] for one in resources]
    assert len(set(services)) == len(services), "one resource for each container and unit, and one for the rest"
    assert "node" in services
    assert {one.schema_url for one in data.resource_profiles} == {otlp.SCHEMA_URL}
    profile = reader.profiles()[0]
    types = [reader.text(each) for each in (profile.sample_type.type_strindex, profile.sample_type.unit_strindex)]
    assert types == ["samples", "count"]
    assert reader.text(profile.period_type.unit_strindex) == "nanoseconds"
    assert profile.period == 10_101_010
    assert len(profile.profile_id) == 16
    kinds = {
        reader.text(reader.tables.function_table[place.lines[0].function_index].name_strindex): reader.attributes(
            place.attribute_indices
        )
        for place in reader.tables.location_table[1:]
    }
    assert kinds["do_syscall_64"] == {"profile.frame.type": "kernel"}
    assert kinds["main"] == {"profile.frame.type": "native"}


def test_each_event_is_a_profile_of_its_own(tmp_path: Path) -> None:
    events = [SampleEvent("cycles"), SampleEvent("collapsed", weighted=True)]
    with imported(tmp_path, events, [0, 1, 1], [100, 200, 3]) as recording:
        reader = Reader(decoded(recording, Filters(every_event=True)))
    found = {reader.text(each.period_type.type_strindex): each for each in reader.profiles()}
    assert list(found["cycles"].samples[0].values) == [1]
    assert list(found["collapsed"].samples[0].values) == [200, 3]


def test_many_samples_are_written_in_pieces(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Reader(decoded(recording))
    monkeypatch.setattr(otlp, "SAMPLES_AT_ONCE", 10)
    pieces = Reader(decoded(recording))
    assert len(pieces.profiles()) > len(whole.profiles()), "each part has its own"

    def counts(reader: Reader) -> Counter[object]:
        found: Counter[object] = Counter()
        for profile in reader.profiles():
            for sample in profile.samples:
                found[reader.stack(sample.stack_index)] += len(sample.timestamps_unix_nano)
        return found

    assert counts(pieces) == counts(whole)
