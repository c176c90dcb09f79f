"""`zombiescope selftest`: in the process model of the live diagnosis, whatever becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.cli import Cli

from zombiescope.diagnosis.selftest import built_in, process

SITE = """
import os, signal, sys
if "zombiescope.diagnosis.standby" in sys.orig_argv:
    {body}
"""
IN_THE_PASS = """import zombiescope.diagnosis.selftest.one_pass as one_pass
    def examine(*_, **__):
        {body}
    one_pass.examine = examine
"""


def broken(cli: Cli, body: str) -> dict[str, str]:
    """The environment in which the process of the live diagnosis does that when it starts."""
    place = cli.home / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(SITE.format(body=body))
    return {"PYTHONPATH": f"{place}:{cli.environment()['PYTHONPATH']}"}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_it_passes_here_and_writes_nothing_even_without_a_temporary_folder(cli: Cli) -> None:
    done = cli("selftest", TMPDIR="/nonexistent")
    assert (done.code, done.err) == (0, "")
    expected = built_in.expected()
    said = " ".join(done.out.split())
    assert said.startswith(f"ok: found {expected['pattern']} by {expected['culprit']} in the built-in recording")
    assert (expected["pattern"], expected["culprit"].split(",")[0]) == ("zombie-memcg", "ecs.service")
    assert list(cli.home.iterdir()) == []


def test_the_document(cli: Cli) -> None:
    done = cli("selftest", "--json")
    document = done.document
    assert (done.code, done.err) == (0, "")
    assert document["schema"] == "zombiescope.selftest/1"
    assert document["ok"] is True
    assert document["found"] == document["expected"] == built_in.expected()
    assert (document["why"], document["fix"]) == ("", "")
    assert document["cpu_seconds"] > 0
    assert 0 < document["seconds"] < document["total_seconds"]
    assert {"python", "numpy", "pyarrow", "zstandard"} <= document["libraries"].keys()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (IN_THE_PASS.format(body="os.kill(os.getpid(), signal.SIGSEGV)"), "a diagnosis pass died of SIGSEGV with"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "the live diagnosis died of SIGSEGV when it started with pyarrow"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "the live diagnosis was killed (SIGKILL) when it started"),
        ("sys.modules['pyarrow'] = None", "the live diagnosis could not start with pyarrow"),
    ],
    ids=["the pass", "the start", "killed", "no library"],
)
def test_a_crash_is_one_line_with_the_reason_and_exit_code_1(body: str, why: str, cli: Cli) -> None:
    done = cli("selftest", "--json", **broken(cli, body))
    assert done.code == 1
    assert done.document["ok"] is False
    assert done.document["why"].startswith(why)
    assert done.document["found"] is None
    assert done.document["expected"] == built_in.expected()
    (line,) = done.err.splitlines()
    assert line.startswith(f"zombiescope: the self-test failed: {why}")
    assert line.endswith(done.document["fix"])


def test_a_live_diagnosis_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in broken(Cli(tmp_path), "signal.pause()").items():
        monkeypatch.setenv(name, value)
    outcome = process.run(limit_s=1.0).outcome
    assert not outcome.ok
    assert outcome.why.startswith("the live diagnosis did not start within 1 s")
