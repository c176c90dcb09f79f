"""The built page: a few files below web/page/, all read before a request can name one of them.

A request's path is looked up in a table of what is there; it never becomes the name of a file. The page itself is at /
and reads the rest of its address from the query; a path that is nothing of this is answered with 404, or a scraper that
asks for /metrics would take the page for them. In a source tree that was not set up there is no page,
and that is said.
"""

from __future__ import annotations

import mimetypes
import threading
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".map": "application/json",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
_ABSENT = """<!doctype html><html lang=en><meta charset=utf-8><title>zombiescope</title>
<h1>zombiescope</h1>
<p>The page is not built in this source tree. <code>make setup</code> builds it.
<p>The interface works without it: <a href=/api/v1/recordings>/api/v1/recordings</a>,
<a href=/api/v1/openapi.json>/api/v1/openapi.json</a>.
</html>
"""


NOT_HERE = """<!doctype html><html lang=en><meta charset=utf-8><link rel=icon href=/icon.svg>
<title>not found · zombiescope</title>
<h1>There is no such page here</h1>
<p>{what}. {fix}
<p><a href=/>Open the page</a>
</html>
"""


@dataclass(frozen=True, slots=True)
class File:
    media_type: str
    body: bytes
    fixed: bool
    """Its name changes when it does."""


class Page:
    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: dict[str, File] = {}
        self._built: float | None = None

    def file(self, path: str) -> File | None:
        """What stands at a path."""
        with self._lock:
            self._read_again_if_built()
            if path in ("/", "/index.html"):
                return self._files.get("/index.html") or File("text/html; charset=utf-8", _ABSENT.encode(), False)
            return self._files.get(path)

    def _read_again_if_built(self) -> None:
        try:
            built: float | None = (self._folder / "index.html").stat().st_mtime
        except OSError:
            built = None
        if built != self._built:
            self._files = dict(self._found()) if built is not None else {}
            self._built = built

    def _found(self) -> list[tuple[str, File]]:
        return [
            (f"/{file.relative_to(self._folder).as_posix()}", _file(file, self._folder))
            for file in sorted(self._folder.rglob("*"))
            if file.is_file()
        ]


def _file(file: Path, folder: Path) -> File:
    guessed = _TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    text = guessed.startswith("text/") or guessed in ("application/json", "image/svg+xml")
    media_type = f"{guessed}; charset=utf-8" if text else guessed
    return File(media_type, file.read_bytes(), file.relative_to(folder).parts[0] == "assets")
