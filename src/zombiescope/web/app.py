"""The application: guard, endpoints below /api/v1, and the page everywhere else."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

from zombiescope.base.errors import QuestionError, UserError
from zombiescope.web import guard, mcp_endpoint, refusal
from zombiescope.web.endpoints import axis, export, fleet, health, incidents, live, node, profile, pyroscope, tables
from zombiescope.web.guard import Access, Guard
from zombiescope.web.mcp_endpoint import McpEndpoint
from zombiescope.web.page import NOT_HERE, Page
from zombiescope.web.recordings import Recordings
from zombiescope.web.refusal import Refusal
from zombiescope.web.responder import Responder
from zombiescope.web.response_cache import compressed

PREFIX = "/api/v1"


def application(recordings: Recordings, access: Access, page: Page | None = None) -> Guard:
    """What uvicorn serves."""
    return Guard(_app(recordings, page or Page()), access)


def described(recordings: Recordings) -> dict[str, Any]:
    """The OpenAPI document."""
    return _app(recordings, Page()).openapi()


def _app(recordings: Recordings, page: Page) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await assistants.stop()
        recordings.close()

    app = FastAPI(
        title="zombiescope",
        version=version("zombiescope"),
        summary="Recordings of Linux nodes, read-only.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=lifespan,
    )
    responder = Responder(recordings)
    for endpoints in (node, axis, profile, tables, export, incidents, live, health, fleet):
        app.include_router(endpoints.routes(responder), prefix=PREFIX)
    assistants = McpEndpoint(recordings)
    app.include_router(pyroscope.routes(responder))
    app.router.routes.append(Route(mcp_endpoint.PATH, assistants))
    app.include_router(_pages(page))
    _report_errors(app)
    _describe(app)
    return app


def _pages(page: Page) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.api_route("/{path:path}", methods=["GET", "HEAD"])
    def any_other(request: Request, path: str) -> Response:
        if f"/{path}".startswith(guard.API) or path == "api":
            raise Refusal(404, f"there is no /{path[:200]}", f"GET {PREFIX}/openapi.json says what there is")
        file = page.file(f"/{path}")
        if file is None:
            return _not_here(request, path[:200])
        keep = "public, max-age=31536000, immutable" if file.fixed else "no-cache"
        return compressed(file.body, file.media_type, request, {"Cache-Control": keep})

    return router


_OF_THE_AGENT = ("metrics", "healthz", "readyz")


def _not_here(request: Request, path: str) -> Response:
    """In words for a person, as an error of the interface for whoever asks for no page."""
    what = f"there is no /{path}"
    fix = f"the page is at /, the interface below {PREFIX}"
    if path in _OF_THE_AGENT:
        fix = f"/{path} is answered by the agent, on 127.0.0.1:9321 unless it listens on another address"
    headers = {"Cache-Control": "no-store"}
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse(refusal.document(what, fix), 404, headers)
    said = NOT_HERE.format(what=html.escape(f"T{what[1:]}"), fix=html.escape(f"{fix[0].upper()}{fix[1:]}."))
    return Response(said, 404, headers, "text/html; charset=utf-8")


def _report_errors(app: FastAPI) -> None:
    def sent(status: int, what: str, fix: str | None) -> JSONResponse:
        return JSONResponse(refusal.document(what, fix), status, {"Cache-Control": "no-store"})

    @app.exception_handler(Refusal)
    def refused(_: Request, error: Refusal) -> Response:
        return sent(error.status, error.what, error.fix)

    @app.exception_handler(QuestionError)
    def misunderstood(_: Request, error: QuestionError) -> Response:
        return sent(400, error.what if error.option is None else f"{error.option}: {error.what}", error.fix)

    @app.exception_handler(UserError)
    def impossible(_: Request, error: UserError) -> Response:
        return sent(503, error.what, error.fix)

    @app.exception_handler(RequestValidationError)
    def wrong(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:2]) or "the request"
        return sent(422, f"{where}: {first['msg']}", f"GET {PREFIX}/openapi.json lists the parameters")

    @app.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> Response:
        return sent(error.status_code, str(error.detail), None)

    @app.exception_handler(OSError)
    def unreadable(_: Request, error: OSError) -> Response:
        return sent(503, f"the recording could not be read: {error.strerror or error}", "ask again")

    @app.exception_handler(Exception)
    def defect(_: Request, error: Exception) -> Response:
        return sent(500, f"{type(error).__name__}: this is a defect", "ZOMBIESCOPE_DEBUG=1 shows where")


def _describe(app: FastAPI) -> None:
    """The description without what FastAPI adds for bodies that are never read."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Error"] = {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {
                    "type": "object",
                    "required": ["what", "fix"],
                    "properties": {
                        "what": {"type": "string"},
                        "fix": {"type": ["string", "null"]},
                    },
                }
            },
        }
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        from zombiescope.web import shapes  # only whoever asks for the description pays for it

        shapes.describe(document, PREFIX)
        return document

    app.openapi = openapi  # type: ignore[method-assign]
