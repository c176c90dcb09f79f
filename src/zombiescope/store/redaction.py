"""What a pack shows to strangers: names of people and of their things are replaced, those of the kernel stay.

Replaced: the host, its boot id, containers, images, pods, namespaces, who asked for a container and how, their units,
command lines, paths, Python files, marks, labels, ids of containers and pods, servers and addresses of the network.
Kept: times, numbers, functions, names of tasks and of units that asked for nothing, systemd's and the runtimes' own
directories in a path of cgroups.

Every column of text has a class in _CLASSES, or its table says that it is plain. One that has neither is hidden whole,
so a column that somebody adds is redacted until it is declared harmless.

The same word is replaced by the same one in every table, so that joins, filters and families hold; an id stays an id
of the same length, and what a controller added to a pod's name stays. The words are keyed by a number that is thrown
away with the process, unless a caller keeps one: two packs cannot be joined, and nobody can try out names.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from zombiescope.base import json as _json
from zombiescope.store import columns, schema
from zombiescope.store.container_names import is_made_up, pod_owner
from zombiescope.store.layout import Span
from zombiescope.store.part import Damage, Part
from zombiescope.store.reader import Recording

_UID = re.compile(r"[0-9a-fA-F]{8}([-_])[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?<![0-9a-zA-Z])(?=[a-f]*[0-9])[0-9a-f]{12,64}(?![0-9a-zA-Z])|(?<=pod)[0-9a-f]{32}(?![0-9a-zA-Z])")
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|(?i:\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b)")
_ANY_ID = re.compile(r"[0-9a-fA-F_-]{12,}")
_FILE = re.compile(r"/[^\s:;()]*")
_WORD = re.compile(r"[^\s\"'()\[\]{}<>,;=|]+")
_PIECE = re.compile(r"[^/:@]+")
_UNIT = re.compile(r".+\.(?:service|scope|slice|socket|mount|swap|timer|target)$")
_KEPT = re.compile(
    r"\*|\.\.?|docker|kubepods|burstable|besteffort|guaranteed|ecs|lxc|lxc\.payload.*|machine|libpod_parent|crio|podman"
    r"|pod[0-9a-f_*-]+|[0-9a-f]{12,64}|proc|sys|dev|fs|cgroup|kernel|vm|net|self|shm|memory|cpu|cpuset|pids|unified"
)
_NODE_KEPT = (
    "format", "hz", "event", "sampling", "kernel", "machine", "os", "timezone", "cpus", "user_hz", "interval_s",
    "started_us", "steal_counted", "cgroups",
)  # fmt: skip
_CLASSES = {
    **dict.fromkeys(("cgroup", "path"), "path"), **dict.fromkeys(("resource", "source", "point"), "served"),
    **dict.fromkeys(("exe", "module", "file"), "program"), **dict.fromkeys(("cmdline", "requester_command"), "command"),
    **dict.fromkeys(
        ("name", "comm", "unit", "container", "pod", "key", "text", "id", "image", "namespace", "pod_uid", "requester",
         "requester_unit", "requester_container", "owner", "manager", "nic", "queue", "uuid", "job", "phase", "why",
         "daemon", "ended", "function"), "words",
    ),
    "fields": "fields", "boot": "boot", "object": "object",
}  # fmt: skip
"""Column of text -> what it holds. "words": words of the kernel and of ours, in which names that are known, paths, ids,
servers and addresses are replaced."""
LABELS = frozenset({"zone", "region", "image", "instance_type", "pool", "kernel"})
"""Keys of labels that the recorder itself sets; any other is the word of a person."""
_CANDIDATE = re.compile(r"(?<![\w.:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:%\w+)?(?![\w:])")
_SERVER = re.compile(
    r"(?i)(?<=\bserver )[^\s,;()]+"
    r"|(?<=\\\\)[^\s\\,;()]+"
    r"|\b[\w-]+(?=-(?:OST|MDT|MGS|MGT|OSC|MDC)[0-9a-f]{0,4}\b)"
    r"|(?<![\w./@-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.){2,}[a-z]{2,}(?![\w-])"
    r"|(?<=@)[a-z0-9-]+(?:\.[a-z0-9-]+)+"
)
"""Servers in lines of the kernel: after the word, in a UNC path, before a Lustre target, a full domain name, in an
address of mail."""
_NO_SERVER = re.compile(r"(?i).*\.(?:service|scope|slice|socket|mount|swap|timer|target|device|path|py|so|ko|c|h|io)$")
_VOLUME = re.compile(r"(?<=\()(?:device )?([^()\s]+)(?=\))")
_DISK = re.compile(
    r"(?:dm-\d+|[svh]d[a-z]+\d*|xvd[a-z]+\d*|nvme\d+n\d+(?:p\d+)?|md\d+|loop\d+|mmcblk\d+\w*|\d+(?::\d+)?)"
)
_FILESYSTEM = re.compile(r"^(?:XFS|EXT[234]-fs|BTRFS|F2FS-fs|GFS2|JBD2|FAT-fs|device-mapper|bcache)\b")
_LIBRARY = re.compile(r"/(?:lib|lib64|site-packages|dist-packages)/")
_FIELDS = {
    "image": "image", "pod": "pod", "namespace": "namespace", "requester": "task", "requester_unit": "unit",
    "requester_command": "command", "command": "command", "container": "id", "container_id": "id", "uid": "id",
    "pod_uid": "id", "owner": "owner", "container_name": "container",
    "submission_id": "job", "said": "text", "actor": "class",
}  # fmt: skip
"""Fields of events that hold a name -> what it is the name of."""


class Redaction:
    def __init__(self, recording: Recording, end_us: int, key: bytes | None = None) -> None:
        """`key`: of whoever sends one part after the other (store/shipping/redacted.py), and keeps it on the node."""
        self._key = key or os.urandom(16)
        self._words: dict[str, str] = {}
        self._known: dict[tuple[str, str], str] = {}
        self.node = self._token("node", recording.name)
        self._words[recording.name] = self.node
        for part in recording.parts:
            if part.touches(schema.CONTAINERS, None, end_us):
                self._learn(part.rows(schema.CONTAINERS, None, end_us, None))
            if part.touches(schema.EVENTS, None, end_us):
                self._learn_jobs(part.rows(schema.EVENTS, None, end_us, ("source", "fields")))

    def _learn(self, rows: pa.Table) -> None:
        """The words that containers are known by."""
        for column, kind in (("name", "container"), ("image", "image"), ("namespace", "namespace"), ("pod", "pod"),
                             ("requester", "task"), ("requester_unit", "unit"), ("requester_command", "command"),
                             ("id", "id"), ("pod_uid", "id"), ("owner", "owner"),
                             ("requester_container", "id"), ("manager", "manager")):  # fmt: skip
            for word in set(columns.texts(rows.column(column))):
                if word and word not in self._words:
                    self._words[word] = self._made(kind, word)

    def _learn_jobs(self, rows: pa.Table) -> None:
        """The names under which people submit jobs to Ray; texts have them, too."""
        cells = (columns.texts(rows.column(name)) for name in ("source", "fields"))
        for source, text in zip(*cells, strict=True):
            name = _submission(text) if source == "ray" else None
            if name and name not in self._words:
                self._words[name] = self._token("job", name)

    def _made(self, kind: str, word: str) -> str:
        if kind == "id":
            return self._shaped(word) if _ANY_ID.fullmatch(word) else self._token("id", word)
        if kind == "container" and is_made_up(word):
            return word
        if kind == "pod":
            owner = pod_owner(word)
            return self._token("pod", owner) + word[len(owner) :]
        if kind == "owner":
            what, slash, name = word.rpartition("/")
            return what + slash + self._token("pod", name)
        if kind == "unit":
            return self._token("unit", word) + "." + word.rpartition(".")[2]
        return self._token(kind, word)[:15] if kind == "task" else self._token(kind, word)

    def _digest(self, word: str) -> str:
        return hmac.new(self._key, word.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _token(self, kind: str, word: str) -> str:
        return f"{kind}-{self._digest(word)[:8]}"

    # --- texts -------------------------------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """Free text, or a single word."""
        known = self._words.get(text)
        if known is not None:
            return known
        if _FILESYSTEM.match(text):
            text = _VOLUME.sub(lambda found: self._volume(found[0], found[1]), text)
        text = _CANDIDATE.sub(lambda found: self._token("address", found[0]) if _is_ipv6(found[0]) else found[0], text)
        text = _SERVER.sub(lambda found: self._server(found[0]), text)
        return _WORD.sub(lambda found: self._word(found[0]), text)

    def _server(self, name: str) -> str:
        bare = name.rstrip(".:")
        if _NO_SERVER.fullmatch(bare) or _ADDRESS.fullmatch(bare) or bare.startswith(("server-", "address-")):
            return name
        return self._token("server", bare.lower()) + name[len(bare) :]

    def _volume(self, whole: str, name: str) -> str:
        return whole if _DISK.fullmatch(name) else whole.replace(name, self._token("volume", name))

    def boot(self, identity: str) -> str:
        """Every user of a node can read its boot id: it would say whose pack it is, and join two of them."""
        return self._shaped(identity)

    def span(self, span: Span) -> Span:
        return replace(span, boot=self.boot(span.boot))

    def _word(self, word: str) -> str:
        bare = word.rstrip(".:")
        if bare in self._words:
            return self._words[bare] + word[len(bare) :]
        if bare.startswith("/") and len(bare) > 1:
            return self._path(bare) + word[len(bare) :]
        if ":/" in bare:
            return self._served(bare) + word[len(bare) :]
        pieces = _PIECE.sub(lambda found: self._words.get(found[0], found[0]), word)
        return _ADDRESS.sub(lambda found: self._token("address", found[0]), self._ids(pieces))

    def _ids(self, text: str) -> str:
        """Ids as ids of the same length and shape."""
        text = _UID.sub(lambda found: self._shaped(found[0]), text)
        return _HEX.sub(lambda found: self._shaped(found[0]), text)

    def _shaped(self, identity: str) -> str:
        digits = iter(self._digest(identity.replace("_", "-").lower()))
        return "".join(mark if mark in "-_" else next(digits) for mark in identity)

    def _path(self, path: str) -> str:
        return "/".join(self._directory(name) for name in path.split("/"))

    def _directory(self, name: str) -> str:
        if not name:
            return name
        if name in self._words:
            return self._words[name]
        kept = _KEPT.fullmatch(name) or _UNIT.fullmatch(name)
        return self._ids(name) if kept else self._token("dir", name)

    # --- columns -----------------------------------------------------------------------------------------------------

    def rows(self, table: schema.Table, rows: pa.Table) -> pa.Table:
        """The same rows with other words."""
        marks = self._marks(table, rows)
        for column in table.columns:
            place = f"{table.name}.{column.name}"
            if column.kind == "text" and column.meaning != "plain" and column.name in rows.column_names:
                texts = [
                    None if text is None else self._cell(place, text)
                    for text in columns.texts(rows.column(column.name))
                ]
                if place == "events.text":
                    texts = [
                        text if text is None or at not in marks else self._token("mark", text)
                        for at, text in enumerate(texts)
                    ]
                number = rows.schema.get_field_index(column.name)
                rows = rows.set_column(number, rows.schema.field(number), pa.chunked_array([columns.text_array(texts)]))
        return rows

    def _marks(self, table: schema.Table, rows: pa.Table) -> set[int]:
        """Rows whose text is what a person or a program wrote to say something. Where their source is not among the
        columns, that is any of them."""
        if table is not schema.EVENTS or "text" not in rows.column_names:
            return set()
        if "source" not in rows.column_names:
            return set(range(len(rows)))
        return {at for at, source in enumerate(columns.texts(rows.column("source"))) if source == "mark"}

    def _cell(self, place: str, text: str) -> str:
        found = self._known.get((place, text))
        if found is None:
            found = self._known[place, text] = self._read(place, text)
        return found

    def _read(self, place: str, text: str) -> str:
        column = place.partition(".")[2]
        if place == "frames.name":  # a function of a script may have its file in its name
            return _FILE.sub(lambda found: self._path(found[0]), text)
        kind = _CLASSES.get(column)
        if kind is None:
            return self._token("hidden", text)
        readers: dict[str, Callable[[str], str]] = {
            "fields": self._fields, "path": self._path, "served": self._served, "program": self._program,
            "words": self.text, "boot": self.boot, "object": self._object,
        }  # fmt: skip
        read = readers.get(kind)
        return self._token(kind, text) if read is None else read(text)

    def _program(self, text: str) -> str:
        """A program or library by its own name; a Python file by it only where it is an installed one."""
        head, slash, name = text.rpartition("/")
        if name.endswith(".py") and not _LIBRARY.search(text):
            name = f"{self._token('file', name)}.py"
        return f"/{self._token('dir', head)}/{name}" if slash else name

    def _served(self, text: str) -> str:
        """A mount point, a disk, or a server with its directory: "srv:/data"."""
        server, colon, path = text.rpartition(":")
        if colon and path.startswith("/"):
            return f"{self._token('server', server)}:{self._path(path)}"
        return self._path(text) if text.startswith("/") else self.text(text)

    def _object(self, text: str) -> str:
        """What a system call worked on; files of procfs are the kernel's."""
        return self._ids(text) if text.startswith("/proc/") else self.text(text)

    def _fields(self, text: str) -> str:
        try:
            return json.dumps(self.value(_json.loads(text)))
        except ValueError:
            return "{}"

    def value(self, value: Any, key: str = "") -> Any:
        """Of an event's fields: a name that no container of the recording has is one nevertheless."""
        if isinstance(value, str):
            known = self._words.get(value) or (self._made(_FIELDS[key], value) if key in _FIELDS and value else None)
            return known or self.text(value)
        if isinstance(value, dict):
            return {name: self.value(each, name) for name, each in value.items()}
        return [self.value(each) for each in value] if isinstance(value, list) else value

    def about(self, node: dict[str, Any]) -> dict[str, Any]:
        """node.json: what is known to be nobody's secret."""
        kept = {name: node[name] for name in _NODE_KEPT if name in node}
        missing = self.value(node.get("missing", []))
        labels = node.get("labels") if isinstance(node.get("labels"), dict) else {}
        hidden = {
            key if key in LABELS else self._token("key", str(key)): self._token("label", str(value))
            for key, value in (labels or {}).items()
        }
        said = node.get("boot")
        boot = self.boot(said) if isinstance(said, str) else None
        return {**kept, "boot": boot, "node": self.node, "missing": missing, "labels": hidden, "redacted": True}


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text.partition("%")[0]).version == 6
    except ValueError:
        return False


class RedactedPart:
    """A part whose rows have other words."""

    def __init__(self, part: Part, redaction: Redaction) -> None:
        self._part = part
        self._redaction = redaction
        self.name = part.name
        self.start_us = part.start_us
        self.boot = redaction.boot(part.boot)
        self.damage: list[Damage] = [Damage("a part", entry.what) for entry in part.damage]

    def touches(self, table: schema.Table, start_us: int | None, end_us: int | None) -> bool:
        return self._part.touches(table, start_us, end_us)

    def rows(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        return self._redaction.rows(table, self._part.rows(table, start_us, end_us, wanted))

    def count(self, table: schema.Table) -> int:
        return self._part.count(table)

    def ids(self) -> dict[str, int]:
        return self._part.ids()

    def spans(self) -> tuple[Span, ...]:
        return tuple(map(self._redaction.span, self._part.spans()))


def _submission(fields: str | None) -> str | None:
    try:
        said = _json.loads(fields or "{}")
    except ValueError:
        return None
    name = said.get("submission_id") if isinstance(said, dict) else None
    return name if isinstance(name, str) else None


def redacted(parts: Iterable[Part], redaction: Redaction) -> list[Part]:
    return [RedactedPart(part, redaction) for part in parts]
