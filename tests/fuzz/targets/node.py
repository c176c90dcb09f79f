"""What programs of a node say about themselves: containers, units, the journal, and marks from anybody."""

from __future__ import annotations

import functools
import json
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.fuzz.target import Target, scratch
from zombiescope.audit import baseline, catalogue
from zombiescope.base import json as _json
from zombiescope.base import secrets as _secrets
from zombiescope.base import text as _text
from zombiescope.base.errors import UserError
from zombiescope.kernel.log_formats import event_of
from zombiescope.node.cluster.changes import changes
from zombiescope.node.cluster.pod import parse as parse_pod
from zombiescope.node.containers import bundle, client, docker, exits, files, pods, storage
from zombiescope.node.containers.description import Description
from zombiescope.node.systemd import journal, unit_files
from zombiescope.node.systemd.root import READ_MAX_BYTES, Root
from zombiescope.node.systemd.unit_files import calendar, exit_status, names, syntax, timespan
from zombiescope.query import expression
from zombiescope.recorder import feed
from zombiescope.recorder.marks import MarkSocket
from zombiescope.store import schema
from zombiescope.store.event import Event
from zombiescope.store.log import encode_rows

FIXTURES = Path(__file__).parents[2] / "fixtures"
ID = "5e1f" * 16
NOW_US = 1_760_000_000_000_000


@functools.cache
def _receiver(_process: int) -> MarkSocket:
    return MarkSocket(scratch() / "mark.sock")


def mark(data: bytes) -> None:
    """A datagram as the socket hands it over; what comes of it can be written."""
    receiver = _receiver(os.getpid())
    receiver.second()
    credentials = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("iII", 0, 1000, 1000))
    event = receiver._take(data, [credentials], NOW_US)
    if event is not None:
        assert encode_rows(schema.EVENTS, [event.row()], NOW_US)
        json.dumps(event.fields)
    if rows := receiver.take_steps():
        assert encode_rows(schema.STEPS, rows, NOW_US)


def told(data: bytes) -> None:
    """A datagram of a service, as the socket hands it over; what comes of it can be written."""
    for one in feed.parse(data, NOW_US):
        if isinstance(one, Event):
            assert encode_rows(schema.EVENTS, [one.row()], NOW_US)
            json.dumps(one.fields)


def cluster_pod(data: bytes) -> None:
    """A pod as an API server sends it, twice: what changed is said in fields that can be sent on."""
    try:
        document = _json.loads(data)
    except ValueError:
        return
    pod = parse_pod(document) if isinstance(document, dict) else None
    if pod is not None:
        for event in changes(None, pod, NOW_US):
            json.dumps(event.fields)


def journal_line(data: bytes) -> None:
    record = journal.parse(data)
    if record is not None:
        event_of(record, "journal")


def described(found: Description | None) -> None:
    """What is stored of a container is short and printable."""
    if found is None:
        return
    for text in (found.name, found.image, found.namespace, found.pod, found.pod_uid, *found.arguments):
        assert text is None or (text.isprintable() and len(text) <= files.MAX_TEXT)


def docker_files(data: bytes) -> None:
    described(docker.parse(data, "0a1b2c3d"))
    docker.parse_policy(data)
    for path in (docker.parse_daemon(data), *docker.parse_arguments(data)):
        assert path is None or (path.startswith("/") and "/.." not in path)


def oci_bundle(data: bytes) -> None:
    for uid in (0, 1000):
        found = bundle.parse(data, uid)
        if found is not None:
            described(found.description)
            found.is_of(ID)


def storage_index(data: bytes) -> None:
    described(storage.parse(data, ID))
    exits.parse(data)


def client_line(data: bytes) -> None:
    found = client.parse(data)
    if found is not None:
        found.fit(ID, Description(name="x", image="docker.io/library/busybox:latest"))
    pods.parse(data.decode("utf-8", "replace"))
    words = data.decode("utf-8", "replace").split("\0")
    assert len(_secrets.mask_words(words)) == len(words)


def unit_file(data: bytes) -> None:
    """A unit of an image, read as the audit reads it."""
    root, read = _image(os.getpid())
    root.tried = data
    read = replace(read, tree=replace(read.tree, parsed={}), endless=set(), _units={}, _services={})
    for name in ("a.service", "a.timer"):
        unit = read.unit(name)
        if unit is None:
            continue
        read.state(name)
        found = read.service(name)
        if found is not None:
            [found.delay_us(restarts) for restarts in (0, 1, 7, 1 << 31)]
        calendar.repeats(unit)
        calendar.runs_per_day(unit)


class _ImageRoot(Root):
    """A root with one unit in it, whose content is what is being tried; nothing is written."""

    tried = b""

    def read(self, path: str, limit_bytes: int = READ_MAX_BYTES) -> bytes | None:
        is_tried = path.startswith("/etc/systemd/system/a.")
        return self.tried if is_tried else super().read(path, limit_bytes)


@functools.cache
def _image(_process: int) -> tuple[_ImageRoot, unit_files.UnitFiles]:
    folder = scratch() / "image"
    place = folder / "etc" / "systemd" / "system"
    place.mkdir(parents=True)
    for name in ("a.service", "a.timer"):
        (place / name).write_bytes(b"[Unit]\n")
    root = _ImageRoot(folder)
    return root, unit_files.read(root)


def unit_words(data: bytes) -> None:
    """Values of settings: spans, calendars, statuses, names, lists."""
    text = data.decode("utf-8", "replace")
    timespan.parse_us(text)
    calendar.calendar_runs_per_day(text)
    exit_status.parse(syntax.words(text))
    if names.is_valid(text):
        names.sharing(text)
    names.unescape(text)


