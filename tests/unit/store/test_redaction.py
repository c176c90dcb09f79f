"""A pack for strangers has no name of the node's people in it, and everything that is asked of it still joins."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from tests.helpers.boxes import CRASH, LOOP, LOOP_IMAGE, TRAINER_UID, at, box_node
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.training import Training

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.report.document import document
from zombiescope.query.container_families import families, loops
from zombiescope.query.containers import containers
from zombiescope.store import compact, schema
from zombiescope.store.pack import pack
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.redaction import _CLASSES, Redaction

pytestmark = pytest.mark.timeout(120)

BOX = "ab12" * 16
GPU = "3d9f6c1e-5a2b-4e7d-8c90-1f2e3d4c5b6a"
SECRETS = (
    "lab-secret-host", LOOP_IMAGE, "ecs-agent", "agent-loop", "ecs.service", "train-0", "kube-system", "trainer",
    TRAINER_UID, BOX, BOX[:12], "/home/alice", "alice", "10.1.2.3", "docker run", "us-east-1a", CRASH["pod"], "wallet",
    GPU, "secret-fs",
)  # fmt: skip
KEPT = (
    "nfs_file_read", "nvme1n1", "vfs_read", "kubelet", "kubelet.service", "mem_cgroup_iter", "eth0", "python3",
    "NVIDIA H200",
)  # fmt: skip


def secret_node() -> Node:
    node = box_node()
    node.container(at(1), BOX, name="wallet", image="wallet:7", pod="train-0", namespace="ml", pod_uid=TRAINER_UID,
                   cgroup=f"/kubepods/burstable/pod{TRAINER_UID}/{BOX}", started=at(1), runs=1)  # fmt: skip
    task = node.task(900, "python3", cmdline="python3 /home/alice/wallet.py --key 1", exe="/home/alice/bin/python3",
                     cgroup=f"/kubepods/burstable/pod{TRAINER_UID}/{BOX}", container=BOX, pod=TRAINER_UID)  # fmt: skip
    agent = node.task(812, "agent-loop", unit="ecs.service", cgroup="/system.slice/ecs.service")
    script = node.frame("py::train:/home/alice/train.py", "jit", "/home/alice/lib/libmine.so")
    for second in range(10):
        node.sample(at(second + 0.5), 1, task, node.stack([script, node.frame("mem_cgroup_iter")]))
        node.sample(at(second + 0.6), 1, agent, node.stack([node.frame("vfs_read")]))
    text = (
        f"container {LOOP['image']} of pod kube-system/{CRASH['pod']} on lab-secret-host said 10.1.2.3 at /home/alice"
    )
    fields = {"id": BOX, "image": "wallet:8", "pod": "alice-pod", "nic": "eth0", "same": "image", "code": 1}
    node.happen(at(5), "container_restart", "containers", "warning", text, **fields)
    node.leak(at(6), "/docker/*", 9, created=9, removed=9, comm="agent-loop", unit="ecs.service", container=BOX)
    node.wait(at(8), at(2), "python3", 900, kind="nfs", resource="secret-fs:/home/alice/data", daemon="s3fs:77",
              wchan="rpc_wait_bit_killable", frames="vfs_read;nfs_file_read")  # fmt: skip
    node.mount(at(8), "nfs4", "secret-fs:/home/alice/data", "/home/alice/mnt", answered=5)
    node.disk(at(8), "nvme1n1", in_flight=2)
    text = "40 tasks wait for nfs secret-fs:/home/alice/data since 12 s (python3)"
    node.happen(at(8), "tasks_wait", "recorder", "warning", text, resource="secret-fs:/home/alice/data")
    node.leak(at(6), "/alice/*", 9, created=9, removed=9, comm="runc")
    node.gpu(at(6), 0, uuid=f"GPU-{GPU}")
    node.gpu_process(at(6), 0, 900, "python3", cgroup=f"/alice/{BOX}", container=BOX, pod=TRAINER_UID)
    return node


@pytest.fixture(scope="module", params=["log", "parquet"])
def packs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The recording, and what strangers get of it."""
    folder = tmp_path_factory.mktemp("redact")
    write_segment(folder / "rec", secret_node().tables, node="lab-secret-host")
    if request.param == "parquet":
        compact.compact(folder / "rec" / "node=lab-secret-host")
    with open_recording(folder / "rec") as recording:
        pack(recording, at(0), at(60), folder / "x.zscope", redact=True)
    return folder / "rec", folder / "x.zscope"


