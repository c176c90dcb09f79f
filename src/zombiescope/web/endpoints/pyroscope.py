"""POST /querier.v1.QuerierService/METHOD: one Connect unary call (web/pyroscope.py says what is answered)."""

from __future__ import annotations

import gzip
import json
import zlib

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from zombiescope.base.errors import QuestionError, UserError
from zombiescope.web import pyroscope, wire
from zombiescope.web.responder import Responder

PROTO, JSON = "application/proto", "application/json"


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post(pyroscope.PREFIX + "{method}")
    async def call(method: str, request: Request) -> Response:
        """Pyroscope's query API for Grafana."""
        body = await _body(request)
        if body is None:
            return _refused(413, "resource_exhausted", f"a request has at most {pyroscope.MOST_BYTES:,} bytes")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (PROTO, JSON):
            return _refused(415, "invalid_argument", f"content types are {PROTO} and {JSON}")
        return await run_in_threadpool(
            _answered, responder, method, kind, body, request.headers.get("content-encoding")
        )

    return router


async def _body(request: Request) -> bytes | None:
    """None where it is longer than a question can be."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > pyroscope.MOST_BYTES:
            return None
    return bytes(found)


def _answered(responder: Responder, method: str, kind: str, body: bytes, encoding: str | None) -> Response:
    known = pyroscope.METHODS.get(method)
    if known is None:
        return _refused(501, "unimplemented", f"{method[:100]} is not answered here")
    try:
        body = _unpacked(body) if encoding == "gzip" else body
        asked = wire.decoded(known.request, body) if kind == PROTO else wire.from_json(known.request, body)
        with responder.working():
            found = known.make(responder.recordings, asked)
    except QuestionError as error:
        return _refused(400, "invalid_argument", str(error))
    except UserError as error:
        return _refused(503, "unavailable", str(error))
    if known.response is None:
        if kind == JSON:
            return _refused(501, "unimplemented", f"{method} is answered as {PROTO} only")
        return Response(found, media_type=PROTO)
    if kind == PROTO:
        return Response(wire.encoded(known.response, found), media_type=PROTO)
    return Response(json.dumps(wire.as_json(known.response, found)), media_type=JSON)


def _unpacked(body: bytes) -> bytes:
    """Raises QuestionError."""
    try:
        found = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body, pyroscope.MOST_BYTES + 1)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise QuestionError(f"the request is not gzip: {error}", "send it without Content-Encoding") from None
    if len(found) > pyroscope.MOST_BYTES:
        raise QuestionError(f"a request has at most {pyroscope.MOST_BYTES:,} bytes", "send a shorter selector")
    return found


def _refused(status: int, code: str, what: str) -> Response:
    """An error as Connect writes it."""
    return Response(json.dumps({"code": code, "message": " ".join(what.split())}), status, media_type=JSON)
