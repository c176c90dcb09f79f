"""A recording that was served and is deleted is an error with its path, never an empty answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.helpers.page_server import page_server
from tests.helpers.recordings import write_recording

from zombiescope.store.pack import pack
from zombiescope.store.reader import open_recording
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.recordings import Place, Recordings
from zombiescope.web.refusal import Refusal

ENDPOINTS = ("info", "flamegraph", "heatmap", "strip", "lanes", "who", "incidents", "worst", "health", "audit")


def test_every_endpoint_says_that_it_is_gone_and_the_others_are_still_served(tmp_path: Path) -> None:
    for name in ("flight", "other"):
        write_recording(tmp_path / name, seconds=5, node=name)
    with page_server("flight", "other", home=tmp_path) as server:
        assert server.api("flamegraph").status == 200
        # WHEN one is deleted
        shutil.move(tmp_path / "flight", tmp_path / "elsewhere")
        for endpoint in ENDPOINTS:
            got = server.api(endpoint)
            assert got.status == 410, endpoint
            assert got.error["what"] == f"this recording was deleted or moved: {tmp_path / 'flight'}"
        assert server.api("export", format="collapsed").status == 410
        assert server.api("incidents/x/report").status == 410
        listed = {one["key"]: one for one in server.api("recordings").document["recordings"]}
        assert (listed["here"]["gone"], listed["other"]["gone"]) == (True, False)
        assert listed["here"]["note"] == f"this recording was deleted or moved: {tmp_path / 'flight'}"
        assert server.api("info", rec="other").status == 200
        # THEN it is served again once it is back
        shutil.move(tmp_path / "elsewhere", tmp_path / "flight")
        assert server.api("flamegraph").status == 200


@pytest.mark.parametrize("deleted", ["flight", "flight/node=lab", "flight/node=lab/log/*"])
def test_whatever_part_of_it_is_deleted(tmp_path: Path, deleted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zombiescope.web.held_recording.LOOK_AGAIN_S", -1.0)
    write_recording(tmp_path / "flight", seconds=5)
    held = HeldRecording("here", tmp_path / "flight")
    with held.reading() as recording:
        assert recording.end_us
    for path in tmp_path.glob(deleted):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    with pytest.raises(Refusal, match="deleted or moved") as refused, held.reading():
        pass
    assert refused.value.status == 410
    held.close()


def test_a_pack_that_is_deleted(tmp_path: Path) -> None:
    file = tmp_path / "one.zscope"
    written = write_recording(tmp_path / "flight", seconds=5)
    with open_recording(written.dir) as recording:
        pack(recording, recording.start_us, recording.end_us, file)
    held = HeldRecording("here", file)
    with held.reading() as recording:
        assert recording.end_us
    file.unlink()
    with pytest.raises(Refusal, match="deleted or moved"), held.apart():
        pass
    held.close()


def test_what_was_never_there_is_not_deleted(tmp_path: Path) -> None:
    recordings = Recordings([Place(tmp_path / "later")])
    held = recordings.named(None)
    with pytest.raises(Refusal) as refused, held.reading():
        pass
    assert (refused.value.status, held.gone) == (503, False)
    write_recording(tmp_path / "later", seconds=5)
    with held.reading(), open_recording(tmp_path / "later") as recording:
        assert (recording.name, held.gone) == ("lab", False)
    recordings.close()
