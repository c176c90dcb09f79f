"""Recordings that are held open: what is new is seen, what is known is kept, and the page's own files are held."""

from __future__ import annotations

import fcntl
import signal
import threading
from pathlib import Path

import pytest
from tests.helpers.page_server import PageServer, page_server
from tests.helpers.recordings import SECOND, Written, write_recording

from zombiescope.query import stacks
from zombiescope.query.selection import Selection
from zombiescope.store import incident_file
from zombiescope.store.compact import compact
from zombiescope.store.reader import Recording, open_recording
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.page import Page
from zombiescope.web.recordings import Place, Recordings
from zombiescope.web.refusal import Refusal


def goes_on(written: Written, seq: int, seconds: int = 8) -> Written:
    """Another segment of the same recorder, directly after what there is."""
    return write_recording(
        written.dir, start_us=written.end_us, seconds=seconds, first_seq=seq, closed=False,
        recorder_started_us=written.start_us,
    )  # fmt: skip


@pytest.fixture
def growing(tmp_path: Path) -> Written:
    return write_recording(tmp_path / "flight", seconds=60, closed=False)


def counted(recording: Recording, known: stacks.Stacks | None = None) -> dict[tuple[str, ...], int]:
    """How often each stack was sampled, by the names of its functions."""
    selection = Selection(recording, recording.start_us, recording.end_us + 1, known=known)
    counts, found = selection.counts(), selection.stacks
    return {tuple(each.name for each in found.of(row)): int(counts[row]) for row in counts.nonzero()[0].tolist()}


def test_a_look_again_keeps_what_did_not_change(growing: Written) -> None:
    # GIVEN a recording that was read, and a recorder that went on
    with open_recording(growing.dir) as recording:
        before = counted(recording)
        parts = {part.name: part for part in recording.segments}
        goes_on(growing, seq=3)
        # WHEN it is looked at again
        recording.refresh()
        # THEN closed segments are the same objects with the same ids, and everything is counted as anew
        closed = [part for part in recording.segments if parts.get(part.name) is part]
        assert len(closed) == len(parts) - 1
        with open_recording(growing.dir) as anew:
            assert counted(recording) == counted(anew)
        assert sum(counted(recording).values()) > sum(before.values())


def test_a_look_again_over_a_compaction(growing: Written) -> None:
    with open_recording(growing.dir) as recording:
        before = counted(recording)
        compact(growing.node_dir, [path.name for path in growing.segments[:-1]])
        recording.refresh()
        assert len(recording.manifests) == 1
        assert counted(recording) == before
        # AND again, over a part that is known already
        goes_on(growing, seq=3)
        recording.refresh()
        with open_recording(growing.dir) as anew:
            assert counted(recording) == counted(anew)


def test_ids_stay_small_while_a_recording_goes_on(growing: Written) -> None:
    with open_recording(growing.dir) as recording:
        counted(recording)
        once = max(recording.first_id(part, "stack") + part.ids()["stack"] for part in recording.parts)
        made = growing
        for seq in range(3, 9):
            made = goes_on(made, seq=seq, seconds=2)
            recording.refresh()
            counted(recording)
        used = sum(part.ids()["stack"] for part in recording.parts)
        reach = max(recording.first_id(part, "stack") + part.ids()["stack"] for part in recording.parts)
        assert reach <= 2 * used + 100_000
        assert reach >= once