def audit_files(parse: Callable[[bytes, str], object]) -> Callable[[bytes], object]:
    return lambda data: parse(data, "a file")


def function_search(data: bytes) -> None:
    """What somebody types to find functions, and a name that it is looked for in."""
    pattern, _, name = data.decode("utf-8", "replace").partition("\n")
    assert len(expression.found_in(expression.Linear.compiled(pattern), [name, "main"])) == 2


def shown(data: bytes) -> None:
    """Any name on any face."""
    text = data.decode("utf-8", "surrogateescape")
    assert "\x1b" not in _text.printable(text)


BUNDLE = {
    "linux": {"cgroupsPath": f"/kubepods/burstable/pod1/{ID}"},
    "process": {"args": ["/bin/train", "--token", "secret"]},
    "annotations": {"io.kubernetes.cri.container-name": "trainer", "io.kubernetes.cri-o.Labels": '{"a": "b"}'},
    "mounts": [{"destination": "/etc/hostname", "source": f"/var/lib/docker/containers/{ID}/hostname"}],
}
CONFIG = {
    "ID": ID,
    "Name": "/web",
    "RestartCount": 7,
    "State": {"Running": True, "ExitCode": 1, "FinishedAt": "2026-01-01"},
    "Config": {"Image": "busybox", "Labels": {"io.kubernetes.pod.name": "p"}},
    "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 5},
    "data-root": "/srv/docker",
}
INDEX = [{"id": ID, "names": ["x"], "metadata": '{"image-name": "i", "name": "n"}'}]
ENTRY = {"MESSAGE": "oom", "_TRANSPORT": "kernel", "PRIORITY": "3", "SYSLOG_FACILITY": "0"}
BYTES = {"MESSAGE": [111, 255], "_SOURCE_MONOTONIC_TIMESTAMP": "12612193516"}
CLIENTS = (
    b"/usr/bin/docker\0run\0--rm\0--name=x\0-it\0-e\0PASSWORD=x\0busybox\0sh\0",
    b"sudo\0podman\0container\0start\0x\0",
    b"dockerd\0--data-root\0/srv/docker\0--config-file=/etc/d.json\0",
    b"ctr\0-n\0k8s.io\0run\0docker.io/library/busybox:latest\0x\0",
)
MARKS = (b'{"text": "epoch 12", "at_us": 1760000000000001}', b'{"text": "\\ud800"}')
TOLD = (
    b'{"events":[{"at_us":1,"kind":"pod_evicted","source":"kubernetes","severity":"warning","text":"x","fields":{"a":1}}],'
    b'"pods":[{"uid":"u","namespace":"n","name":"p","owner":"Job/j","containers":[{"id":"c","restarts":3}]}]}',
)
PODS = (
    b'{"metadata":{"uid":"u","name":"n","labels":{"pod-template-hash":"h"},"ownerReferences":[{"kind":"ReplicaSet",'
    b'"name":"w-h","controller":true}]},"status":{"phase":"Failed","reason":"Evicted","containerStatuses":[{"name":"c",'
    b'"restartCount":2,"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-01-01T00:00:00Z"}}}]}}',
)
WORDS = (b"5min 30s", b"Mon..Fri *-*-* 00/2:30:00", b"1 SIGTERM TEMPFAIL", b"a\\x2db@c.service", b"'a b' c")
BASELINE = b"# why\nrestart-loop:x  accepted\n"


def _units() -> list[bytes]:
    found = sorted((FIXTURES / "roots").glob("*/**/*.service"))
    texts = [path.read_bytes() for path in found if path.is_file() and not path.is_symlink()]
    timer = b"[Timer]\nOnCalendar=daily\nOnUnitActiveSec=5min\n"
    return [timer, *sorted((text for text in texts if len(text) < 2048), key=len)[-12:]]


def _documents(*values: object) -> Callable[[], list[bytes]]:
    return lambda: [json.dumps(value).encode() for value in values]


def _toml() -> list[bytes]:
    """The first entries of each list that is shipped."""
    texts = [path.read_text() for path in sorted(Path(catalogue.__file__).parent.glob("*.toml"))]
    heads = ["\n".join([*text.partition("\n]")[0].splitlines()[:6], "]\n"]) for text in texts]
    return [head.encode() for head in heads]


TARGETS = (
    Target("told", told, lambda: TOLD),
    Target("pod", cluster_pod, lambda: PODS),
    Target("marks", mark, lambda: MARKS, native=True),
    Target("journal", journal_line, _documents(ENTRY, BYTES)),
    Target("docker-files", docker_files, _documents(CONFIG)),
    Target("oci-bundle", oci_bundle, _documents(BUNDLE)),
    Target("container-storage", storage_index, _documents(INDEX)),
    Target("container-clients", client_line, lambda: CLIENTS),
    Target("unit-files", unit_file, _units, most_bytes=1024),
    Target("unit-settings", unit_words, lambda: WORDS, most_bytes=128),
    Target("audit-baseline", audit_files(baseline.parse), lambda: [BASELINE], refusals=(UserError,)),
    Target("audit-catalogue", audit_files(catalogue.parse), _toml, refusals=(UserError,)),
    Target(
        "function-search",
        function_search,
        lambda: [b"^mem_cgroup.*(lru|x{2,3})$\nmem_cgroup_lru"],
        refusals=(ValueError,),
        most_bytes=512,
    ),
    Target("shown-names", shown, lambda: [b"a\x1b[31mb\xe2\x80\xaec"], most_bytes=512),
)
