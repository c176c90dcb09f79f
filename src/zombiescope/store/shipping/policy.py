"""What is sent where: the section `shipping` of the configuration, and the options of `zombiescope ship`.

Only the standard library is imported here: the agent reads it, and starts a process for the rest.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from zombiescope.base.errors import QuestionError

What = Literal["incidents", "everything"]
Verify = Literal["none", "size", "read"]
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 300.0
SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "file")
_SECRET_OPTIONS = ("access_key", "secret_key", "session_token", "account_key", "sas_token", "credential")


@dataclass(frozen=True, slots=True)
class ShippingPolicy:
    """Where, what and how; every value has a default but the place."""

    target: str = ""
    """s3://bucket/prefix, gs://..., abfs://..., or a directory; empty: nothing is sent."""
    what: What = "incidents"
    """`incidents`: frozen windows, at once, and every hour the rollups. `everything`: every segment too, as it is
    closed."""
    sample: float = 0.0
    """On this share of the days one ordinary segment is sent too: a fleet compares what sick nodes do with it."""
    redact: bool = False
    """Names of people and of their things are replaced before anything leaves the node."""
    keep_days: float = 0
    """What was sent is deleted over there after so many days; 0: never by us."""
    spool_bytes: int = 512_000_000
    """How much is kept for a target that is away after retention has deleted the original."""
    verify: Verify = "size"
    """What is asked of the target after each file: nothing, its size, or all of it to compare its SHA-256."""
    every_s: float = 10.0
    """How often it looks for more while something goes on."""
    linger_s: float = 15.0
    """How long its process stays when nothing is left to do: starting it costs half a second of CPU."""

    def __post_init__(self) -> None:
        """Raises QuestionError."""
        _choice("what", self.what, get_args(What))
        _choice("verify", self.verify, get_args(Verify))
        for name, low in (("keep_days", 0), ("spool_bytes", 0), ("every_s", 0.05), ("linger_s", 0)):
            if getattr(self, name) < low:
                raise QuestionError(f"{name} is {getattr(self, name)}", f"write {low} or more", option=name)
        if not 0 <= self.sample <= 1:
            raise QuestionError(f"sample is {self.sample}", "write a share of the days, from 0 to 1", option="sample")
        scheme = urlsplit(self.target).scheme if "://" in self.target else "file"
        if self.target and scheme not in SCHEMES:
            raise QuestionError(
                f"nothing can be sent to {scheme}://", f"write {', '.join(SCHEMES)} or a directory", option="target"
            )

    @property
    def shown(self) -> str:
        """The target without the secrets that a URL may have in it."""
        if "://" not in self.target:
            return self.target
        parts = urlsplit(self.target)
        query = [(key, "***" if key in _SECRET_OPTIONS else value) for key, value in parse_qsl(parts.query)]
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, urlencode(query, safe=":/*"), ""))

    @property
    def identity(self) -> str:
        """What distinguishes the books about one target from those about another: credentials may change."""
        parts = urlsplit(self.target)
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        return hashlib.sha256(f"{place} {self.redact}".encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise QuestionError(f"{name} is {value!r}", f"write one of {', '.join(allowed)}", option=name)


def backoff_s(failures: int, chance: Callable[[], float] = random.random) -> float:
    """Between half and the whole of a time that doubles."""
    longest = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 20), LONGEST_WAIT_S)
    return longest * (0.5 + chance() / 2)