def test_stacks_are_held_for_the_same_parts_and_only_for_them(
    growing: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    load = stacks.load

    def watched(
        recording: Recording, spans: list[stacks.Span], functions: stacks.Functions | None = None
    ) -> stacks.Stacks:
        read.append(spans)
        return load(recording, spans, functions)

    monkeypatch.setattr(stacks, "load", watched)
    monkeypatch.setattr("zombiescope.web.held_recording.LOOK_AGAIN_S", -1.0)
    held = HeldRecording("here", growing.dir)
    with held.reading() as recording:
        span = (recording.start_us, recording.start_us + 5 * SECOND)
        first = held.stacks(recording, [span])
        assert held.stacks(recording, [(span[0] + SECOND, span[1])]) is first
        assert len(read) == 1
    # WHEN the recorder goes on
    goes_on(growing, seq=3)
    with held.reading() as recording:
        # THEN the old seconds are still known, the new ones are read, and both are right
        assert held.stacks(recording, [span]) is first
        assert len(read) == 1
        whole = held.stacks(recording, [(recording.start_us, recording.end_us + 1)])
        assert len(read) == 2
        with open_recording(growing.dir) as anew:
            assert counted(recording, whole) == counted(anew)
    held.close()


def test_an_incident_is_seen_at_once(growing: Written) -> None:
    """The page is told of it, and asks; what was looked at in the same second does not know it yet."""
    held = HeldRecording("k", growing.dir)
    with held.reading():
        before = held.generation
    with held.reading():
        assert held.generation == before
    incident_file.write(growing.node_dir, [{"id": "a"}], growing.end_us)
    with held.reading():
        assert held.generation == before + 1
    with held.reading():
        assert held.generation == before + 1
    held.close()


def test_what_is_old_does_not_make_it_look_again(growing: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zombiescope.web.held_recording.LOOK_AGAIN_S", -1.0)
    held = HeldRecording("here", growing.dir)
    with held.reading() as recording:
        end_us = recording.end_us
    assert held.settled(growing.start_us + 10 * SECOND)
    assert not held.settled(end_us)
    goes_on(growing, seq=3)
    with held.reading(growing.start_us + 10 * SECOND) as recording:
        assert recording.end_us == end_us
    with held.reading() as recording:
        assert recording.end_us > end_us
    generation = held.generation
    with held.reading():
        assert held.generation == generation, "nothing was written since"
    held.close()


def test_several_threads_get_the_same_answer(server: PageServer) -> None:
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(server.api("flamegraph").body)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_recording_that_nobody_began_yet(tmp_path: Path) -> None:
    recordings = Recordings([Place(tmp_path)])
    with pytest.raises(Refusal, match="nothing is recorded yet"), recordings.named(None).reading():
        pass
    assert recordings.document()["recordings"][0]["note"].startswith("nothing is recorded yet")
    # WHEN somebody does
    write_recording(tmp_path, seconds=5)
    with recordings.named(None).reading() as recording:
        assert recording.name == "lab"
    recordings.close()


def test_each_node_and_each_directory_has_a_key(tmp_path: Path) -> None:
    for node in ("a", "b"):
        write_recording(tmp_path / "fleet", seconds=2, node=node)
    write_recording(tmp_path / "other", seconds=2, node="a")
    with page_server("fleet", "other", home=tmp_path) as server:
        listed = server.api("recordings").document["recordings"]
        assert [(one["key"], one["node"]) for one in listed] == [
            ("here", "a"), ("b", "b"), ("other", "a"), ("founding-case", None),
        ]  # fmt: skip
        # two of one node differ in where they lie, so that a person can choose
        assert [one["place"] for one in listed] == ["fleet", "fleet", "other", None]
        assert server.api("info", rec="b").document["node"] == "b"


def test_answers_are_compressed_and_recognised(server: PageServer) -> None:
    plain = server.ask("/api/v1/heatmap?by=core")
    packed = server.ask("/api/v1/heatmap?by=core", Accept_Encoding="gzip, deflate, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)
    assert server.ask("/api/v1/heatmap?by=core", Accept_Encoding="zstd, gzip").headers["content-encoding"] == "zstd"
    assert "content-encoding" not in server.ask("/api/v1/heatmap?by=core", Accept_Encoding="gzip;q=0").headers
    assert server.ask("/api/v1/heatmap?by=core", If_None_Match=plain.headers["etag"]).status == 304
    assert server.ask("/api/v1/heatmap?by=core", If_None_Match='"x"').status == 200


def body(page: Page, path: str) -> bytes:
    found = page.file(path)
    assert found is not None
    return found.body


def test_the_page_is_its_files_and_nothing_at_any_other_path(tmp_path: Path) -> None:
    # GIVEN a source tree that was not set up
    page = Page(tmp_path)
    assert b"make setup" in body(page, "/")
    # WHEN it is built
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/index-1a2b.js").write_text("alert(1)")
    (tmp_path / "index.html").write_text("<!doctype html>built")
    # THEN it is served without a restart
    assert body(page, "/") == body(page, "/index.html") == b"<!doctype html>built"
    assert page.file("/node/x") is None
    script = page.file("/assets/index-1a2b.js")
    assert script is not None
    assert (script.media_type, script.fixed, script.body) == ("text/javascript; charset=utf-8", True, b"alert(1)")
    assert page.file("/assets/../../secret") is None


# --- live -------------------------------------------------------------------------------------------------------------


def test_a_recording_that_nobody_writes_is_not_live(server: PageServer) -> None:
    got = server.api("live")
    assert got.status == 409
    fix = "'zombiescope up' starts one"
    assert got.error == {"what": "no recorder writes this recording now", "fix": fix}


def test_ctrl_c_lets_go_of_whoever_watches(growing: Written, tmp_path: Path) -> None:
    with (growing.node_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with page_server(str(growing.dir), home=tmp_path) as server, server.live() as events:
            next(events)
            server.process.send_signal(signal.SIGINT)
            assert [kind for kind, _ in events if kind not in ("tick", "event", "incidents")] == []
            assert server.process.wait(20) == 0


def test_what_is_written_is_told_as_it_happens(growing: Written, tmp_path: Path) -> None:
    (growing.node_dir / "incidents.json").write_text(
        '{"at": 1, "incidents": [{"id": "x", "state": "open", "from": 1}]}'
    )
    with (growing.node_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with page_server(str(growing.dir), home=tmp_path) as server:
            assert server.api("info").document["live"] is True
            with server.live() as events:
                kind, data = next(events)
                assert (kind, data[0]["id"]) == ("incidents", "x")
                kind, tick = next(pair for pair in events if pair[0] == "tick")
                assert tick["cpus"] == [0, 1]
                assert all(0 <= ratio <= 1 for mode in ("user", "system", "softirq") for ratio in tick[mode])
                assert (tick["dying"], tick["total"]) != (None, None)
                # WHEN the recorder writes on
                more = goes_on(growing, seq=3)
                seen = [next(events) for _ in range(9)]
                times = [data["at"] for kind, data in seen if kind == "tick"]
                assert times == sorted(times)
                assert times[-1] > growing.end_us / 1e6
                assert times[-1] <= more.end_us / 1e6
                assert ("mark", "epoch 12 starts") in [
                    (data["kind"], data["text"]) for kind, data in seen if kind == "event"
                ]
                # AND the doctor finds something
                (growing.node_dir / "incidents.json").write_text('{"at": 2, "incidents": []}')
                assert next(data for kind, data in events if kind == "incidents") == []
                # AND the recorder is gone
                fcntl.flock(lock, fcntl.LOCK_UN)
                assert next(data for kind, data in events if kind == "recorder") == {"running": False}
            assert server.api("live").status == 409
