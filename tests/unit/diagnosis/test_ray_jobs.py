"""Which jobs died of an incident, and which only failed while it went on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.helpers.cli import Cli
from tests.helpers.made import START_US, Node, write_segment

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.live import with_jobs
from zombiescope.diagnosis.ray_jobs import NodeJobs, RayJobs, Reach, failure_rates
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms.rt_hog import DETECTOR
from zombiescope.fleet.reading.identity import _job_lost_s
from zombiescope.store.event import Event
from zombiescope.store.reader import open_recording

SECOND = 1_000_000
INCIDENT = Incident("x", START_US + 100 * SECOND, START_US + 110 * SECOND, "closed", "warning", ())
HERE, ELSEWHERE = "10.0.0.7", "10.0.0.8"


def _event(at_s: float, kind: str, **fields: object) -> Event:
    return Event(START_US + int(at_s * SECOND), kind, "ray", "warning", f"{kind} {fields}", dict(fields))


def _fates(*events: Event) -> dict[str, str]:
    known = _event(10, "ray_jobs", jobs="01000000,train,02000000", node_ip=HERE)
    return {fate.job: fate.fate for fate in RayJobs([known, *events]).fates(INCIDENT)}


def test_a_job_that_lost_a_worker_here_died_of_it_and_one_with_a_bug_did_not() -> None:
    fates = _fates(
        _event(5, "ray_job_started", job="01000000", submission_id="eval"),
        _event(104, "ray_worker_died", job="01000000", node_ip=HERE),
        _event(106, "ray_job_failed", submission_id="eval", said="RayActorError"),
        _event(107, "ray_job_failed", job="02000000", said="ValueError: own bug"),
    )
    assert fates == {"eval": "died", "02000000": "failed by itself", "train": "survived"}


def test_a_raylet_that_dies_takes_the_jobs_that_had_workers_there() -> None:
    fates = _fates(
        _event(103, "ray_node_dead", node_ip=HERE, jobs="01000000,train"),
        _event(130, "ray_job_failed", submission_id="train"),
    )
    assert fates == {"train": "died", "01000000": "survived", "02000000": "survived"}


def test_kuberay_says_it_where_ray_cannot_and_later_where_both_do() -> None:
    lost = _event(103, "ray_node_dead", node_ip=HERE, jobs="01000000,train")
    assert _fates(lost, _event(125, "rayjob_failed", submission_id="train"))["train"] == "died"
    assert _fates(_event(5, "rayjob_started", submission_id="late"))["late"] == "survived"
    both = (_event(106, "ray_job_finished", submission_id="train"), _event(300, "rayjob_failed", submission_id="train"))
    assert _fates(*both)["train"] == "survived", "the first word counts"


def test_the_work_of_a_job_that_died_is_what_ray_says_that_it_ran_or_since_when_it_was_seen() -> None:
    lost = _event(103, "ray_node_dead", node_ip=HERE, jobs="01000000,train")
    ends = (
        _event(120, "ray_job_failed", submission_id="train", ran_s=36_000.0),
        _event(125, "ray_job_failed", job="01000000"),
    )
    known = _event(10, "ray_jobs", jobs="01000000,train,02000000", node_ip=HERE)
    fates = {fate.job: fate.ran_s for fate in RayJobs([known, lost, *ends]).fates(INCIDENT)}
    assert fates == {"train": 36_000.0, "01000000": 115.0, "02000000": None}


def test_what_was_lost_on_another_node_is_not_this_nodes_doing() -> None:
    fates = _fates(
        _event(104, "ray_worker_died", job="01000000", node_ip=ELSEWHERE),
        _event(106, "ray_job_failed", job="01000000", lost_on=ELSEWHERE, lost_to="NODE_DIED"),
        _event(106, "ray_job_failed", job="02000000", lost_on=f"{ELSEWHERE},{HERE}", lost_to="NODE_DIED"),
    )
    assert fates["01000000"] == "failed by itself"
    assert fates["02000000"] == "died"


def test_jobs_of_another_time_are_not_named() -> None:
    fates = _fates(
        _event(20, "ray_job_failed", submission_id="train"),
        _event(300, "ray_job_failed", job="01000000"),
        _event(200, "ray_job_started", job="09000000"),
    )
    assert fates == {"01000000": "survived", "02000000": "survived"}


def test_what_was_lost_before_the_cause_began_was_not_lost_to_it() -> None:
    """The incident begins with what Ray reported of other jobs; the core was taken 15 s later."""
    seen = [Symptom(DETECTOR, START_US + at * SECOND, START_US + to * SECOND, "x", "warning", facts=facts)
            for at, to, facts in ((100, 100, {"event": "ray_job_failed"}), (115, 130, {}))]  # fmt: skip
    incident = replace(INCIDENT, to_us=START_US + 130 * SECOND, symptoms=tuple(seen))
    known = _event(10, "ray_jobs", jobs="01000000,02000000", node_ip=HERE)
    events = [
        known,
        _event(106, "ray_worker_died", job="01000000", node_ip=HERE),
        _event(107, "ray_job_failed", job="01000000", lost_on=HERE),
        _event(117, "ray_worker_died", job="02000000", node_ip=HERE),
        _event(119, "ray_job_failed", job="02000000", lost_on=HERE),
    ]
    fates = {fate.job: fate.fate for fate in RayJobs(events).fates(incident)}
    assert fates == {"02000000": "died"}


def test_a_job_dies_of_one_incident_and_both_accounts_agree() -> None:
    events = [
        _event(10, "ray_jobs", jobs="train", node_ip=HERE),
        _event(104, "ray_worker_died", job="train", node_ip=HERE),
        _event(106, "ray_job_failed", job="train", lost_on=HERE),
    ]
    unknown = Reach("a", INCIDENT.from_us, INCIDENT.to_us, INCIDENT.from_us)
    named = Reach("b", INCIDENT.from_us, INCIDENT.to_us, INCIDENT.from_us + SECOND, (True, 0.9))
    account = RayJobs(events).account([unknown, named])
    assert [[(fate.job, fate.fate) for fate in fates] for fates in account] == [[], [("train", "died")]]
    document = {"id": "b", "from": named.from_us / 1e6, "to": named.to_us / 1e6,
                "symptoms": [{"at": named.evidence_us / 1e6, "kind": "rt_hog"}, {"at": 1.0, "event": "ray_job_failed"}],
                "causes": [{"pattern": "rt-hog", "confidence": 0.9}]}  # fmt: skip
    assert Reach.of_document(document) == named


def test_the_live_account_has_a_job_that_ended_after_the_incident(tmp_path: Path) -> None:
    node = Node()
    for second in range(60):
        node.core(START_US + second * SECOND, 0, user=100, idle=900)
    node.happen(START_US + 5 * SECOND, "ray_jobs", "ray", "info", "jobs", jobs="train", node_ip=HERE)
    node.happen(START_US + 31 * SECOND, "ray_worker_died", "ray", "warning", "lost", node_ip=HERE, job="train")
    node.happen(START_US + 40 * SECOND, "ray_job_failed", "ray", "warning", "failed", job="train", ran_s=7200.0)
    write_segment(tmp_path, node.take())
    start = START_US / 1e6
    entry = {"id": "x", "from": start + 30, "to": start + 33, "state": "closed", "severity": "critical",
             "symptoms": [{"kind": "rt_hog", "at": start + 30}], "causes": [{"pattern": "rt-hog", "confidence": 0.9}],
             "jobs": [{"job": "train", "fate": "survived", "ended": None, "ran_s": None, "why": ""}]}  # fmt: skip
    with open_recording(tmp_path) as recording:
        (told,) = with_jobs([entry], Facts(recording, START_US, START_US + 60 * SECOND))
        (again,) = with_jobs(
            [{**told, "from": start - 9e5, "to": start - 9e5}], Facts(recording, START_US, START_US + 1)
        )
    assert [(job["job"], job["fate"], job["ran_s"]) for job in told["jobs"]] == [("train", "died", 7200.0)]
    assert again["jobs"] == told["jobs"]
    assert _job_lost_s(told["jobs"], 3.0) == 7200.0


def test_rates_compare_jobs_and_not_nodes() -> None:
    affected = NodeJobs(True, {"a": "failed", "b": "failed", "c": "succeeded", "r": "running"})
    healthy = NodeJobs(False, {"a": "failed", "d": "succeeded", "e": "succeeded", "f": "stopped", "g": "succeeded"})
    rates = failure_rates([affected, healthy, NodeJobs(False, {})])
    assert rates is not None
    assert rates["affected"] == {"nodes": 1, "jobs": 3, "failed": 2, "ratio": 2 / 3}
    assert rates["unaffected"] == {"nodes": 2, "jobs": 4, "failed": 0, "ratio": 0.0}
    assert round(rates["p_value"], 3) == 0.143  # 3 of 21 ways to choose the two that failed
    assert failure_rates([NodeJobs(True, {"r": "running"})]) is None


def test_a_diagnosis_says_it(tmp_path: Path) -> None:
    node = Node()
    for second in range(60):
        node.core(START_US + second * SECOND, 0, user=100, idle=900)
    node.happen(START_US + 5 * SECOND, "ray_jobs", "ray", "info", "jobs", jobs="train,eval", node_ip=HERE)
    node.happen(START_US + 30 * SECOND, "ray_node_dead", "ray", "critical", "dead", node_ip=HERE, jobs="train,eval")
    node.happen(START_US + 33 * SECOND, "ray_job_failed", "ray", "warning", "failed", submission_id="train")
    write_segment(tmp_path, node.take())
    with open_recording(tmp_path) as recording:
        found = diagnose(recording, START_US, START_US + 60 * SECOND)
    fates = {fate.job: fate.fate for incident in found.incidents for fate in incident.jobs}
    assert fates == {"train": "died", "eval": "survived"}
    assert found.ray_jobs == {"train": "failed", "eval": "running"}


def test_a_raylet_that_was_killed_on_a_busy_node_is_not_explained_by_busy_cores(tmp_path: Path) -> None:
    node = Node()
    for second in range(60):
        for cpu in range(2):
            node.core(START_US + second * SECOND, cpu, user=1000, idle=0)
    text = "the Ray node 10.0.0.7 is dead: its raylet was killed by signal 9 (SIGKILL); the sender is not known"
    node.happen(START_US + 30 * SECOND, "ray_node_dead", "ray", "critical", text, node_ip=HERE, pid=319)
    write_segment(tmp_path, node.take())
    with open_recording(tmp_path) as recording:
        found = diagnose(recording, START_US, START_US + 60 * SECOND)
    (incident,) = found.incidents
    assert "cpu-capacity" not in {cause.pattern for cause in incident.causes if cause.confidence > 0.5}
    assert "SIGKILL" in incident.causes[0].summary


def test_asked_for_a_job_the_answer_begins_with_that_job(tmp_path: Path) -> None:
    node = Node()
    for second in range(60):
        node.core(START_US + second * SECOND, 0, user=100, idle=900)
    node.happen(START_US + 5 * SECOND, "ray_jobs", "ray", "info", "jobs", jobs="02000000,03000000,04000000",
                workers="02000000=777,03000000=778", node_ip=HERE)  # fmt: skip
    for number, name in ((2, "bug3"), (3, "train"), (4, "healthy5")):
        node.happen(START_US + 6 * SECOND, "ray_job_started", "ray", "info", "started", submission_id=name,
                    job=f"0{number}000000", driver_pid=800 + number)  # fmt: skip
    node.happen(START_US + 20 * SECOND, "ray_job_failed", "ray", "warning", "failed", submission_id="bug3",
                job="02000000", said="ValueError: own bug")  # fmt: skip
    node.happen(START_US + 40 * SECOND, "ray_node_dead", "ray", "critical", "dead", node_ip=HERE, jobs="train")
    node.happen(START_US + 42 * SECOND, "ray_job_failed", "ray", "warning", "failed", submission_id="train")
    task = node.task(777, "ray::work")
    stack = node.stack([node.frame("train_step", "user")])
    for second in range(8, 18):
        node.sample(START_US + second * SECOND, 0, task, stack)
    write_segment(tmp_path, node.take())
    ask = Cli(tmp_path)
    shown = ask("diagnose", str(tmp_path), "--ray-job", "bug3").out
    assert 0 < shown.index("bug3 failed by itself: ValueError: own bug") < shown.index("CRITICAL")
    told = {name: ask("diagnose", str(tmp_path), "--ray-job", name, "--json").document["ray_job"][0]
            for name in ("bug3", "02000000", "train", "healthy5")}  # fmt: skip
    assert {name: each["fate"] for name, each in told.items()} == {
        "bug3": "failed by itself", "02000000": "failed by itself", "train": "died", "healthy5": "running",
    }  # fmt: skip
    assert (told["bug3"]["pids"], told["bug3"]["cpus"], told["bug3"]["tasks"]) == ([777], [0], 1)
    assert told["train"]["incident"]
