"""export and push as a person or a script meets them."""

from __future__ import annotations

import gzip
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.recordings import Written, write_recording
from tests.helpers.stand_in import StandIn, running

FORMATS = ("collapsed", "pprof", "otlp", "speedscope", "firefox", "perf-script")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Twenty seconds of four cores; kubelet holds the last of them from +10s to +16s."""
    return write_recording(tmp_path_factory.mktemp("rec") / "flight", cpus=4, seconds=20)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_holds_every_sample(cli: Cli, written: Written, name: str) -> None:
    file = cli.home / "out"
    done = cli("export", str(written.dir), "--format", name, "-o", str(file), "--json")
    assert (done.code, done.err) == (0, "")
    told = done.document
    assert told["schema"] == "zombiescope.export/1"
    assert (told["format"], told["samples"], told["bytes"]) == (name, written.samples, file.stat().st_size)
    assert [path.name for path in cli.home.iterdir()] == ["out"], "nothing is left aside"


@pytest.mark.parametrize("name", ["perf-script", "pprof"])
def test_a_file_and_standard_output_are_the_same(cli: Cli, written: Written, name: str) -> None:
    file = cli.home / "out"
    assert cli("export", str(written.dir), "--format", name, "-o", str(file)).code == 0
    piped = subprocess.run(
        [sys.executable, "-m", "zombiescope.cli.main", "export", str(written.dir), "--format", name],
        capture_output=True, check=True, env=cli.environment(),
    )  # fmt: skip
    assert piped.stdout == file.read_bytes()
    assert piped.stderr == b""


def collapsed(cli: Cli, written: Written, *options: str) -> int:
    done = cli("export", str(written.dir), "--format", "collapsed", *options)
    return sum(int(line.rpartition(" ")[2]) for line in done.out.splitlines())


def test_window_and_filters_choose(cli: Cli, written: Written) -> None:
    assert collapsed(cli, written) == written.samples
    assert collapsed(cli, written, "--from", "+10s", "--to", "+16s", "--cpu", "3") == 6 * 99
    assert collapsed(cli, written, "--at", "+11s", "--comm", "kubelet", "--kernel", "--cpu", "3") == 99
    assert collapsed(cli, written, "--match", "memcg_numa_stat_show") == 6 * 99


def test_nothing_selected_is_said(cli: Cli, written: Written) -> None:
    done = cli("export", str(written.dir), "--format", "collapsed", "--comm", "nobody")
    assert (done.code, done.out) == (0, "")
    assert "no samples with comm nobody" in done.err


def test_a_name_that_ends_in_gz_is_compressed(cli: Cli, written: Written) -> None:
    plain, packed = cli.home / "a.json", cli.home / "a.json.gz"
    for file in (plain, packed):
        assert cli("export", str(written.dir), "--format", "speedscope", "-o", str(file)).code == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    profile = cli.home / "cpu.pb.gz"
    cli("export", str(written.dir), "--format", "pprof", "-o", str(profile))
    assert gzip.decompress(profile.read_bytes())[:1] == b"\x0a", "pprof is compressed once"


def test_speedscope_by_process(cli: Cli, written: Written) -> None:
    done = cli("export", str(written.dir), "--format", "speedscope", "--by", "thread", "--comm", "kubelet")
    assert [profile["name"] for profile in json.loads(done.out)["profiles"]] == ["kubelet [1201]"]


def test_a_terminal_gets_no_binary(cli: Cli, written: Written) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "zombiescope.cli.main", "export", str(written.dir), "--format", "pprof"],
            stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, env=cli.environment(),
        )  # fmt: skip
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 1
    assert (
        done.stderr
        == "zombiescope: pprof is binary and would garble the terminal; name a file with -o, or use a pipe\n"
    )


def test_a_place_that_cannot_be_written_is_one_line(cli: Cli, written: Written) -> None:
    done = cli("export", str(written.dir), "--format", "collapsed", "-o", str(cli.home / "none" / "x"))
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "could not be written: No such file or directory" in done.err


def test_an_old_file_stays_when_the_new_one_fails(cli: Cli, tmp_path: Path, written: Written) -> None:
    file = cli.home / "out"
    file.write_text("old")
    done = cli("export", str(tmp_path / "nowhere"), "--format", "collapsed", "-o", str(file))
    assert (done.code, file.read_text()) == (1, "old")


# --- push ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with running() as peer:
        yield peer


def test_push_says_what_was_accepted(cli: Cli, written: Written, stand_in: StandIn) -> None:
    done = cli("push", str(written.dir), "--as", "pyroscope", stand_in.url, "--name", "train", "--json")
    assert (done.code, done.err) == (0, "")
    told = done.document
    assert told["schema"] == "zombiescope.push/1"
    assert (told["accepted"], told["requests"]) == (written.samples, 2)
    assert told["bytes"] == sum(len(asked.body) for asked in stand_in.asked)
    assert stand_in.asked[0].path == "/push.v1.PusherService/Push"
    assert all(name in stand_in.asked[0].body for name in (b"train", b"lab", b"us-east-1a"))


def test_push_takes_window_filters_and_the_default_recording(cli: Cli, written: Written, stand_in: StandIn) -> None:
    options = ("--from", "+10s", "--until", "+16s", "--cpu", "3", "--every", "2s", "--label", "team=x", "--json")
    done = cli("push", "--as", "otlp", stand_in.url, *options, ZOMBIESCOPE_DIR=str(written.dir))
    assert (done.document["accepted"], done.document["requests"]) == (6 * 99, 3)


def test_push_sends_headers_and_token(cli: Cli, written: Written, stand_in: StandIn) -> None:
    secret = cli.home / "token"
    secret.write_text("s3cret\n")
    options = ("--header", "X-Scope-OrgID=team 7", "--token-file", str(secret), "--every", "1h")
    done = cli("push", str(written.dir), "--as", "otlp", stand_in.url, *options)
    assert done.code == 0
    assert f"accepted {written.samples:,} samples in 1 requests" in done.err
    headers = stand_in.asked[0].headers
    assert (headers["authorization"], headers["x-scope-orgid"]) == ("Bearer s3cret", "team 7")
    assert headers["user-agent"].startswith("zombiescope/")


def test_a_refusal_is_one_line_and_says_how_far_it_came(cli: Cli, written: Written, stand_in: StandIn) -> None:
    stand_in.answers = [(200, {}, b""), (401, {}, b"who are you")]
    done = cli("push", str(written.dir), "--as", "pyroscope", stand_in.url)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "answers 401 Unauthorized: who are you; give --token-file" in done.err
    assert "(1 requests with " in done.err


def test_a_token_that_cannot_be_read_is_one_line(cli: Cli, written: Written) -> None:
    for name, content in (("none", None), ("empty", " \n")):
        file = cli.home / name
        if content is not None:
            file.write_text(content)
        done = cli("push", str(written.dir), "--as", "otlp", "http://127.0.0.1:1", "--token-file", str(file))
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert "--token-file" in done.err


def test_a_dead_peer_is_one_line(cli: Cli, written: Written) -> None:
    done = cli("push", str(written.dir), "--as", "otlp", "http://nowhere.invalid:4318", "--json")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "http://nowhere.invalid:4318 cannot be reached" in done.err
