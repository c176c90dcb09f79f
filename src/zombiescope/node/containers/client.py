"""The command line of a runtime's client, `docker run ...`: which container it asks for.

The client is no ancestor of the container: it talks to a daemon. What it has on its command line, and that it lives
while the container starts, is all that connects the two.

Pure text: words as /proc/PID/cmdline has them, bounded by whoever read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from zombiescope.node.containers import files
from zombiescope.node.containers.description import Description

PROGRAMS = ("docker", "podman", "nerdctl", "ctr", "docker-compose", "podman-compose")
VERBS = frozenset({"run", "start", "restart", "compose", "up", "kube", "play", "stack"})
"""Those that make a container run."""
_MANY = frozenset({"compose", "up", "kube", "play", "stack"})
"""Those that say in a file what they start."""
MAX_WORDS = 256

_FLAGS = frozenset(
    {
        "detach", "interactive", "tty", "rm", "init", "privileged", "publish-all", "read-only", "no-healthcheck",
        "oom-kill-disable", "sig-proxy", "disable-content-trust", "help", "quiet", "replace", "rmi", "no-hosts",
        "env-host", "http-proxy", "tls-verify", "debug", "tls", "tlsverify", "attach-all", "net-host", "null-io",
        "remote", "syslog", "latest", "all", "no-hostname", "passwd", "read-only-tmpfs", "unsetenv-all",
    }
)  # fmt: skip
_SHORT_FLAGS = frozenset("ditPqD")
_GROUPS = frozenset({"container", "containers", "c", "tasks", "task", "t", "pod"})


@dataclass(frozen=True, slots=True)
class Client:
    program: str
    verb: str
    name: str | None = None
    """--name of what it runs."""
    image: str | None = None
    targets: tuple[str, ...] = ()
    """Names or ids of what it starts again."""

    @property
    def asks_for_one(self) -> bool:
        return self.verb == "run"

    def fit(self, container: str, known: Description) -> int:
        """How well a container is what it asks for: 0 not at all, 1 nothing speaks against it, 3 it names it."""
        if self.verb in ("start", "restart"):
            return 3 * any(
                word == known.name or (len(word) >= 4 and container.startswith(word)) for word in self.targets
            )
        if self.verb in _MANY:
            return 1
        if self.name is not None and known.name is not None:
            return 3 * (self.name == known.name)
        if self.image is not None and known.image is not None:
            return 2 * (_plain(self.image) == _plain(known.image))
        return 1


def parse(data: bytes) -> Client | None:
    """Words ended by NUL. None where it asks for no container."""
    words = data.decode("utf-8", "replace").split("\0")[:MAX_WORDS]
    start = next((at for at, word in enumerate(words[:4]) if word.rpartition("/")[2] in PROGRAMS), None)
    if start is None:
        return None
    program = words[start].rpartition("/")[2]
    _, rest = _options(words[start + 1 :])
    while rest and rest[0] in _GROUPS:
        _, rest = _options(rest[1:])
    if not rest or rest[0] not in VERBS:
        return None
    return _asked(program, rest[0], rest[1:])


def _asked(program: str, verb: str, words: list[str]) -> Client:
    options, rest = _options(words)
    rest = [word for word in rest if word]
    if verb in ("start", "restart"):
        return Client(program, verb, targets=tuple(_texts([word for word in rest if not word.startswith("-")][:16])))
    if verb != "run" or program.endswith("-compose"):
        return Client(program, verb if verb in _MANY else "compose")
    image = files.text(rest[0]) if rest else None
    name = files.text(options.get("name"))
    if program == "ctr" and len(rest) > 1:
        name = files.text(rest[1])
    return Client(program, verb, name, image)


def _texts(words: list[str]) -> list[str]:
    return [found for word in words if (found := files.text(word, 128))]


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options with their values up to the first word that is none, and the words from there on."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        name, value = _option(word)
        if value is None and name is not None:
            value = words[at] if at < len(words) else ""
            at += 1
        if name is not None and value is not None:
            found[name] = value
    return found, words[at:]


def _option(word: str) -> tuple[str | None, str | None]:
    """(name, value); the name None: a flag; the value None: it is the next word."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if equals:
            return name, value
        return (None, None) if name in _FLAGS else (name, None)
    taking = next((at for at, letter in enumerate(word[1:], 1) if letter not in _SHORT_FLAGS), None)
    if taking is None:
        return None, None
    return word[taking], word[taking + 1 :].lstrip("=") or None


def _plain(image: str) -> str:
    """busybox and docker.io/library/busybox:latest are one image."""
    return re.sub(r":latest$", "", re.sub(r"^(?:docker\.io/)?(?:library/)?", "", image))
