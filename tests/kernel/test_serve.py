"""The page over a real recorder: live, while the recorder is killed and comes again; and `up`, which starts both."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.helpers.page_server import SOURCE, page_server
from tests.helpers.recorder_process import recording

pytestmark = [pytest.mark.kernel, pytest.mark.waits]

DEADLINE_S = 60.0


def test_live_goes_on_after_the_recorder_was_killed(tmp_path: Path) -> None:
    # GIVEN a page that watches a recorder
    with (
        recording(tmp_path / "rec") as first,
        page_server(str(tmp_path / "rec"), home=tmp_path) as server,
        server.live() as events,
    ):
        begun = time.time()
        ticks = [data for kind, data in (next(events) for _ in range(4)) if kind == "tick"]
        assert all(len(tick["cpus"]) == len(tick["user"]) == os.cpu_count() for tick in ticks)
        assert ticks[-1]["at"] == pytest.approx(begun, abs=20)
        # WHEN it is killed
        first.signal(signal.SIGKILL)
        first.wait()
        assert next(data for kind, data in events if kind == "recorder") == {"running": False}
        assert server.api("live").status == 409
        # THEN the past can be looked at
        killed = server.api("info").document
        assert killed["live"] is False
        assert server.api("strip", columns=100).columns[0]["columns"] >= 2
        # AND when another one begins, the same connection goes on
        with recording(tmp_path / "rec") as second:
            assert next(data for kind, data in events if kind == "recorder") == {"running": True}
            again = [next(data for kind, data in events if kind == "tick") for _ in range(3)]
            assert again[0]["at"] > ticks[-1]["at"]
            assert [tick["at"] for tick in again] == sorted({tick["at"] for tick in again})
            second.wait_for_frames(1)
            assert server.api("info").document["to"] > killed["to"]
            assert server.api("info").document["live"] is True


class Up:
    """`zombiescope up` in a process of its own."""

    def __init__(self, home: Path, *arguments: str, **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ZOMBIESCOPE", "XDG"))}
        self.log = home / "up.log"
        self._file = self.log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zombiescope.cli.main", "up", str(home / "rec"), *arguments],
            stdout=subprocess.DEVNULL, stderr=self._file, cwd=home,
            env=kept | {"PYTHONPATH": str(SOURCE), "HOME": str(home), "ZOMBIESCOPE_RUNTIME_DIR": str(home / "run"),
                        **environment},
        )  # fmt: skip

    def wait_for(self, text: str) -> str:
        end = time.monotonic() + DEADLINE_S
        while text not in (said := self.log.read_text()):
            assert self.process.poll() is None, said
            assert time.monotonic() < end, said
            time.sleep(0.1)
        return said

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(DEADLINE_S)
        self._file.close()


def answer(url: str, path: str, token: str | None = None) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=DEADLINE_S)
    try:
        connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        got = connection.getresponse()
        return got.status, got.read()
    finally:
        connection.close()


def wait_until_gone(url: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        try:
            answer(url, "/")
        except ConnectionError:
            return
        time.sleep(0.1)
    pytest.fail("the page outlives its recorder")


def test_up_records_shows_and_ends_together(tmp_path: Path) -> None:
    # GIVEN a machine on which somebody has the usual port
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 8321))
            taken.listen()
        except OSError:
            pass  # then it is taken by somebody else
        up = Up(tmp_path)
        try:
            said = up.wait_for("nothing wrong here? zombiescope demo")
            # THEN the text says where the page is, what is recorded, what is missing, and ends with the demo
            assert "port 8321 is taken; the page is on" in said
            lines = said.strip().splitlines()
            page = next(number for number, line in enumerate(lines) if line.startswith("the page: http://127.0.0.1:"))
            recorded = next(number for number, line in enumerate(lines) if line.startswith("  recorded: "))
            assert page < recorded
            assert lines[-1] == "nothing wrong here? zombiescope demo"
            url, _, token = lines[page].removeprefix("the page: ").partition("#token=")
            # AND the page answers with what is recorded
            end = time.monotonic() + DEADLINE_S
            while (got := answer(url, "/api/v1/info", token))[0] == 503:
                assert time.monotonic() < end, got
                time.sleep(0.2)
            assert json.loads(got[1])["live"] is True
            # AND it is a process of its own, which does not wait behind everybody, and a child of the recorder
            assert up.process.pid in _recorders()
            pages = _pages(up.process.pid)
            assert len(pages) == 1
            assert os.getpriority(os.PRIO_PROCESS, pages[0]) == 0
            children = Path(f"/proc/{up.process.pid}/task/{up.process.pid}/children").read_text().split()
            assert str(pages[0]) in children
        finally:
            up.stop()
    assert up.process.returncode == 0
    wait_until_gone(url)


def _recorders() -> list[int]:
    return [pid for pid, words in _commands() if "zombiescope.recorder" in words]


def _pages(recorder: int) -> list[int]:
    return [pid for pid, words in _commands() if "zombiescope.web" in words and f'"pid": {recorder},' in words[-1]]


def _commands() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield (
                    int(entry.name),
                    (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0"),
                )
            except OSError:
                continue


def test_a_token_is_asked_for_and_nobody_reads_it_off_a_command_line(tmp_path: Path) -> None:
    up = Up(tmp_path, "--listen", "0.0.0.0:0")
    try:
        said = up.wait_for("nothing wrong here? zombiescope demo")
        found = re.search(r"the page: (http://\S+?:(\d+)/)#token=(\S+)", said)
        assert found is not None, said
        url, token = f"http://127.0.0.1:{found[2]}/", found[3]
        assert answer(url, "/api/v1/recordings")[0] == 401
        assert answer(url, "/api/v1/recordings", token)[0] == 200
        assert not [words for _, words in _commands() if any(token in word for word in words)]
    finally:
        up.stop()


def test_a_killed_recorder_takes_its_page_along_and_a_browser_is_opened(tmp_path: Path) -> None:
    # GIVEN a display and a browser that writes down what it is shown
    browser = tmp_path / "browser"
    lines = (
        f'echo "$1" > {tmp_path}/line',
        f'cat "${{1#file://}}" > {tmp_path}/new',
        f"mv {tmp_path}/new {tmp_path}/shown",
    )
    browser.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    browser.chmod(0o755)
    up = Up(tmp_path, "--open", "--listen", "127.0.0.1:0", DISPLAY=":77", BROWSER=f"{browser} %s")
    try:
        said = up.wait_for("nothing wrong here? zombiescope demo")
        found = re.search(r"the page: (http://127\.0\.0\.1:\d+/)#token=(\S+)", said)
        assert found is not None
        end = time.monotonic() + DEADLINE_S
        while not (tmp_path / "shown").exists():
            assert time.monotonic() < end, "no browser was opened"
            time.sleep(0.1)
        # THEN it is shown the address with the token, which its command line does not say
        assert f'url={found[1]}#token={found[2]}"' in (tmp_path / "shown").read_text()
        assert (tmp_path / "line").read_text().startswith("file://")
        # WHEN the recorder is killed
        up.process.kill()
        up.process.wait()
        # THEN nobody is left
        wait_until_gone(found[1])
    finally:
        up.stop()
