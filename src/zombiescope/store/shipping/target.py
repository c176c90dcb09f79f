"""The other side: an object store by way of pyarrow's file systems, or a directory.

A name over there is whole or not there at all. In an object store that is so by itself: an object appears when its
upload is complete. In a directory a file is written aside, synced and renamed. A directory that all nodes write has
other nodes' links in it: none is followed below the one that was named.

S3 takes its credentials as every AWS tool does (environment, ~/.aws, the instance's or the pod's role); an endpoint
that is not Amazon's is named in the URL: s3://bucket/prefix?endpoint_override=host:9000&scheme=http&region=us-east-1.
gs:// and abfs:// take what pyarrow's `FileSystem.from_uri` takes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.store.shipping.policy import ShippingPolicy

CONNECT_S = 10.0
TRIES = 3
_S3_OPTIONS = frozenset({"region", "scheme", "endpoint_override", "role_arn", "external_id", "tls_ca_file_path"})


class TargetError(UserError):
    """The target did not take it, or cannot be asked."""


class Target(Protocol):
    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Raises TargetError."""

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """Its beginning, up to so many bytes. None: it is not there, or may not be read. Raises TargetError when the
        target cannot be asked."""

    def size(self, name: str) -> int | None:
        """None: not there, or may not be asked."""

    def names(self, folder: str) -> list[str]:
        """The files of a folder; none where it may not be listed."""

    def remove(self, name: str) -> bool:
        """Whether it is gone."""


def open_target(policy: ShippingPolicy) -> Target:
    """Raises TargetError."""
    parts = urlsplit(policy.target) if "://" in policy.target else None
    if parts is None or parts.scheme == "file":
        return DirectoryTarget(Path(policy.target if parts is None else unquote(parts.path)))
    return ObjectTarget(policy)


class DirectoryTarget:
    def __init__(self, root: Path) -> None:
        """Raises TargetError."""
        self._root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TargetError(f"{root}: {error.strerror}", "name a directory that this user may write") from error

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        *folders, last = name.split("/")
        try:
            with (
                safe_files.opened_below(self._root, folders, make=True) as directory,
                safe_files.replacing_in(directory, last, sync=True) as file,
            ):
                for piece in pieces:
                    file.write(piece)
        except OSError as error:
            path = self._root / name
            raise TargetError(f"{path} cannot be written: {error.strerror}", "make room there, or rights") from error

    def read(self, name: str, most_bytes: int) -> bytes | None:
        with contextlib.suppress(OSError), self._opened(name) as file:
            return file.read(most_bytes)
        return None

    def size(self, name: str) -> int | None:
        with contextlib.suppress(OSError), self._opened(name) as file:
            return os.fstat(file.fileno()).st_size
        return None

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        *folders, last = name.split("/")
        with (
            safe_files.opened_below(self._root, folders) as directory,
            os.fdopen(safe_files.open_to_read(last, directory=directory), "rb") as file,
        ):
            yield file

    def names(self, folder: str) -> list[str]:
        with contextlib.suppress(OSError), safe_files.opened_below(self._root, folder.split("/")[:-1]) as directory:
            found = os.listdir(directory)  # noqa: PTH208  a descriptor
            return sorted(f"{folder}{name}" for name in found if not name.endswith(".tmp"))
        return []

    def remove(self, name: str) -> bool:
        *folders, last = name.split("/")
        with contextlib.suppress(OSError), safe_files.opened_below(self._root, folders) as directory:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(last, dir_fd=directory)
            return True
        return False


class ObjectTarget:
    def __init__(self, policy: ShippingPolicy) -> None:
        self._shown = policy.shown
        try:
            self._store, root = _file_system(policy.target)
        except (OSError, ValueError, TypeError, NotImplementedError) as error:
            raise self._error("is not a place to send to", error) from error
        self._root = root.strip("/")

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        path = f"{self._root}/{name}"
        try:
            stream = self._store.open_output_stream(path, compression=None)
            try:
                for piece in pieces:
                    stream.write(piece)
            finally:
                stream.close()
        except OSError as error:
            raise self._error(f"did not take {name}", error) from error

    def read(self, name: str, most_bytes: int) -> bytes | None:
        try:
            with self._store.open_input_stream(f"{self._root}/{name}", compression=None) as stream:
                return bytes(stream.read(most_bytes))
        except OSError as error:
            if _is_answer(error):
                return None
            raise self._error(f"did not return {name}", error) from error

    def size(self, name: str) -> int | None:
        try:
            found = self._store.get_file_info(f"{self._root}/{name}").size
        except OSError as error:
            if _is_answer(error):
                return None
            raise self._error(f"did not return {name}", error) from error
        return None if found is None else int(found)

    def names(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector, FileType

        try:
            selector = FileSelector(f"{self._root}/{folder.rstrip('/')}", allow_not_found=True)
            found = self._store.get_file_info(selector)
        except OSError as error:
            if _is_answer(error):
                return []
            raise self._error(f"did not list {folder}", error) from error
        return sorted(folder + each.base_name for each in found if each.type == FileType.File)

    def remove(self, name: str) -> bool:
        try:
            self._store.delete_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return True
        except OSError as error:
            if _is_answer(error):
                return False
            raise self._error(f"did not delete {name}", error) from error
        return True

    def _error(self, what: str, error: BaseException) -> TargetError:
        said = " ".join(str(error).split())[:300]
        return TargetError(f"{self._shown} {what}: {said}", _fix(said))


def _file_system(target: str) -> tuple[Any, str]:
    from pyarrow import fs

    parts = urlsplit(target)
    if parts.scheme != "s3":
        found, path = fs.FileSystem.from_uri(target)
        return found, str(path)
    options = dict(parse_qsl(parts.query))
    if strange := options.keys() - _S3_OPTIONS:
        raise ValueError(
            f"{sorted(strange)[0]} is not an option of s3://; the options are {', '.join(sorted(_S3_OPTIONS))}"
        )
    if not parts.hostname:
        raise ValueError("there is no bucket in it; write s3://bucket/prefix")
    store = fs.S3FileSystem(
        **options,
        **({"access_key": unquote(parts.username), "secret_key": unquote(parts.password)}
           if parts.username and parts.password else {}),
        connect_timeout=CONNECT_S,
        allow_delayed_open=True,  # small objects go in one request, and not in the three of a multipart upload
        background_writes=False,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
    )  # fmt: skip
    return store, f"{parts.netloc.rpartition('@')[2]}{unquote(parts.path)}"


_ANSWERS = ("ACCESS_DENIED", "HTTP status 403", "HTTP status 404", "NoSuchKey", "NO_SUCH_KEY", "Path does not exist")


def _is_answer(error: OSError) -> bool:
    """The target was there, and said no: what may only be written cannot be asked for."""
    return isinstance(error, FileNotFoundError | PermissionError) or any(word in str(error) for word in _ANSWERS)


def _fix(said: str) -> str:
    if "NoSuchBucket" in said or "NO_SUCH_BUCKET" in said or "bucket does not exist" in said:
        return "make the bucket first; none is made for you"
    if "403" in said or "ACCESS_DENIED" in said or "InvalidAccessKeyId" in said:
        return "give this node's role s3:PutObject there (and DeleteObject, GetObject, ListBucket if it is to clean up)"
    return "what waits is kept in the spool, and tried again"
