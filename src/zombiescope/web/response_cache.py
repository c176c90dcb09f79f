"""How an answer is sent: as JSON or columns, compressed if the client can, and cached for who asks the same again."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zstandard
from fastapi import Request, Response

from zombiescope.documents.columns import MEDIA_TYPE, Columns
from zombiescope.model.answer import document

CACHE_BYTES = 64 * 10**6
WORTH_BYTES = 1_000
"""Less is not compressed."""
MOST_ANSWERS = 2_000
"""However small they are."""
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Representation:
    """A document as it goes over the wire, with its entity tag."""

    media_type: str
    body: bytes
    tag: str

    @classmethod
    def of(cls, what: str, found: Any) -> Representation:
        """Of columns, an answer, or JSON."""
        if isinstance(found, Columns):
            media_type, body = MEDIA_TYPE, found.encoded()
        else:
            said = {"schema": f"zombiescope.{what}/1", **document(found)}
            media_type, body = _JSON, json.dumps(said, allow_nan=False, separators=(",", ":")).encode()
        return cls(media_type, body, hashlib.blake2b(body, digest_size=12).hexdigest())

    def response(self, request: Request) -> Response:
        """304 where the client has it already. Nothing is kept without asking: a recording may go on."""
        vary = "Accept-Encoding, Authorization"
        headers = {"ETag": f'"{self.tag}"', "Cache-Control": "private, no-cache", "Vary": vary}
        if f'"{self.tag}"' in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return compressed(self.body, self.media_type, request, headers)


def compressed(body: bytes, media_type: str, request: Request, headers: dict[str, str]) -> Response:
    """The body, compressed where that helps and the client can."""
    packed, encoding = _packed(body, request.headers.get("accept-encoding", ""))
    headers = {"Vary": "Accept-Encoding"} | headers
    if encoding is not None:
        headers["Content-Encoding"] = encoding
    return Response(packed, media_type=media_type, headers=headers)


def _packed(body: bytes, accepts: str) -> tuple[bytes, str | None]:
    if len(body) < WORTH_BYTES:
        return body, None
    wanted = {part.partition(";")[0].strip(): part.partition("q=")[2].strip() for part in accepts.lower().split(",")}
    able = {name for name, quality in wanted.items() if quality not in ("0", "0.0", "0.00", "0.000")}
    if "zstd" in able:
        return zstandard.ZstdCompressor(level=1).compress(body), "zstd"
    if "gzip" in able:
        return gzip.compress(body, 1, mtime=0), "gzip"
    return body, None


class ResponseCache:
    """The answers that were given last, as far as they fit. The key says of what they are true, in a few bytes."""

    def __init__(self, most_bytes: int = CACHE_BYTES, most_answers: int = MOST_ANSWERS) -> None:
        self._most, self._most_answers = most_bytes, most_answers
        self._cached: OrderedDict[tuple[Any, ...], Representation] = OrderedDict()
        self._lock = threading.Lock()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._cached)

    def known(self, key: tuple[Any, ...]) -> Representation | None:
        """The answer, if it is held."""
        with self._lock:
            if key in self._cached:
                self._cached.move_to_end(key)
            return self._cached.get(key)

    def get(self, key: tuple[Any, ...], make: Callable[[], Representation]) -> Representation:
        known = self.known(key)
        if known is not None:
            return known
        made = make()
        with self._lock:
            if key not in self._cached and len(made.body) <= self._most // 4:
                self._cached[key] = made
                self._bytes += len(made.body)
            while self._bytes > self._most or len(self._cached) > self._most_answers:
                _, dropped = self._cached.popitem(last=False)
                self._bytes -= len(dropped.body)
        return made
