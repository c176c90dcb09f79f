"""A minute of fuzzing for all targets together, from one start value: the same inputs each time, on every machine.

Where the native module lies built with the sanitizers (`make soak-fuzz` builds it, in a minute of CPU), its targets run
under them; elsewhere they run with the module that users have, and only what breaks that is seen.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.fuzz import sanitizer
from tests.fuzz.campaign import results
from tests.fuzz.targets import TARGETS

EXECUTIONS = 1000
SECONDS = 1
"""For each target, whichever comes first."""
START = 16
MOST_S = 240

Results = dict[str, dict[str, object]]

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("atheris") is None, reason="atheris is built for x86-64 and Python up to 3.13"
    ),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    place = tmp_path_factory.mktemp("fuzz")
    said: Results = {}
    for native in (True, False):
        executions = {name: EXECUTIONS for name, target in TARGETS.items() if target.native is native}
        module = sanitizer.built() if native else None
        for result in results(executions, place, seconds=SECONDS, seed=START, module=module, most_s=MOST_S / 2):
            said[str(result["name"])] = {**result, "place": place}
    return said


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_it(name: str, found: Results) -> None:
    if name not in found:
        pytest.skip("the machine is too busy: the minute was over")
    result = found[name]
    place = Path(str(result["place"]))
    inputs = [(place / "crashes" / name / each).read_bytes() for each in result["crashes"]]  # type: ignore[attr-defined]
    assert result["status"] == 0, (result["fault"], inputs)
    assert int(str(result["executions"])) > 0
