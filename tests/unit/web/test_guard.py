"""Attacks on the server, sent over a real socket: every one of them is refused in one line, none changes anything."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.helpers.cli import Cli
from tests.helpers.page_server import Got, PageServer, page_server
from tests.helpers.recordings import Written

from zombiescope.base import listen_address
from zombiescope.base.listen_address import ListenAddress
from zombiescope.web.guard import POLICY, access
from zombiescope.web.server import browser_address


def port(server: PageServer, name: str) -> str:
    return f"{name}:{server.port}"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_the_server_goes_by_its_own_names(server: PageServer, name: str) -> None:
    assert server.ask("/api/v1/info", Host=port(server, name)).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost", "localhost:80", "localhost:1{port}",
        "0.0.0.0:{port}", "10.0.0.1:{port}", "user@localhost:{port}", "localhost:{port}/", "", " ",
        "localhost:{port}:{port}", "localhost:٨", "[::1:{port}", "x" * 400, "localhost.:{port}", "127.1:{port}",
        "2130706433:{port}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/v1/info", "/assets/x.js"])
def test_a_name_that_somebody_pointed_here_is_refused(server: PageServer, host: str, path: str) -> None:
    """DNS rebinding: the browser believes that it talks to evil.example."""
    said = host.format(port=server.port)
    got = server.ask(path, Host=said.encode().decode("latin-1", "replace"))
    assert got.status in (400, 421)
    if got.status == 421:
        assert "--host" in got.error["fix"]


def test_two_hosts_are_none(server: PageServer) -> None:
    with socket.create_connection((server.address, server.port)) as made:
        own = port(server, "localhost")
        made.sendall(f"GET /api/v1/info HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n".encode())
        assert made.recv(4096).split(b" ")[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://localhost", "http://localhost:1", "file://", "http://[", "x"],
)
@pytest.mark.parametrize("path", ["/", "/api/v1/cores", "/api/v1/live"])
def test_a_foreign_page_is_refused(server: PageServer, origin: str, path: str) -> None:
    got = server.ask(path, Origin=origin)
    assert got.status == 403
    assert "another site" in got.error["what"]


def test_the_servers_own_page_is_not(server: PageServer) -> None:
    got = server.ask("/api/v1/info", Origin=f"http://{port(server, 'localhost')}", Sec_Fetch_Site="same-origin")
    assert got.status == 200
    assert "access-control-allow-origin" not in got.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_embeds_is_refused_but_a_link_to_the_page_is_followed(server: PageServer, site: str) -> None:
    assert server.ask("/api/v1/export?format=collapsed", Sec_Fetch_Site=site).status == 403
    assert server.ask("/", Sec_Fetch_Site=site).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/api/v1/info", "/api/v1/live", "/api/v1/incidents/x", "/api/v1/nothing"])
def test_nothing_can_be_changed(server: PageServer, method: str, path: str) -> None:
    got = server.ask(path, method, body=b'{"x": 1}')
    assert got.status == 405
    assert got.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd", "/assets/../../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/%2e%2e%2f%2e%2e%2fserver.py", "//etc/passwd", "/..%5c..%5cetc%5cpasswd", "/page.py", "/assets/",
        "/%00", "/etc/passwd%00.js", "/api/../page.py", "/api/v1/../../../../etc/passwd",
        "/api/v1/incidents/..%2f..%2f..%2fetc%2fpasswd", "/api/v1/incidents/../info",
    ],
)  # fmt: skip
def test_no_path_of_a_request_becomes_a_file(server: PageServer, path: str) -> None:
    got = server.ask(path)
    assert got.status in (200, 404, 400)
    assert b"root:" not in got.body
    assert b"import annotations" not in got.body
    if got.status == 200:
        assert b"<!doctype html>" in got.body.lower()


@pytest.mark.parametrize(
    "value", ["/etc", "../../etc", "/etc/passwd", "here/../..", "node=lab", "\x00", "%2e%2e", "x" * 299]
)
@pytest.mark.parametrize("name", ["rec", "against_rec"])
def test_a_recording_is_a_key_and_never_a_path(server: PageServer, name: str, value: str) -> None:
    got = server.api("flamegraph", **{name: value, "against": "+0s..+5s"})
    assert got.status == 404
    assert got.error["fix"] == "GET /api/v1/recordings lists them"


@pytest.mark.parametrize("against", ["/etc@+0s..+5s", "../x", "/etc/passwd", "DIR", ".."])
def test_the_other_window_is_no_path_either(server: PageServer, against: str) -> None:
    """On the command line --against may name a directory."""
    got = server.api("flamegraph", against=against)
    assert got.status == 400
    assert "etc" not in (got.error["fix"] or "")


@pytest.mark.parametrize("path", ["/", "/api/v1/info", "/api/v1/nothing", "/api/v1/heatmap", "/api/v1/cores?last=x"])
def test_every_answer_closes_the_page_to_others(server: PageServer, path: str) -> None:
    for got in (server.ask(path), server.ask(path, Host="evil.example")):
        assert got.headers["content-security-policy"] == POLICY
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["referrer-policy"] == "no-referrer"
        assert got.headers["cross-origin-resource-policy"] == got.headers["cross-origin-opener-policy"] == "same-origin"
        assert "server" not in got.headers
    assert "unsafe" not in POLICY


def test_head_has_no_body(server: PageServer) -> None:
    got = server.ask("/", "HEAD")
    assert (got.status, got.body) == (200, b"")


# --- with a token -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(written: Written, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """On all addresses, so that it asks for a token."""
    with page_server(str(written.dir), home=tmp_path_factory.mktemp("home"), listen="0.0.0.0:0") as made:
        made.anonymous = True
        yield made


def test_another_address_makes_a_token_and_says_so(guarded: PageServer) -> None:
    assert guarded.token is not None
    assert len(guarded.token) >= 32
    assert any("needs the token" in line for line in guarded.said)
    assert sum(guarded.token in line for line in guarded.said) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Authorization": "Bearer"}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic {token}"},
        {"Authorization": "{token}"}, {"Cookie": "zombiescope-session-{port}={token}"},
        {"Cookie": "zombiescope-session-{port}="},
        {"Cookie": "token={token}"}, {"Authorization": "Bearer {token}x"}, {"Authorization": "Bearer ä"}, {"Cookie":
        "=;;\x01"},
    ],
)  # fmt: skip
def test_without_the_token_nothing_is_told(guarded: PageServer, headers: dict[str, str]) -> None:
    token = guarded.token or ""
    said = {name: value.format(token=token, port=guarded.port) for name, value in headers.items()}
    for path in ("/api/v1/info", "/api/v1/live", "/api/v1/openapi.json", "/api/v1/recordings", "/api/v1/nothing"):
        got = guarded.ask(path, "GET", None, **said)
        assert got.status in (400, 401)
        assert b"lab" not in got.body
    assert guarded.ask(f"/api/v1/info?token={token}").status == 401, "a token in the address ends up in logs"


def test_the_page_itself_may_be_loaded_since_it_brings_the_token(guarded: PageServer) -> None:
    assert guarded.ask("/").status == 200


def test_the_token_opens_and_nothing_is_left_in_the_browser(guarded: PageServer) -> None:
    """A cookie goes to every port of a host, so to the servers of all users of the machine."""
    bearer = f"Bearer {guarded.token}"
    for path in ("/", "/api/v1/info", "/api/v1/export?format=collapsed&last=1s", "/api/v1/nothing"):
        assert "set-cookie" not in guarded.ask(path, Authorization=bearer).headers
    assert guarded.ask("/api/v1/info", Authorization=bearer).document["node"] == "lab"
    assert guarded.ask("/api/v1/session", "POST", b"", Authorization=bearer).status == 405


def test_an_address_by_number_was_not_rebound(guarded: PageServer) -> None:
    bearer = f"Bearer {guarded.token}"

    def asked(host: str) -> Got:
        return guarded.ask("/api/v1/info", Host=f"{host}:{guarded.port}", Authorization=bearer)

    assert asked("192.168.7.7").status == asked("[fe80::1]").status == 200
    assert asked("gpu-17.example.org").status == asked("192.168.7.7.nip.io").status == 421


def test_a_name_that_is_given_is_accepted(written: Written, tmp_path: Path) -> None:
    with page_server(str(written.dir), "--host", "gpu-17", "--host", "tunnel:9000", home=tmp_path) as server:
        assert server.ask("/api/v1/info", Host=f"gpu-17:{server.port}").status == 200
        assert server.ask("/api/v1/info", Host="tunnel:9000", Origin="http://tunnel:9000").status == 200
        assert server.ask("/api/v1/info", Host="tunnel:9001").status == 421
        assert server.ask("/api/v1/info", Host="gpu-17", Origin="https://gpu-17").status == 200, "behind a proxy"
        assert server.ask("/api/v1/info", Host="gpu-18").status == 421


def test_on_the_loopback_every_user_of_the_machine_is_asked_for_the_token_too(server: PageServer) -> None:
    assert server.token is not None
    assert len(server.token) >= 32
    server.anonymous = True
    try:
        for path in ("/api/v1/info", "/api/v1/live", "/api/v1/recordings", "/api/v1/openapi.json"):
            assert server.ask(path).status == 401
        assert server.ask("/").status == 200, "the page itself brings no data"
        assert "Authorization: Bearer" in server.ask("/api/v1/info").error["fix"]
    finally:
        server.anonymous = False
    assert server.ask("/api/v1/info", Authorization=f"Bearer {server.token}").status == 200


def test_without_a_token_only_on_the_loopback(written: Written, tmp_path: Path) -> None:
    with page_server(str(written.dir), "--no-token", home=tmp_path) as server:
        assert server.token is None
        assert any("Every user of this machine can read it" in line for line in server.said)
        assert server.ask("/api/v1/info").status == 200
    done = Cli(tmp_path)("serve", str(written.dir), "--no-token", "--listen", "0.0.0.0:0")
    assert done.code == 2
    assert "reached from other machines" in " ".join(done.err.split())


def test_programs_that_ask_may_choose_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_TOKEN", "0123456789abcdef-_")
    assert listen_address.new_token() == "0123456789abcdef-_"
    for weak in ("", "short", "with a space in it", "x" * 600, "0123456789abcdef#"):
        monkeypatch.setenv("ZOMBIESCOPE_TOKEN", weak)
        with pytest.raises(ValueError, match="ZOMBIESCOPE_TOKEN must be 16 or more"):
            listen_address.new_token()


def test_a_browsers_command_line_does_not_show_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with browser_address("http://127.0.0.1:1/?a=1&b=2#token=geheim") as address:
        assert "geheim" not in address
        file = Path(urlsplit(address).path)
        assert "http://127.0.0.1:1/?a=1&amp;b=2#token=geheim" in file.read_text()
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not file.exists()
    with browser_address("http://127.0.0.1:1/") as address:
        assert address == "http://127.0.0.1:1/"


# --- where it listens -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "listen"),
    [
        ("127.0.0.1:8321", ListenAddress("127.0.0.1", 8321)), ("[::1]:9000", ListenAddress("::1", 9000)),
        ("9000", ListenAddress("127.0.0.1", 9000)), (":9000", ListenAddress("127.0.0.1", 9000)),
        ("0.0.0.0", ListenAddress("0.0.0.0", 8321)), ("[::]", ListenAddress("::", 8321)),
        ("localhost:1", ListenAddress("127.0.0.1", 1)),
    ],
)  # fmt: skip
def test_where_to_listen(text: str, listen: ListenAddress) -> None:
    found = listen_address.parse(text)
    assert (found.loopback, found.port) == (listen.loopback, listen.port)
    assert found == listen or text.startswith("localhost")


@pytest.mark.parametrize("text", ["127.0.0.1:x", "127.0.0.1:70000", "no.such.host.invalid:80", "1.2.3.4:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        listen_address.parse(text)


def test_a_taken_port(written: Written, tmp_path: Path) -> None:
    """One that was asked for is an error, in one line; the usual one gives way to the next."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        done = Cli(tmp_path)("serve", str(written.dir), "--listen", str(number))
        assert done.code == 1
        assert done.err.splitlines() == [
            f"zombiescope: 127.0.0.1:{number} cannot be listened on: Address already in use; name another with --listen"
        ]
        with listen_address.bound(ListenAddress("127.0.0.1", number), or_next=True) as made:
            assert listen_address.port_of(made) > number


def test_no_recording_is_one_line(tmp_path: Path) -> None:
    done = Cli(tmp_path)("serve", "nothing")
    assert (done.code, done.err) == (1, "zombiescope: there is no recording at nothing; 'zombiescope up' starts one\n")
    assert Cli(tmp_path)("serve", ".", "--listen", "nowhere.invalid:1").code == 2


def test_an_access_knows_ports_and_brackets() -> None:
    allowed = access("::1", 8321)
    assert allowed.host("[::1]:8321")
    assert not allowed.host("::1:8321")
    assert not allowed.host("[::1]")
    assert access("127.0.0.1", 80).host("localhost")


def test_ctrl_c_ends_it_while_somebody_watches(written: Written, tmp_path: Path) -> None:
    with (
        page_server(str(written.dir), home=tmp_path) as server,
        socket.create_connection((server.address, server.port)) as idle,
    ):
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 0
        assert idle.recv(10) == b""
