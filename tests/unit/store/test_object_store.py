"""A store that is busy is asked again, one that refuses is not; a file of a recording is read as from a disk. The real
protocol is tried in tests/ray."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from tests.helpers import object_store as object_store_server

from zombiescope.store import object_store
from zombiescope.store.object_store import ObjectStore
from zombiescope.store.store import NotARecordingError, open_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    (tmp_path / "node=a" / "log").mkdir(parents=True)
    (tmp_path / "node=a" / "node.json").write_bytes(b"{}")
    (tmp_path / "node=a" / "log" / "x.seg").write_bytes(b"0123456789")
    monkeypatch.setattr(object_store, "_FIRST_WAIT_S", 0.0)
    return ObjectStore(f"file://{tmp_path}")


def test_names_sizes_and_bytes_are_those_of_the_files(store: ObjectStore) -> None:
    assert store.folders() == ["node=a"]
    assert [(each.name, each.size_bytes) for each in store.entries("node=a/")] == [
        ("node=a/log/x.seg", 10), ("node=a/node.json", 2),
    ]  # fmt: skip
    assert store.read("node=a/node.json") == b"{}"
    assert all(each.changed_us for each in store.objects())
    with pytest.raises(FileNotFoundError):
        store.read("node=a/none")


class _Store(BaseHTTPRequestHandler):
    """Answers every listing of S3 with names of its choice, or sends whoever asks elsewhere."""

    names: ClassVar[list[str]] = []
    elsewhere: ClassVar[str | None] = None
    asked: ClassVar[list[tuple[str, bool]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, "Authorization" in self.headers))
        if self.elsewhere is not None and not self.path.startswith("/elsewhere"):
            self.send_response(307)
            self.send_header("Location", f"{self.elsewhere}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = "<Size>5</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        keys = "".join(f"<Contents><Key>{name}</Key>{size}</Contents>" for name in self.names)
        body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{keys}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[type[_Store], ObjectStore]]:
    for name, value in {**object_store_server.KEYS, "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)
    handler: type[_Store] = type("Handler", (_Store,), {"names": [], "asked": []})
    with _serving(handler) as address:
        yield handler, ObjectStore(f"s3://b/p?endpoint_override={address}&region=us-east-1")


@contextmanager
def _serving(handler: type[_Store]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_names_that_lead_elsewhere_are_not_listed(hostile: tuple[type[_Store], ObjectStore]) -> None:
    handler, store = hostile
    handler.names = ["p/node=a/node.json", "p/../../etc/passwd", "p//etc/shadow", "p/node=a/../node=b/x", "p/./x"]
    assert [one.name for one in store.objects()] == ["node=a/node.json"]


def test_a_store_that_sends_us_elsewhere_gets_no_credentials_there(hostile: tuple[type[_Store], ObjectStore]) -> None:
    handler, store = hostile
    other: type[_Store] = type("Other", (_Store,), {"asked": []})
    with _serving(other) as handler.elsewhere, suppress(OSError):
        store.objects()
    assert any(has for _, has in handler.asked)
    assert not any(has for _, has in other.asked)


def test_a_large_file_is_read_in_ranges(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "WHOLE_BYTES", 4)
    store.entries("")
    with store.open("node=a/log/x.seg") as file:
        file.seek(7)
        assert file.read() == b"789"


def test_a_busy_store_is_asked_again(store: ObjectStore) -> None:
    answers: list[OSError | bytes] = [OSError("HTTP status 503 SlowDown"), OSError("timeout"), b"data"]

    def request() -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert store._asked(request, "x") == b"data"


@pytest.mark.parametrize(("why", "asked"), [("ACCESS_DENIED", 1), ("SlowDown", object_store._TRIES)])
def test_what_is_refused_is_said_with_the_name_of_the_file(store: ObjectStore, why: str, asked: int) -> None:
    calls = []

    def request() -> bytes:
        calls.append(1)
        raise OSError(why)

    with pytest.raises(OSError, match=f"x.seg: the object store answered: {why}"):
        store._asked(request, "x.seg")
    assert len(calls) == asked


def test_an_address_that_nobody_knows_is_said() -> None:
    with pytest.raises(NotARecordingError, match="cannot be opened"):
        open_store("gopher://x/y")
