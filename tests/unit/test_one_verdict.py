"""One verdict for one minute: `cgroups`, `check`, `top`, the page and `diagnose` say the same of the same recording."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from tests.helpers.page_server import page_server
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.audit.surroundings import Surroundings
from zombiescope.base.severity import rank
from zombiescope.cli.check.document import document as check_document
from zombiescope.cli.main import run
from zombiescope.cli.top.feed import LiveFeed, PastFeed
from zombiescope.diagnosis.check.check import Audited
from zombiescope.diagnosis.check.examine import examine
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.patterns import zombie_memcg
from zombiescope.query.cgroups import cgroups
from zombiescope.query.memcg_cost import LeafCost, Load, judge
from zombiescope.query.memcg_walks import is_walk
from zombiescope.store.log import LogFrame, SegmentReader
from zombiescope.store.reader import open_recording

CALL = " ".join(SYSCALL)
RECLAIM = f"{CALL} vfs_write try_charge_memcg try_to_free_mem_cgroup_pages shrink_node mem_cgroup_iter"


def scene(*, walks: bool = True, share: float = 1.0) -> Scene:
    made = Scene(kernel="6.18.0").vmstat().census(240, 4_000).gauge("probe", "stat_leaf_ns", 20_000)
    return made.hog(RECLAIM, "worker", share=share) if walks else made.hog("", "trainer")


def of_cgroups(place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(["cgroups", str(place), "--json"]) == 0
    return str(json.loads(capsys.readouterr().out)["verdict"])


def of_page(place: Path) -> str:
    with page_server(str(place), home=_made(place.parent / "home")) as served:
        return str(served.api("cgroups").document["verdict"])


def _made(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return directory


def of_check(place: Path) -> str:
    with open_recording(place) as recording:
        made = examine(recording, Surroundings(), Audited())
    assert made is not None
    return str(check_document(made)["cgroups"]["verdict"])


def of_top(place: Path) -> set[str | None]:
    """As it is followed, and as it is looked at afterwards."""
    live = LiveFeed(place / "node=lab")
    live._take(_frames(place))
    with open_recording(place) as recording:
        return {live.zombies, PastFeed(recording).zombies}


def _frames(place: Path) -> list[LogFrame]:
    (segment,) = (place / "node=lab" / "log").glob("*.seg")
    with segment.open("rb") as file:
        return list(SegmentReader(file).frames())


@pytest.mark.parametrize(("walks", "verdict"), [(True, "costly"), (False, "watch")])
def test_five_answers_are_one(walks: bool, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = scene(walks=walks).write(tmp_path / "rec")
    told = {of_cgroups(place, capsys), of_page(place), of_check(place), *of_top(place)}
    assert told == {verdict}
    with open_recording(place) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
    assert any(cause.pattern == "zombie-memcg" for one in found.incidents for cause in one.causes) is walks


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_what_a_diagnosis_blames_is_never_called_harmless(share: float, tmp_path: Path) -> None:
    made = scene(share=share).hog(f"{CALL} vfs_read copy_page_to_iter", "worker", share=1 - share)
    with open_recording(made.write(tmp_path)) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
        view = cgroups(recording)
    blamed = [one for one in found.incidents if one.causes and one.causes[0].pattern == "zombie-memcg"]
    assert not blamed or view.verdict != "harmless"
    assert all(view.verdict == "costly" for one in blamed if rank(one.severity) == rank("critical"))


def test_every_stack_that_the_pattern_knows_counts_as_a_walk() -> None:
    for signature in zombie_memcg.PATTERN.signatures:
        for outer, inner in product(signature.outer, signature.inner):
            assert is_walk((outer, inner)), (outer, inner)


def test_an_estimate_alone_is_no_cost_where_nobody_was_seen_reading() -> None:
    leaf = LeafCost(numa_stat_ns=70_000)
    unseen, watched, seen = (
        judge("5.4.0", Load(1, 68_680, 240, 68_440, walked_cpus=cpus), leaf) for cpus in (None, 0.0, 0.9)
    )
    assert [each.verdict for each in (unseen, watched, seen)] == ["costly", "watch", "costly"]
    assert all("about" in each.why and "estimated" in each.why for each in (unseen, watched))


@pytest.mark.parametrize(("total", "live", "dying"), [(300, 240, 60), (180, 90, 90), (3_000, 2_900, 100)])
def test_walking_a_few_is_what_every_kernel_does(total: int, live: int, dying: int) -> None:
    assert judge("6.18.0", Load(1, total, live, dying, walked_cpus=0.9), LeafCost()).verdict == "harmless"


def test_a_dear_walk_of_some_hundreds_is_costly_wherever_it_is_asked() -> None:
    """As the diagnosis has it: how many there are is no cause, what walking them takes is."""
    verdict = judge("6.18.0", Load(1, 724, 12, 712, walked_cpus=0.37), LeafCost())
    assert verdict.verdict == "costly"
    assert "0.37 of a CPU" in verdict.why
