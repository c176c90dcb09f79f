"""The official SDK's client asks: in memory, over stdio and over HTTP, in both generations of the protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import IO, Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.helpers.page_server import page_server

from zombiescope.assistant.server import server
from zombiescope.assistant.tools import TOOLS
from zombiescope.web.recordings import Recordings

MODES = ("legacy", "2026-07-28")


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(60):
            await body()

    anyio.run(bounded)


async def everything(client: Client) -> None:
    """What an assistant does first."""
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == [tool.name for tool in TOOLS]
    found = document(await client.call_tool("incidents", {}))
    assert found["facts"]
    one = document(await client.call_tool("incident", {"id": found["facts"][0]["id"]}))
    assert one["cause"] == "zombie-memcg"
    checked = document(await client.call_tool("check", {"culprit": "kubelet"}))
    assert checked["verdict"] == "refuted"
    wrong = await client.call_tool("cores", {"hottest": 0})
    assert wrong.is_error


def document(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    found: dict[str, Any] = json.loads(result.content[0].text)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_in_memory(recordings: Recordings, mode: str) -> None:
    async def body() -> None:
        async with Client(server(recordings), mode=mode) as client:
            await everything(client)

    run(body)


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio(recorded: Path, mode: str) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "zombiescope.cli.start", "mcp", str(recorded)],
        env={"PATH": "/usr/bin:/bin"},
    )

    async def body() -> None:
        async with Client(stdio_client(started), mode=mode) as client:
            await everything(client)

    run(body)


@pytest.mark.parametrize("mode", MODES)
def test_over_http_with_the_token(recorded: Path, tmp_path: Path, mode: str) -> None:
    with page_server(str(recorded), home=tmp_path) as shown:
        address = f"http://{shown.address}:{shown.port}/mcp"

        async def body() -> None:
            headers = {"Authorization": f"Bearer {shown.token}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(address, http_client=http), mode=mode) as client,
            ):
                await everything(client)

        run(body)


def test_over_http_nobody_asks_without_the_token(recorded: Path, tmp_path: Path) -> None:
    with page_server(str(recorded), home=tmp_path) as shown:
        address = f"http://{shown.address}:{shown.port}/mcp"
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        with httpx2.Client() as http:
            assert http.post(address, json=body).status_code == 401
            assert http.post(address, json=body, headers={"Authorization": "Bearer wrong"}).status_code == 401
            assert http.get(address, headers={"Authorization": f"Bearer {shown.token}"}).status_code == 405
            foreign = {"Authorization": f"Bearer {shown.token}", "Origin": "http://evil.example"}
            assert http.post(address, json=body, headers=foreign).status_code == 403


def test_a_peer_that_means_harm_gets_answers_to_questions_and_to_nothing_else(recorded: Path) -> None:
    """Garbage, depth, length, half a character, and names of files where names of recordings belong."""

    def line(number: int, method: str, **params: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"

    about = {"name": "peer", "version": "1"}
    places = ("recording", "node", "dir", "fleet", "incident", "from")
    asked = [
        line(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
        b"\xff\x00{{{\n", b"[]\n", b"null\n", b'{"jsonrpc":"2.0"}\n', b"[" * 100_000 + b"\n",
        b'{"jsonrpc":"2.0","id":{"a":1},"method":7}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800","arguments":{"\\ud800":1}}}\n',
        line(2, "tools/call", name="x" * 2_000_000, arguments={}),
        *(line(10 + number, "tools/call", name="incidents", arguments={place: "/etc/passwd"})
          for number, place in enumerate(places)),
        line(99, "tools/list"),
    ]  # fmt: skip
    command = [sys.executable, "-m", "zombiescope.cli.start", "mcp", str(recorded)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(b"".join(asked))
            process.stdin.flush()
            answers = list(answered(process.stdout, 99))
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert b"Traceback" not in errors
    assert {10 + number for number in range(len(places))} | {0, 99} <= {one.get("id") for one in answers}
    assert not any("root:" in json.dumps(one) for one in answers)


def answered(lines: IO[bytes], last: int) -> Iterator[dict[str, Any]]:
    """Up to the answer to the last question, which may come before others."""
    awaited = {last, *range(10, 16)}
    while awaited and (line := lines.readline()):
        found = json.loads(line)
        awaited.discard(found.get("id"))
        yield found
