"""The page frozen into one file: the same page, with its answers inside, that needs no server and no network.

    script#frozen   {"answers": {question: base64 of the gzipped answer}, "samples": likewise or null, "markdown": text}

What a reader can ask in endless ways is folded from the samples by the page itself (ui/src/api/frozen.ts). The file
stays below 1 MB whatever the window is; the samples take what the rest leaves, and say how they were thinned.

The script is packed as the answers are, and unpacked by a few lines: as it is it would take a quarter of the file. A
policy in the file forbids every connection, so that an evidence file in a ticket tells nobody that it was opened.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.base.errors import UserError
from zombiescope.base.text import printable_lines
from zombiescope.documents.columns import Columns
from zombiescope.query.flame import FILE_BYTES
from zombiescope.query.sample_table import SampleTable

FOLDER = Path(__file__).parent / "page"
_SCRIPT = re.compile(r'<script[^>]*\bsrc="\./([^"]+)"')
_STYLE = re.compile(r'<link[^>]*\brel="stylesheet"[^>]*\bhref="\./([^"]+)"')
_UNPACK = """
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("page").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = await new Response(stream).text();
  document.head.append(script);
})().catch((error) => { document.getElementById("app").textContent = "This page could not be unpacked: " + error; });
"""
_REST_BYTES = 5_000
"""Of the file: what is neither page nor answers."""

Document = dict[str, Any] | Columns


class NotBuiltError(UserError):
    """There is no page in this installation: a source tree that was not set up."""


@dataclass(frozen=True, slots=True)
class Built:
    """The page as `make setup` built it: one script and one sheet."""

    script: str
    """Packed."""
    style: str
    digest: str = ""
    """Of the script, as a policy names it."""

    @classmethod
    def found(cls, folder: Path = FOLDER) -> Built:
        """Raises NotBuiltError."""
        try:
            index = (folder / "index.html").read_text()
            script, style = (_only(pattern, index, folder) for pattern in (_SCRIPT, _STYLE))
        except FileNotFoundError as error:
            raise NotBuiltError(f"the web page is not built ({error.filename} is missing)") from None
        return cls(packed(script.encode()), style, _digest(script))

    @property
    def size_bytes(self) -> int:
        return len(self.script.encode()) + len(self.style.encode())


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _policy(*digests: str) -> str:
    """Only these scripts run: a name that somehow became an element of the page would not."""
    allowed = " ".join(digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def _only(pattern: re.Pattern[str], index: str, folder: Path) -> str:
    named = pattern.findall(index)
    if len(named) != 1:
        raise NotBuiltError(f"{folder / 'index.html'} names {len(named)} files where the page has one")
    return (folder / str(named[0])).read_text()


class EmbeddedDocuments:
    """What the page may ask, each as the server would answer it."""

    def __init__(self) -> None:
        self._packed: dict[str, str] = {}

    def put(self, question: str, found: Document) -> None:
        if isinstance(found, Columns):
            self._packed[question] = packed(found.encoded())
        else:
            document = {"schema": f"zombiescope.{question.partition('/')[0]}/1", **found}
            self._packed[question] = packed(json.dumps(document, allow_nan=False, separators=(",", ":")).encode())

    @property
    def size_bytes(self) -> int:
        return sum(len(question) + len(answer) + 8 for question, answer in self._packed.items())

    def all(self) -> Mapping[str, str]:
        return self._packed


def packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def packed_samples(table: SampleTable) -> str:
    return packed(Columns("samples", table.scalars, table.arrays).encoded())


def room_bytes(built: Built, answers: EmbeddedDocuments, text: str = "") -> int:
    """What is left for samples."""
    return FILE_BYTES - _REST_BYTES - built.size_bytes - answers.size_bytes - 2 * len(text.encode())


def assembled(
    built: Built,
    heading: str,
    opens: str,
    answers: EmbeddedDocuments,
    samples: str | None,
    markdown: str | None = None,
    rows: int | None = None,
) -> str:
    """The file. `opens`: the place that the page shows first, as its address says it. `markdown` is what a reader
    without scripts sees, and what the page gives to copy. `rows`: of the heat map, to begin with."""
    said = "" if rows is None else f' data-rows="{rows}"'
    frozen = {"answers": answers.all(), "samples": samples, "markdown": markdown}
    first = f'if (!location.hash.includes("=")) history.replaceState(null, "", "#" + {_inside(opens)})'
    policy = _policy(_digest(first), _digest(_UNPACK), built.digest)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_escaped(heading)}</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>\n{built.style}\n</style>\n</head>\n<body>\n"
        '<div id="app"></div>\n'
        f"<noscript><p>This page draws with JavaScript, which is switched off here.</p>"
        f"<pre>{_escaped(markdown or heading)}</pre></noscript>\n"
        f'<script type="application/json" id="frozen"{said}>{_inside(frozen)}</script>\n'
        f"<script>{first}</script>\n"
        f'<script type="text/plain" id="page">{built.script}</script>\n<script>{_UNPACK}</script>\n</body>\n</html>\n'
    )


def _escaped(text: str) -> str:
    return html.escape(printable_lines(text))


def _inside(value: object) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
