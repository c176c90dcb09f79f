"""The self-test: the built-in recording, the pass over it, and each way in which that pass can fail."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zombiescope.diagnosis.selftest import built_in, one_pass, process, trial
from zombiescope.diagnosis.selftest.outcome import MEMORY, OWN_ENVIRONMENT, REINSTALL, Outcome
from zombiescope.recorder import doctor_process
from zombiescope.store import schema
from zombiescope.store.reader import Recording, open_recording

ROOT = Path(__file__).parents[3]
RECORDING_BYTES = 120_000
STAND_IN = """
import os, resource, signal, sys, time
from pathlib import Path
from zombiescope.diagnosis import live, standby
from zombiescope.diagnosis.selftest import built_in, one_pass, trial
def examine(facts, **options):
    {body}
one_pass.examine = examine
live.look = lambda node_dir, from_us: live.Looked([], [])
{setting}
sys.exit(standby.main(sys.argv[1:]))
"""


# --- what is shipped -------------------------------------------------------------------------------------------------


def test_the_pass_finds_in_the_built_in_recording_what_is_declared_beside_it() -> None:
    assert one_pass.answer() == {"found": built_in.expected()}


def test_the_declared_answer_is_the_founding_case() -> None:
    expected = built_in.expected()
    assert (expected["pattern"], expected["severity"]) == ("zombie-memcg", "critical")
    assert expected["culprit"].startswith("ecs.service,")
    assert (expected["hog"], expected["core"]) == ("kubelet", 39)


def test_the_recording_is_small() -> None:
    assert built_in.RECORDING.stat().st_size <= RECORDING_BYTES


def test_the_recording_holds_parquet_and_log_segments_with_samples_and_counters() -> None:
    """A live recording has both, and libraries crashed on tables of several chunks."""
    with open_recording(built_in.RECORDING) as recording:
        assert recording.manifests
        assert recording.segments
        assert [part for part in recording.segments if part.touches(schema.SAMPLES, None, None)]
        assert recording.table("samples").column("stack").num_chunks > 1
        assert len(recording.table("counters"))


def test_the_recording_names_no_machine_and_no_path_of_where_it_was_made() -> None:
    with open_recording(built_in.RECORDING) as recording:
        assert recording.name == "selftest"
        assert recording.node.keys().isdisjoint({"imported", "perf_cmdline", "boot_id", "machine_id"})
        words = json.dumps(recording.node) + "".join(_texts(recording))
    assert len(words) > 1000
    for private in ("/home/", "/root/", "/tmp/", "ip-10-"):
        assert private not in words


def _texts(recording: Recording) -> list[str]:
    return [
        str(value)
        for table in schema.TABLES
        for column in table.columns
        if column.kind == "text"
        for value in set(recording.table(table.name).column(column.name).to_pylist())
        if value
    ]


def test_the_script_makes_the_recording_that_is_shipped(tmp_path: Path) -> None:
    """Compressed bytes may differ between versions of the libraries; rows may not."""
    subprocess.run([sys.executable, ROOT / "scripts" / "selftest_recording.py", tmp_path], check=True)
    with open_recording(built_in.RECORDING) as shipped, open_recording(tmp_path / "recording.zscope") as made:
        for table in schema.TABLES:
            assert made.table(table.name).equals(shipped.table(table.name)), table.name
    assert json.loads((tmp_path / "expected.json").read_text())["found"] == built_in.expected()


def test_what_is_shipped_is_declared_as_package_data() -> None:
    pyproject, manifest = ((ROOT / name).read_text() for name in ("pyproject.toml", "MANIFEST.in"))
    for path in (built_in.RECORDING, built_in.EXPECTED):
        assert f'"{path.name}"' in pyproject.partition('"zombiescope.diagnosis.selftest" = ')[2].partition("\n")[0]
        assert str(path.relative_to(ROOT)) in manifest


def test_a_node_gets_no_code_that_makes_the_recording() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "selftest_recording.py"))
    assert script["FOLDER"] == built_in.RECORDING.parent
    assert {path.suffix for path in script["FOLDER"].iterdir() if path.is_file()} == {".py", ".json", ".zscope"}


# --- what an end of the pass means -----------------------------------------------------------------------------------


FOUND = {"found": built_in.expected(), "exit": 0, "cpu_us": 250_000}


def test_the_expected_answer_passes() -> None:
    outcome = trial.judged(FOUND, 0.3)
    assert (outcome.ok, outcome.why, outcome.fix, outcome.cpu_us) == (True, "", "", 250_000)
    assert outcome.found == built_in.expected()
    assert {"python", "numpy", "pyarrow"} <= outcome.libraries.keys()
    assert outcome.text == "the self-test passed"


@pytest.mark.parametrize(
    ("ended", "seconds", "why", "fix"),
    [
        ({"exit": -signal.SIGSEGV}, 0.1, "a diagnosis pass died of SIGSEGV with pyarrow ", OWN_ENVIRONMENT),
        ({"exit": -signal.SIGILL}, 0.1, "died of SIGILL with pyarrow ", OWN_ENVIRONMENT),
        ({"exit": -signal.SIGKILL}, 0.1, "was killed (SIGKILL), as the kernel does when memory runs out", MEMORY),
        ({"exit": -signal.SIGKILL, "cpu_us": 1_250_000}, 20.1, "did not end within 20 s", "zombiescope selftest"),
        ({"exit": -signal.SIGKILL, "cpu_us": 1_250_000}, 20.1, "it used 1.2 CPU-seconds", "own environment"),
        ({"exit": -signal.SIGXCPU}, 20.1, "died of SIGXCPU", OWN_ENVIRONMENT),
        ({"exit": 1, "why": "ArrowInvalid: no (merge.py:3)"}, 0.1, "ArrowInvalid: no (merge.py:3)", OWN_ENVIRONMENT),
        ({"exit": 3}, 0.1, "exited with code 3 and gave no answer", OWN_ENVIRONMENT),
        ({"exit": 0}, 0.1, "exited with code 0 and gave no answer", OWN_ENVIRONMENT),
        ({"exit": 0, "memory": "malloc of size 9 failed"}, 0.1, "ran out of memory (malloc of size 9 failed)", MEMORY),
        ({"exit": 0, "damaged": "x: gone"}, 0.1, "this installation is damaged: x: gone", REINSTALL),
        ({"exit": 0, "found": {"incidents": 0}}, 0.1, "wrong answer", OWN_ENVIRONMENT),
        ({"why": "the process for it could not be started: no"}, 0.1, "could not be started: no", OWN_ENVIRONMENT),
    ],
)
def test_each_failure_is_reported_with_its_reason_and_its_fix(
    ended: dict[str, Any], seconds: float, why: str, fix: str
) -> None:
    outcome = trial.judged(ended, seconds)
    assert not outcome.ok
    assert why in outcome.why
    assert fix in outcome.fix
    assert outcome.text == f"the self-test failed: {outcome.why}; incidents may not be detected; {outcome.fix}"
    assert "\n" not in outcome.text


@pytest.mark.parametrize("name", built_in.expected())
def test_each_part_of_the_answer_counts(name: str) -> None:
    outcome = trial.judged({**FOUND, "found": {**built_in.expected(), name: "other"}}, 0.3)
    assert not outcome.ok
    assert f"{name} other instead of {built_in.expected()[name]}" in outcome.why


def test_a_pass_that_cannot_be_started_is_a_failure_and_raises_nothing() -> None:
    def refused(_: Callable[[], dict[str, Any]], __: float) -> dict[str, Any]:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    document = trial.run(refused)
    assert document["ok"] is False
    assert "could not be started: Resource temporarily unavailable" in document["why"]


def test_the_outcome_survives_the_pipe() -> None:
    outcome = trial.judged({"exit": -signal.SIGSEGV, "cpu_us": 7}, 0.1)
    assert Outcome.of(json.loads(json.dumps(outcome.document()))) == outcome


# --- files that are missing or damaged -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RECORDING", "EXPECTED"])
def test_a_missing_file_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in, name, tmp_path / "gone")
    assert one_pass.answer() == {"damaged": f"{tmp_path / 'gone'}: No such file or directory"}


def test_a_truncated_recording_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = tmp_path / "short.zscope"
    short.write_bytes(built_in.RECORDING.read_bytes()[:50_000])
    monkeypatch.setattr(built_in, "RECORDING", short)
    assert one_pass.answer() == {"damaged": f"{short} is not the file that was shipped (its SHA-256 differs)"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"recording_sha256": "0"}', '{"found": 1}'])
def test_a_damaged_declaration_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "expected.json"
    damaged.write_text(text)
    monkeypatch.setattr(built_in, "EXPECTED", damaged)
    assert str(damaged) in one_pass.answer()["damaged"]
    assert trial.judged(FOUND, 0.3).fix == REINSTALL


# --- in the standby process ------------------------------------------------------------------------------------------


def ready(body: str, setting: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """(the self-test in the `ready` line, the answer to a pass afterwards) of a standby process."""
    program = STAND_IN.format(body=body, setting=setting)
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "/nowhere"],
        input=b"1\n", capture_output=True, timeout=120, check=True, env=os.environ | doctor_process.ENVIRONMENT,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines()]
    (first,) = (each for each in said if each.get("ready"))
    (answer,) = (each for each in said if "exit" in each)
    return first["selftest"], answer


@pytest.mark.parametrize(
    ("body", "setting", "why"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "", "died of SIGSEGV with pyarrow"),
        ("os._exit(7)", "", "exited with code 7"),
        ("raise KeyError('no kernel of this name')", "", "KeyError: 'no kernel of this name'"),
        ("raise MemoryError", "", "ran out of memory"),
        ("bytearray(2 << 30)", "", "ran out of memory"),
        ("time.sleep(600)", "trial.LIMIT_S = 0.5", "did not end within 0.5 s"),
        ("exec('while True: pass')", "trial.LIMIT_S = 0.5", "did not end within 0.5 s"),
        ("exec('while True: pass')", "standby.LOOK_CPU_S = 1; trial.LIMIT_S = 100.0", "died of SIGXCPU"),
    ],
    ids=["SIGSEGV", "exit", "exception", "MemoryError", "memory", "hang", "loop", "CPU"],
)
def test_a_pass_that_fails_is_in_the_ready_line_and_later_passes_are_served(body: str, setting: str, why: str) -> None:
    selftest, answer = ready(body, setting)
    assert selftest["ok"] is False
    assert why in selftest["why"]
    assert selftest["text"].startswith("the self-test failed: ")
    assert answer["exit"] == 0


def test_the_ready_line_says_that_it_passed_and_what_it_cost(tmp_path: Path) -> None:
    selftest, answer = ready(
        "return real(facts, **options)", "from zombiescope.diagnosis.diagnose import examine as real"
    )
    assert selftest["ok"] is True
    assert selftest["found"] == built_in.expected()
    assert selftest["cpu_us"] > 0
    assert selftest["seconds"] > 0
    assert answer["exit"] == 0


def test_a_damaged_recording_leaves_the_standby_process_alone(tmp_path: Path) -> None:
    damaged = bytearray(built_in.RECORDING.read_bytes())
    damaged[60_000:60_100] = bytes(100)
    place = tmp_path / "recording.zscope"
    place.write_bytes(damaged)
    assert zipfile.is_zipfile(place)
    selftest, answer = ready("raise AssertionError", f"built_in.RECORDING = Path({str(place)!r})")
    assert f"this installation is damaged: {place}" in selftest["why"]
    assert answer["exit"] == 0


def test_the_command_starts_what_the_recorder_starts() -> None:
    assert process.MODULE == doctor_process.MODULE
