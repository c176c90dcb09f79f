"""A recording in an object store: s3://, gs://, abfs:// or any other address that Arrow's file systems know.

    s3://bucket/prefix?region=eu-central-1&endpoint_override=http://127.0.0.1:9000

What it costs is requests, so there are few: a listing is one walk (a thousand names an answer), a file up to
WHOLE_BYTES is one GET, and of a larger one only the ranges that are read, a megabyte at a time. A store that is slow
or says 503 is asked again, longer and longer apart; what it still refuses is an OSError that names the file.
Credentials are the environment's, as every other program of that store takes them.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import parse_qs, unquote, urlsplit

from zombiescope.store.store import NotARecordingError, StoredFile, read_document

WHOLE_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 20
_TRIES, _FIRST_WAIT_S = 4, 0.3
_CONNECT_S, _REQUEST_S = 5, 30
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A file as a listing says it; `changed_us` by the store's own clock."""

    name: str
    size_bytes: int
    changed_us: int | None


def is_address(place: object) -> bool:
    return "://" in str(place)


class ObjectStore:
    """Made of an address. Raises NotARecordingError where no file system of Arrow's knows it."""

    def __init__(self, address: str) -> None:
        self.place = address
        self.requests = 0
        self._files, self._root = _file_system(address)
        self._sizes: dict[str, int] = {}

    def folders(self) -> list[str]:
        found = self._list(self._root, recursive=False)
        return sorted(PurePosixPath(info.path).name for info in found if info.type.name == "Directory")

    def entries(self, prefix: str) -> list[StoredFile]:
        return [StoredFile(each.name, each.size_bytes) for each in self.objects(prefix)]

    def objects(self, prefix: str = "") -> list[StoredObject]:
        """Every file below a folder, with the time at which the store got it; sorted by name."""
        place = f"{self._root}/{prefix}".rstrip("/")
        found = [
            StoredObject(
                info.path.removeprefix(f"{self._root}/"),
                info.size,
                None if not info.mtime_ns else info.mtime_ns // 1000,
            )
            for info in self._list(place, recursive=True)
            if info.type.name == "File" and _is_plain(info.path.removeprefix(f"{self._root}/"))
        ]
        self._sizes.update((each.name, each.size_bytes) for each in found)
        return sorted(found, key=lambda each: each.name)

    def _list(self, place: str, *, recursive: bool) -> Iterable[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(place, allow_not_found=True, recursive=recursive)
        found: Iterable[Any] = self._asked(lambda: self._files.get_file_info(selector), place)
        self.requests += 1 + len(cast("list[Any]", found)) // 1000
        return found

    def open(self, name: str) -> BinaryIO:
        size = self._sizes.get(name)
        if size is not None and size > WHOLE_BYTES:
            self.requests += 1
            opened = self._asked(lambda: self._files.open_input_file(f"{self._root}/{name}"), name)
            return cast("BinaryIO", io.BufferedReader(opened, _BUFFER_BYTES))
        return io.BytesIO(self.read(name))

    def read(self, name: str) -> bytes:
        self.requests += 1
        return self._asked(lambda: self._whole(name), name)

    def _whole(self, name: str) -> bytes:
        with self._files.open_input_stream(f"{self._root}/{name}") as stream:
            return read_document(stream, name)

    def _asked(self, request: Callable[[], _Answer], name: str) -> _Answer:
        """The answer, though the store may be busy. Raises OSError."""
        wait_s = _FIRST_WAIT_S
        for left in reversed(range(_TRIES)):
            try:
                return request()
            except FileNotFoundError:
                raise
            except OSError as error:
                text = " ".join(str(error).split())
                if not left or any(each in text for each in _FINAL):
                    raise OSError(f"{name}: the object store answered: {text[:300]}") from error
            time.sleep(wait_s)
            wait_s *= 3
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Nothing is held open."""


def _is_plain(name: str) -> bool:
    """A store may list any name; ours have no part that leads elsewhere."""
    return not {"", ".", ".."}.intersection(name.split("/"))


_FINAL = ("ACCESS_DENIED", "Access Denied", "INVALID_ACCESS_KEY", "SIGNATURE", "NO_SUCH_BUCKET", "HTTP status 403")


def _file_system(address: str) -> tuple[Any, str]:
    """The file system and the path in it, without a slash at the end."""
    from pyarrow import ArrowException, fs

    try:
        if address.startswith("s3://"):
            return _s3(address)
        files, path = fs.FileSystem.from_uri(address)
    except (ArrowException, ValueError, TypeError, OSError) as error:
        why = str(error).splitlines()[0][:200] if str(error) else repr(error)
        raise NotARecordingError(
            f"{address} cannot be opened: {why}", "name a directory, or s3://bucket/prefix"
        ) from error
    return files, path.rstrip("/")


def _s3(address: str) -> tuple[Any, str]:
    """With limits of its own: a store that does not answer is noticed."""
    from pyarrow import fs

    parts = urlsplit(address)
    options: dict[str, Any] = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    scheme, found, host = str(options.get("endpoint_override", "")).rpartition("://")
    if found:
        options |= {"endpoint_override": host, "scheme": scheme}
    if parts.username and parts.password:
        options |= {"access_key": unquote(parts.username), "secret_key": unquote(parts.password)}
    files = fs.S3FileSystem(connect_timeout=_CONNECT_S, request_timeout=_REQUEST_S, **options)
    return files, f"{parts.netloc.rpartition('@')[2]}{unquote(parts.path)}".rstrip("/")
