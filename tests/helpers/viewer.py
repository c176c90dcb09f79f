"""speedscope from npm in a headless browser: opens a file and tells which profiles it found in it."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.conftest import Needs


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


def opened(needs: Needs, place: Path, file: bytes, name: str) -> dict[str, str]:
    """Profile -> its total, as the list of profiles shows them; "" -> what stands in the middle of the toolbar."""
    chromium = needs.binary("chromium", "chromium")
    site = place / "site"
    shutil.copytree(needs.npm("speedscope") / "dist" / "release", site, dirs_exist_ok=True)
    (site / name).write_bytes(file)
    page = site / "index.html"
    # speedscope tells a failure in a dialog, which nobody would close.
    page.write_text(page.read_text().replace("<head>", "<head><script>alert = text => document.title = text</script>"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
             f"--user-data-dir={place / 'profile'}", "--window-size=1200,900", "--virtual-time-budget=8000",
             "--dump-dom", f"{address}/index.html#profileURL={address}/{name}"],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        server.shutdown()
    dom = done.stdout
    assert "Time Order" in dom, f"speedscope did not open it: {re.findall('<title>.*?</title>', dom)}"
    rows = re.findall(r'<tr title="([^"]*)"[^>]*>.*?<td[^>]*>([^<]*)</td></tr>', dom)
    title = re.search(r"Sandwich</div></div><div[^>]*>(?:<span>)?([^<]*)", dom)
    return {unescape(name): total for name, total in rows} | {"": unescape(title[1]) if title else ""}