def _texts(recording: Recording) -> str:
    tables = ("tasks", "frames", "series", "events", "leaks", "cgroup_stats", "containers", "queues", "gaps",
              "gpus", "gpu_processes", "waiting", "disks", "mounts")  # fmt: skip
    rows = [recording.table(name).to_pylist() for name in tables]
    return json.dumps([rows, recording.node, recording.name], default=str)


def test_no_secret_is_left_and_the_kernels_words_are(packs: tuple[Path, Path]) -> None:
    with open_recording(packs[0]) as recording:
        said = _texts(recording)
        assert [word for word in SECRETS if word not in said] == [], "each was there"
    with open_recording(packs[1]) as recording:
        said = _texts(recording)
    assert [word for word in SECRETS if word in said] == []
    assert [word for word in KEPT if word not in said] == []
    with zipfile.ZipFile(packs[1]) as archive:
        names = " ".join(archive.namelist())
        raw = b"".join(archive.read(name) for name in archive.namelist())
    assert "lab-secret-host" not in names
    assert b"lab-secret-host" not in raw
    assert b"wallet" not in raw


PLANTED = {
    "mark": "deploy acme-mark by bob@acme.example on fs01.corp.acme.example, ticket ACME-4711",
    "kmsg": "nfs: server fs01.corp.acme.example not responding, still trying",
    "cifs": "CIFS: VFS: \\\\\\\\acme-filer.corp has not responded in 180 seconds",
    "lustre": "LustreError: 11-0: acmefs-OST0003-osc-ffff8: operation ost_statfs to node 2001:db8::dead:beef failed",
    "xfs": "XFS (acmevg-home): Unmounting Filesystem",
    "ext4": "EXT4-fs error (device dm-3): ext4_lookup: deleted inode referenced",
}
LEFT = ("acme", "ACME-4711", "bob", "fs01", "dead:beef", "2001:db8")


def test_nothing_of_what_was_planted_is_left(tmp_path: Path) -> None:
    node = Node()
    for second in range(10):
        node.core(at(second + 1), 0)
    for number, (source, text) in enumerate(PLANTED.items()):
        kind = "mark" if source == "mark" else "kernel_log"
        node.happen(at(3 + number / 10), kind, "mark" if source == "mark" else "kmsg", "info", text)
    task = node.task(900, "python3")
    mine = node.frame("train", "python", "/home/x/acme_billing_pipeline.py")
    theirs = node.frame("forward", "python", "/usr/lib/python3/site-packages/torch/nn/linear.py")
    node.sample(at(4), 0, task, node.stack([mine, theirs]))
    write_segment(tmp_path / "rec", node.tables, node="n1")
    place = tmp_path / "rec" / "node=n1" / "node.json"
    known = json.loads(place.read_text())
    place.write_text(json.dumps({**known, "labels": {"acme-cost-center": "x", "zone": "eu-1a"}}))
    with open_recording(tmp_path / "rec") as recording:
        boot = recording.node["boot"]
        pack(recording, at(0), at(60), tmp_path / "x.zscope", redact=True)
    with open_recording(tmp_path / "x.zscope") as recording:
        said = _texts(recording)
        assert recording.boot_at(at(5)) == recording.node["boot"] != boot
        assert list(recording.node["labels"])[1] == "zone"
    with zipfile.ZipFile(tmp_path / "x.zscope") as archive:
        raw = b"".join(archive.read(name) for name in archive.namelist())
    assert [word for word in (*LEFT, boot) if word in said or word.encode() in raw] == []
    for kept in ("not responding", "dm-3", "linear.py", "ost_statfs"):
        assert kept in said


def test_a_column_that_nobody_declared_is_hidden_whole(tmp_path: Path) -> None:
    """A column that somebody adds may hold anything."""
    write_segment(tmp_path / "rec", secret_node().tables, node="lab-secret-host")
    with open_recording(tmp_path / "rec") as recording:
        made = Redaction(recording, at(60))
        assert "alice" not in made._read("tasks.nickname", "alice")
        every = {column.name for table in schema.TABLES for column in table.columns}
    assert {name for name in _CLASSES if name not in every} <= {"boot"}, "classes of columns that are gone"


