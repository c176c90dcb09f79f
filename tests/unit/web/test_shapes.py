"""The described shapes are those of real answers: nothing that is answered is missing in them, nothing is made up."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.boxes import write_boxes
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.page_server import PageServer, page_server
from tests.helpers.recordings import Written, write_recording
from tests.helpers.schedule import ran, softirq_waited, waited, watched
from tests.helpers.training import Training

from zombiescope.audit.baseline import Allowed, BaselineDiff
from zombiescope.audit.finding import Audit, EvidenceLine, Finding
from zombiescope.base.missing import Missing
from zombiescope.diagnosis.report.document import incident
from zombiescope.documents import audit as audit_documents
from zombiescope.documents import containers as container_documents
from zombiescope.documents import cores as core_documents
from zombiescope.documents import delays as delay_documents
from zombiescope.documents import events as event_documents
from zombiescope.documents import fix as fix_documents
from zombiescope.documents import gpu as gpu_documents
from zombiescope.documents import incidents as incident_documents
from zombiescope.documents import info as info_documents
from zombiescope.documents import lanes as lane_documents
from zombiescope.documents import python as python_documents
from zombiescope.documents import status as status_documents
from zombiescope.fleet.arrivals import Arrival, Onset
from zombiescope.fleet.clusters import Cluster
from zombiescope.fleet.forecast import Forecast, Outlook
from zombiescope.fleet.inventory import Inventory
from zombiescope.fleet.labels import Comparison, Group
from zombiescope.fleet.numbers import Quantile, Split, Variable
from zombiescope.fleet.plan import Newest
from zombiescope.fleet.report import CauseTotal, FleetReport
from zombiescope.fleet.statistics import IncidentFigures, NodeFigures
from zombiescope.fleet.units import UnitShare
from zombiescope.model.answer import document as document_of
from zombiescope.query.events import events
from zombiescope.query.info import info as info_of
from zombiescope.questions.views import (
    AuditQuestion,
    ContainersQuestion,
    CoresQuestion,
    DelaysQuestion,
    GpuQuestion,
    PythonQuestion,
)
from zombiescope.questions.window import Window
from zombiescope.store import health, incident_file
from zombiescope.store.gaps import Gap
from zombiescope.store.locate import RunningRecorder
from zombiescope.store.part import Damage
from zombiescope.store.reader import open_recording
from zombiescope.web.description import openapi
from zombiescope.web.fleet import shortened
from zombiescope.web.shapes import DOCUMENTS, HEADERS, LIVE

DESCRIBED = openapi()
SCHEMAS: dict[str, Any] = DESCRIBED["components"]["schemas"]
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip


class MisfitError(AssertionError):
    pass


class Shapes:
    """Compares answers with their description, and remembers which described keys were met."""

    def __init__(self) -> None:
        self.met: set[str] = set()

    def fits(self, schema: dict[str, Any], value: Any, where: str) -> None:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._fits(SCHEMAS[name], value, where, name)
        return self._fits(schema, value, where, None)

    def _fits(self, schema: dict[str, Any], value: Any, where: str, name: str | None) -> None:
        if "anyOf" in schema:
            return self._any(schema["anyOf"], value, where)
        if "const" in schema or "enum" in schema:
            self._expect(value in schema.get("enum", [schema.get("const")]), where, value)
            return None
        kinds = schema.get("type", list(TYPES))
        allowed = [each for kind in ([kinds] if isinstance(kinds, str) else kinds) for each in TYPES[kind]]
        self._expect(type(value) in allowed, where, value)
        if isinstance(value, dict):
            self._object(schema, value, where, name)
        elif isinstance(value, list):
            self._array(schema, value, where)
        return None

    def _any(self, schemas: list[dict[str, Any]], value: Any, where: str) -> None:
        misfits = []
        for schema in schemas:
            try:
                return self.fits(schema, value, where)
            except MisfitError as misfit:
                misfits.append(str(misfit))
        raise MisfitError("; ".join(misfits))

    def _object(self, schema: dict[str, Any], value: dict[str, Any], where: str, name: str | None) -> None:
        known, others = schema.get("properties", {}), schema.get("additionalProperties", False)
        lacking = set(schema.get("required", ())) - set(value)
        self._expect(not lacking, where, f"no {sorted(lacking)}")
        for key, inside in value.items():
            if key in known:
                self.met.add(f"{name}.{key}")
                self.fits(known[key], inside, f"{where}.{key}")
            else:
                self._expect(others is not False, f"{where}.{key}", inside)
                if isinstance(others, dict):
                    self.fits(others, inside, f"{where}.{key}")

    def _array(self, schema: dict[str, Any], value: list[Any], where: str) -> None:
        each = schema.get("prefixItems") or [schema["items"]] * len(value)
        self._expect(len(each) == len(value), where, value)
        for number, (inside, item) in enumerate(zip(value, each, strict=True)):
            self.fits(item, inside, f"{where}[{number}]")

    @staticmethod
    def _expect(fits: bool, where: str, value: Any) -> None:
        if not fits:
            raise MisfitError(f"{where}: {str(value)[:200]}")


Answer = tuple[str, dict[str, Any], Any]
"""Where it is from, its schema, and what was answered."""


def schema_of(path: str) -> dict[str, Any]:
    content = DESCRIBED["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]["content"]
    if path in DOCUMENTS:
        return dict(content["application/json"]["schema"])
    (media,) = content.values()
    return dict(media["schema"]["x-events" if path == "live" else "x-header"])


def of_recording(server: PageServer, rec: str) -> Iterator[Answer]:
    info = server.api("info", rec=rec).document
    first = server.api("incidents", rec=rec).document["incidents"][0]["id"]
    before = f"{info['from']}..{(info['from'] + info['to']) / 2}"
    asked: dict[str, tuple[dict[str, Any], ...]] = {
        "diff": ({"against": before},), "heatmap": ({"by": "core"}, {"by": "subsecond", "paint": "a"}),
        "flamegraph": ({}, {"against": before}), "flamechart": ({"cpu": "3"},),
    }  # fmt: skip
    for path in (*DOCUMENTS, *HEADERS):
        for parameters in asked.get(path, ({},)):
            chosen = {} if path in ("recordings", "status", "fixes/{id}") else {"rec": rec}
            got = server.api(path.replace("{id}", first), **chosen, **parameters)
            yield path, schema_of(path), got.columns[0] if path in HEADERS else got.document


def of_running_recorder(written: Written, home: Path) -> Iterator[Answer]:
    """Its doctor has noted what happened."""
    with open_recording(written.dir) as recording:
        window = Window(written.start_us, written.end_us, UTC)
        noted = [incident(each) for each in incident_documents.diagnosed(recording, window).found.incidents]
        incident_file.write(written.node_dir, [{**each, "state": "open"} for each in noted], written.end_us)
        recorder = RunningRecorder(1, written.dir, "lab", written.start_us, None)
        running = status_documents._running(recorder, []) | status_documents._measured(recorder, recording, [])
    yield "status", schema_of("status"), {"schema": "zombiescope.status/1", **running, "recorders": [running]}
    with (written.node_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with page_server(str(written.dir), home=home) as server, server.live() as events:
            yield "incidents", schema_of("incidents"), server.api("incidents").document
            write_recording(
                written.dir, start_us=written.end_us, seconds=8, first_seq=3, closed=False,
                recorder_started_us=written.start_us,
            )  # fmt: skip
            missed = set(LIVE) - {"recorder"}
            while missed:
                kind, data = next(events)
                missed.discard(kind)
                yield kind, schema_of("live")[kind], data
            fcntl.flock(lock, fcntl.LOCK_UN)
            yield "recorder", schema_of("live")["recorder"], next(data for kind, data in events if kind == "recorder")


def of_failed_parts(directory: Path) -> Iterator[Answer]:
    """A part that failed while something was recorded, and one that fails now."""
    node = Node()
    node.core(START_US + SECOND, 0, user=5)
    node.happen(START_US + SECOND, "helper_failed", "recorder", "warning", "live diagnosis failed: SIGSEGV")
    write_segment(directory / "flight", node.tables)
    with open_recording(directory / "flight") as recording:
        noted = incident_documents.noted(recording, Window(recording.start_us, recording.end_us + 1, UTC))
    yield "incidents", schema_of("incidents"), {"schema": "zombiescope.diagnose/1", **noted}
    (directory / "run").mkdir(mode=0o700)
    part = health.Part(health.LIVE_DIAGNOSIS, "failed", 1.5, None, 3, "SIGSEGV", "zombiescope selftest", 2, 7, 8)
    path = health.path_of(directory / "run", os.getpid())
    health.publish(path, health.RECORDER, directory / "flight/node=lab", [part])
    with page_server("flight", home=directory) as server:
        yield "health", schema_of("health"), server.api("health").document


def of_unsound_recording(written: Written) -> Iterator[Answer]:
    """Gaps, damage, and what an audit found: as the documents write them."""
    with open_recording(written.dir) as recording:
        found = replace(info_of(recording), gaps=(Gap(1, 2, "samples", "why"),), damage=(Damage("file", "what"),))
    for name in ("gaps", "damage"):
        yield name, SCHEMAS["Info"]["properties"][name], info_documents._document(found)[name]
    finding = Finding("a:b", "a", "b", "warning", "why", (EvidenceLine("/etc/x", 3, "text"),), ("true",))
    line = Allowed("a:b", "reason", 7)
    audit = Audit("/", True, (finding,), (Missing("systemd", "why", "grant"),))
    split = BaselineDiff((finding,), ((finding, line),), (line,))
    document = audit_documents.AuditAnswer(AuditQuestion(at_least="info"), audit, split).document()
    yield "audit", schema_of("audit"), {"schema": "zombiescope.audit/1", "available": True, **document}


def of_containers(directory: Path) -> Iterator[Answer]:
    with open_recording(write_boxes(directory)) as recording:
        document = container_documents.answer(recording, ContainersQuestion()).document()
    yield "containers", schema_of("containers"), {"schema": "zombiescope.containers/1", **document}


def of_python(directory: Path) -> Iterator[Answer]:
    node = Node()
    frame = node.frame("step", "python", "job/train.py")
    for state in ("S", None):
        node.python(START_US, task_tid=7, frames=[frame], lines=[3], comm="trainer", state=state)
    write_segment(directory, node.tables)
    with open_recording(directory) as recording:
        document = python_documents.answer(recording, PythonQuestion()).document()
        window = Window(START_US, START_US + SECOND, UTC)
        lanes = lane_documents.document(recording, window, 100)
    yield "python", schema_of("python"), {"schema": "zombiescope.python/1", **document}
    yield "lanes", schema_of("lanes"), {"schema": "zombiescope.lanes/1", **lanes}


def of_delays(directory: Path) -> Iterator[Answer]:
    node = Node()
    hog, victim = node.task(1, "hog", unit="hog.service"), node.task(2, "victim")
    watched(node, 0, START_US, START_US + SECOND)
    ran(node, 0, hog, START_US, START_US + 500_000)
    waited(node, 0, victim, START_US, START_US + 400_000)
    softirq_waited(node, 0, 3, START_US, START_US + 300_000, "eth0")
    node.add("samples", time=START_US + 1000, cpu=0, task=hog, stack=node.stack([node.frame("seq_read")]))
    write_segment(directory, node.tables)
    with open_recording(directory) as recording:
        found = delay_documents.answer(recording, DelaysQuestion())
        lanes = lane_documents.document(recording, Window(START_US, START_US + SECOND, UTC), 100)
    yield "lanes", schema_of("lanes"), {"schema": "zombiescope.lanes/1", **lanes}
    yield "delays", schema_of("delays"), {"schema": "zombiescope.delays/1", **document_of(found)}


def of_gpus(directory: Path) -> Iterator[Answer]:
    node = Node()
    node.core(START_US + SECOND, 0, user=5)
    node.gpu(START_US + SECOND, 0)
    node.gpu_second(START_US + SECOND, 0, 97, power_w=690, reasons=4, hw_thermal_ns=5)
    node.gpu_process(START_US + SECOND, 0, 7, "python3")
    node.add("disks", time=START_US + SECOND, interval_us=SECOND, device="sda", read_bytes=5, written_bytes=0)
    write_segment(directory, node.tables)
    with open_recording(directory) as recording:
        document = document_of(core_documents.answer(recording, CoresQuestion(gpu=True)))
        window = Window(START_US, START_US + 2 * SECOND, UTC)
        lanes = lane_documents.document(recording, window, 10)
    yield "cores", schema_of("cores"), {"schema": "zombiescope.cores/1", **document}
    yield "lanes", schema_of("lanes"), {"schema": "zombiescope.lanes/1", **lanes}


def of_gpu_seconds(directory: Path) -> Iterator[Answer]:
    """A GPU that falls idle."""
    node = Node()
    node.gpu(START_US, 0)
    node.gpu_process(START_US, 0, 7, "python3")
    for second in range(1, 31):
        node.gpu_second(START_US + second * SECOND, 0, 90 if second <= 20 else 0)
    write_segment(directory, node.tables)
    with open_recording(directory) as recording:
        document = document_of(gpu_documents.answer(recording, GpuQuestion()))
    assert document["idle"]
    yield "gpu", schema_of("gpu"), {"schema": "zombiescope.gpu/1", **document}


def of_starved_gpu(directory: Path) -> Iterator[Answer]:
    node = Training().taken(5).use(0, 10)
    lost = {"gpu": "0000:01:00", "xid": 79}
    node.node.happen(START_US + SECOND, "gpu_xid", "kmsg", "critical", "NVRM: Xid (PCI:0000:01:00): 79, x", **lost)
    node.node.happen(START_US + SECOND, "ray_jobs", "ray", "info", "Ray jobs on this node: train", jobs="train")
    with open_recording(node.write(directory)) as recording:
        window = Window(recording.start_us, recording.end_us + 1, UTC)
        found = incident_documents.diagnosed(recording, window).document()
        (event,) = events(recording, window.start_us, window.end_us, kinds=["gpu_xid"])
    yield "incidents", schema_of("incidents"), {"schema": "zombiescope.incidents/1", **found}
    yield "event", {"$ref": "#/components/schemas/TimelineEvent"}, event_documents.event(event)


def of_fixed(directory: Path) -> Iterator[Answer]:
    """As the log of `fix` has it after a step that was done and looked at."""
    act = {"kind": "unit.disable", "arguments": {"unit": "ecs.service"}}
    line: dict[str, Any] = {"at": 1.5, "run": "ab", "who": {"uid": 0, "sudo": None}, "target": "incident:a", "why": ""}
    step = {**line, "step": "unit.disable:ecs.service", "event": "applying", "action": act}
    seen = {"from": 1.5, "to": 2.5, "verdict": "verified", "checks": [{"name": "leak", "ok": None, "text": "x"}]}
    done = {**step, "event": "applied", "before": {"is_running": True}, "after": {"is_running": False}}
    last = {**line, "step": "", "event": "verified", "action": None, "before": None, "after": seen, "why": "verified"}
    directory.mkdir()
    lines = ({**step, "before": {"is_running": True}, "after": None}, done, last)
    (directory / "actions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZOMBIESCOPE_FIX_DIR", str(directory))
        document = fix_documents.answer("incident:a")
    assert (document["verified"], document["steps"][0]["state"]) == (True, "applied")
    yield "fixes", schema_of("fixes/{id}"), {"schema": "zombiescope.fixes/1", **document}


def of_fleet() -> Iterator[Answer]:
    """A fleet that has something of everything."""
    node = NodeFigures(
        "n",
        {"zone": "a"},
        "6.1",
        96,
        START_US,
        START_US + SECOND,
        1,
        0.5,
        0.5,
        1,
        1,
        1,
        7,
        2.5,
        9,
        0,
        1,
        "cut",
        2.0,
        9,
        10,
        "b",
        "n",
        "it has no incidents.json",
        3,
        True,
        86400.0,
        2,
    )
    incident_ = IncidentFigures("n", "x", START_US, START_US + SECOND, "warning", "p", "u", "h", "s", ("f",), 1.0, 2.0)
    term = (("zone", "a"),)
    group = Group(term, "p by u", 9, 8, 90, 1, 1e-9, -20.0, 1e-7, (term,), term)
    age = Variable("age", "age", "given", {"n": 5.0}, is_time=True)
    split = Split(age, 5.0, 4.0, 6.0, is_above=True)
    by_age = Group((("age", split.text),), None, 9, 8, 90, 1, 1e-9, -20.0, 1e-7, split=split, not_judged=1)
    compared = Comparison((group, by_age), 7, 1, (by_age,), ((age, (Quantile(1.0, 2.0, 3, 1),)),))
    nodes = (node, replace(node, node="m", recorded_s=0), replace(node, node="o"), replace(node, node="p"))
    report = FleetReport(
        "root", "duckdb", START_US, START_US + SECOND, nodes, (incident_,),
        (CauseTotal("p", "u", 1, 1, 0.5, 1.0, START_US, START_US),), compared,
        (UnitShare("u", 1, 2, 3, 4, 0.1, 0.2),), (Arrival("image", "v2", 9, 8, 0, START_US, START_US, 1e-4, 1e-3),),
        (Onset(START_US, START_US + SECOND, 9, 10, 1e-3),), (Cluster(("f",), 2, 1, (("p", 2),), 1),),
        Outlook(5, 3, (Forecast("m", 7, 2.5, 3.0),)), (("n", "", "cut"),), 3, 99, 0.5, 1, {"p": "n"},
        {"n": Newest(START_US, 9.0)}, {}, Inventory("hosts.csv", {"n": {"rack": "r1"}}),
    )  # fmt: skip
    told = {"schema": "zombiescope.fleet/1", "state": "ready", "root": "root", "done": 1, "of": 1, "why": None}
    yield "fleet", schema_of("fleet"), {**told, "report": shortened(report.document())}


@pytest.fixture(scope="module")
def answers(server: PageServer, written: Written, tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    home = tmp_path_factory.mktemp("live")
    growing = write_recording(home / "flight", seconds=60, closed=False)
    return [
        *of_recording(server, "here"),
        *of_recording(server, "founding-case"),
        *of_running_recorder(growing, home),
        *of_unsound_recording(written),
        *of_failed_parts(tmp_path_factory.mktemp("failed")),
        *of_containers(home / "boxes"),
        *of_delays(home / "delays"),
        *of_gpus(home / "gpus"),
        *of_python(home / "python"),
        *of_gpu_seconds(home / "gpu seconds"),
        *of_starved_gpu(home / "starved"),
        *of_fixed(home / "fixed"),
        *of_fleet(),
    ]


def test_every_answer_is_as_described(answers: list[Answer]) -> None:
    for where, schema, answer in answers:
        Shapes().fits(schema, answer, where)


def test_nothing_is_described_that_no_answer_has(answers: list[Answer]) -> None:
    shapes = Shapes()
    for where, schema, answer in answers:
        shapes.fits(schema, answer, where)
    described = {
        f"{name}.{key}" for name, schema in SCHEMAS.items() if name != "Error" for key in schema.get("properties", {})
    }
    assert described - shapes.met == set()


@pytest.mark.parametrize(
    "answer",
    [
        {"running": True, "more": 1}, {}, {"running": 1}, {"running": None}, [],
    ],
)  # fmt: skip
def test_what_is_not_as_described_is_noticed(answer: Any) -> None:
    with pytest.raises(MisfitError):
        Shapes().fits({"$ref": "#/components/schemas/RecorderState"}, answer, "recorder")
