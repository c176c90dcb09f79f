"""Where a recording's files are: a directory, an object store (object_store.py), or one zip file (a pack) with the same
names inside.

Readers ask for names with "/" between folders, relative to the recording, and never for a path. A pack is a
zip whose members are stored, not deflated (Parquet and log segments are compressed already), so that a
member is a plain range of the file and a reader seeks in it as freely as in a file of its own. A pack comes from
elsewhere: what its directory says of lengths is compared with the file's own before anybody asks for that much memory.
So may a directory: a link in it is none of its files, wherever that leads, and neither is a pipe, which would keep
its reader waiting. Whole files are read up to DOCUMENT_BYTES.

What is not there: a name that vanishes between listing and opening raises FileNotFoundError; with a
recorder running that is ordinary (compaction and retention delete files).
"""

from __future__ import annotations

import errno
import io
import os
import struct
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn, Protocol

from zombiescope.base import safe_files
from zombiescope.base.errors import UserError

_LOCAL_HEADER = struct.Struct("<4s5HIII2H")
_LOCAL_MAGIC = b"PK\x03\x04"
_NODE = b"node="
"""What the names of a pack's members begin with (layout.NODE_FOLDER)."""
MAX_DEPTH = 16
DOCUMENT_BYTES = 32 << 20
"""Of node.json, incidents.json, a manifest: the largest there is has two of these MB."""


class NotARecordingError(UserError, ValueError):
    """There is no recording at the place that was named."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: str
    size_bytes: int


class Store(Protocol):
    """The whole of what readers need; an object store fits it too."""

    place: str

    def folders(self) -> list[str]:
        """Names of the folders at the top."""

    def entries(self, prefix: str) -> list[StoredFile]:
        """Every file below a folder ("" or a name that ends in "/"), sorted by name."""

    def open(self, name: str) -> BinaryIO:
        """A seekable reader of one file. Raises FileNotFoundError."""

    def read(self, name: str) -> bytes:
        """A whole small file. Raises FileNotFoundError, and OSError where it is larger than DOCUMENT_BYTES."""

    def close(self) -> None: ...


class Directory:
    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._path = path

    def folders(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self._path) if entry.is_dir())

    def entries(self, prefix: str) -> list[StoredFile]:
        return sorted(_walk(self._path / prefix, prefix), key=lambda entry: entry.name)

    def open(self, name: str) -> BinaryIO:
        return os.fdopen(safe_files.open_to_read(self._path / name), "rb")

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return read_document(file, name)

    def close(self) -> None:
        """Nothing is held open."""


def _walk(folder: Path, prefix: str) -> Iterator[StoredFile]:
    """Every file below it; a recording has one level of folders, and what lies deeper than MAX_DEPTH is none of its."""
    pending = [(str(folder), prefix, 0)]
    while pending:
        place, before, depth = pending.pop()
        try:
            found = list(os.scandir(place))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for item in found:
            try:
                if item.is_dir(follow_symlinks=False):
                    if depth < MAX_DEPTH:
                        pending.append((item.path, f"{before}{item.name}/", depth + 1))
                elif item.is_file(follow_symlinks=False):
                    yield StoredFile(before + item.name, item.stat(follow_symlinks=False).st_size)
            except FileNotFoundError:
                continue


class Pack:
    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._file = open(path, "rb")  # noqa: SIM115 - closed by close(), with the recording
        try:
            with zipfile.ZipFile(self._file) as archive:
                # is_dir() looks at the last character of a name, which need not have one.
                found = [info for info in archive.infolist() if info.filename and not info.filename.endswith("/")]
            self._members = {info.filename: info for info in found}
            _fit(found, os.fstat(self._file.fileno()).st_size)
        except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, struct.error) as error:
            with self._file:
                _refuse(path, self._file, error)

    def folders(self) -> list[str]:
        return sorted({name.split("/", 1)[0] for name in self._members if "/" in name})

    def entries(self, prefix: str) -> list[StoredFile]:
        below = (info for name, info in self._members.items() if name.startswith(prefix))
        return sorted((StoredFile(info.filename, info.file_size) for info in below), key=lambda entry: entry.name)

    def open(self, name: str) -> BinaryIO:
        info = self._members.get(name)
        if info is None:
            raise FileNotFoundError(f"{name} is not in {self.place}")
        if info.compress_type != zipfile.ZIP_STORED:
            raise NotARecordingError(
                f"{name} in {self.place} is deflated", "a pack keeps its members as they are (zip -0)"
            )
        return io.BufferedReader(_Range(self._file.fileno(), self._data_start(info), info.file_size))

    def _data_start(self, info: zipfile.ZipInfo) -> int:
        # The local header has its own extra field, which may differ in length from the directory's.
        header = os.pread(self._file.fileno(), _LOCAL_HEADER.size, info.header_offset)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL_MAGIC):
            raise OSError(f"{self.place} is damaged at byte {info.header_offset}")
        name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)[-2:]
        return int(info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes)

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return read_document(file, name)

    def close(self) -> None:
        self._file.close()


def _refuse(path: Path, file: BinaryIO, error: Exception) -> NoReturn:
    """A pack's directory is its end: one that was cut off begins as a pack does, with a file of a node, and has none.
    Raises NotARecordingError."""
    file.seek(0)
    start = file.read(_LOCAL_HEADER.size + len(_NODE))
    if start.startswith(_LOCAL_MAGIC) and start.endswith(_NODE) and not zipfile.is_zipfile(file):
        size = f"{file.seek(0, os.SEEK_END):,}"
        raise NotARecordingError(f"{path} is a pack that was cut off after {size} bytes", "copy it again") from error
    raise NotARecordingError(
        f"{path} is not a recording ({error})", "name a recording directory or what `zombiescope pack` made"
    ) from error


def read_document(file: BinaryIO, name: str) -> bytes:
    """All of a small file. Raises OSError where it is none."""
    data = file.read(DOCUMENT_BYTES + 1)
    if len(data) > DOCUMENT_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {DOCUMENT_BYTES >> 20} MB", name)
    return data


def _fit(members: Sequence[zipfile.ZipInfo], size_bytes: int) -> None:
    """Members lie in the file, each in bytes of its own: a directory may promise terabytes, or the same bytes a
    thousand times. Raises BadZipFile."""
    end = 0
    for info in sorted(members, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise zipfile.BadZipFile("its members overlap")
        end = info.header_offset + _LOCAL_HEADER.size + info.compress_size
        is_stored = info.compress_type == zipfile.ZIP_STORED
        if end > size_bytes or (is_stored and info.file_size > info.compress_size):
            raise zipfile.BadZipFile("a member is longer than the file")


class _Range(io.RawIOBase):
    """A part of a file as a file. pread keeps readers of different members out of each other's way."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._start = start
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # typeshed's WriteableBuffer has no len()
        wanted = max(0, min(len(buffer), self._size - self._position))
        data = os.pread(self._descriptor, wanted, self._start + self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def open_store(path: Path | str) -> Store:
    """The store at a path, or at the address of an object store. Raises NotARecordingError."""
    if "://" in str(path):
        from zombiescope.store.object_store import ObjectStore

        return ObjectStore(str(path))
    place = Path(path)
    if place.is_dir():
        return Directory(place)
    if place.is_file():
        return Pack(place)
    raise NotARecordingError(f"there is no recording at {place}", f"`zombiescope record {place}` starts one")