def test_joins_and_families_hold(packs: tuple[Path, Path]) -> None:
    shapes, joined = [], []
    for place in packs:
        with open_recording(place) as recording:
            found = containers(recording, at(0), at(60))
            kinds = families(found.values())
            shapes.append(sorted((each.kind, each.ids, each.starts, each.failed) for each in kinds))
            joined.append(Counter((loop.kind, loop.family.starts) for loop in loops(kinds)))
            tasks = recording.table("tasks").to_pylist()
            boxed = [found[task["container"]] for task in tasks if task["container"] in found]
            assert len(boxed) >= 3, "tasks are found by the ids of their containers"
            assert {one.pod_uid for one in boxed if one.pod} == {task["pod"] for task in tasks if task["pod"]}
            comms = {task["comm"] for task in tasks}
            assert {one.requester for one in found.values()} - {None} <= comms, "who asked for it is a task"
            assert any(one.cgroup and one.id in one.cgroup for one in found.values())
    assert shapes[0] == shapes[1]
    assert joined[0] == joined[1]


def test_the_diagnosis_is_the_same(packs: tuple[Path, Path]) -> None:
    kinds = []
    for place in packs:
        with open_recording(place) as recording:
            found = diagnose(recording, at(0), at(60))
        kinds.append(sorted((one.kind, one.severity) for one in found.remarks))
    assert kinds[0] == kinds[1]


def test_two_packs_cannot_be_joined(packs: tuple[Path, Path], tmp_path: Path) -> None:
    with open_recording(packs[0]) as recording:
        pack(recording, at(0), at(60), tmp_path / "y.zscope", redact=True)
    with open_recording(packs[1]) as one, open_recording(tmp_path / "y.zscope") as other:
        assert one.name != other.name
        assert not set(containers(one, None, None)) & set(containers(other, None, None))


def test_what_it_cost_the_gpus_is_the_same_and_names_nobody(tmp_path: Path) -> None:
    # GIVEN a trainer whose core others took, in a pod and a cgroup with names, and a line of the driver with a uuid
    node = Training(usual=9, pod=TRAINER_UID, cgroup=f"/kubepods/pod{TRAINER_UID}/alice-job", container=BOX)
    node.node.container(at(1), BOX, name="wallet", pod="train-0", namespace="ml", pod_uid=TRAINER_UID)
    driver = f"NVRM: GPU at PCI:0000:01:00: GPU-{GPU}"
    node.node.happen(at(1), "gpu_identity", "kmsg", "info", driver, gpu="0000:01:00", uuid=f"GPU-{GPU}")
    node.taken(5).use(0, 2).write(tmp_path / "rec")
    with open_recording(tmp_path / "rec") as recording:
        pack(recording, recording.start_us, recording.end_us + 1, tmp_path / "x.zscope", redact=True)
    # THEN strangers read the same cost of the same GPU, and nothing of whose it is
    said = []
    for place in (tmp_path / "rec", tmp_path / "x.zscope"):
        with open_recording(place) as recording:
            (incident,) = document(diagnose(recording, recording.start_us, recording.end_us + 1))["incidents"]
            texts = _texts(recording) + json.dumps(incident)
        cost = incident["cost"]
        said.append((incident["causes"][0]["pattern"], cost["gpu_seconds_lost"], cost["gpus"][0]["because"]))
        hidden = [word for word in ("train-0", "train.py", "alice", "wallet", BOX, TRAINER_UID, GPU) if word in texts]
        assert len(hidden) == (7 if place.name == "rec" else 0), hidden
        assert "0000:01:00.0" in texts
    assert said[0] == said[1]
    assert said[0][0] == "trainer-starved"


def test_names_of_ray_jobs_and_what_they_printed_stay_here(tmp_path: Path) -> None:
    node = Node()
    fields = {"submission_id": "merger-with-acme", "command": "python acme.py", "said": "KeyError: 'acme'"}
    node.happen(START_US + SECOND, "ray_job_failed", "ray", "warning", "the Ray job merger-with-acme failed", **fields)
    node.happen(START_US + SECOND, "ray_jobs", "ray", "info", "Ray jobs on this node: merger-with-acme,02000000",
                jobs="merger-with-acme,02000000")  # fmt: skip
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as recording:
        pack(recording, START_US, START_US + 10 * SECOND, tmp_path / "x.zscope", redact=True)
    with open_recording(tmp_path / "x.zscope") as packed:
        rows = packed.table("events").to_pylist()
    assert len(rows) == 2
    assert not any("acme" in str(row) for row in rows)
    failed, listed = (
        next(row["text"] for row in rows if row["kind"] == kind) for kind in ("ray_job_failed", "ray_jobs")
    )
    assert failed.split()[3] in listed.replace(",", " ").split()  # the same word in both
