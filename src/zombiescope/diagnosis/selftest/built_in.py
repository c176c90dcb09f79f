"""The files of the self-test: a recording of about 100 kB, and the answer that its diagnosis must give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError

RECORDING = Path(__file__).with_name("recording.zscope")
EXPECTED = Path(__file__).with_name("expected.json")


class DamagedError(UserError):
    """A file of the self-test is missing, or is not the one that was shipped."""


def expected() -> dict[str, Any]:
    """What the pass must find. Raises DamagedError."""
    found: dict[str, Any] = _declared()["found"]
    return found


def check() -> None:
    """Whether the recording is the one that was shipped. Raises DamagedError."""
    import hashlib  # with OpenSSL: for the fork, which ends, and not for the standby process

    wanted = _declared()["recording_sha256"]
    if hashlib.sha256(_read(RECORDING)).hexdigest() != wanted:
        raise DamagedError(f"{RECORDING} is not the file that was shipped (its SHA-256 differs)")


def _declared() -> dict[str, Any]:
    try:
        document = _json.loads(_read(EXPECTED))
    except ValueError as error:
        raise DamagedError(f"{EXPECTED} is not JSON") from error
    if not isinstance(document, dict) or not isinstance(document.get("found"), dict):
        raise DamagedError(f"{EXPECTED} does not say what is to be found")
    return {"recording_sha256": None, **document}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}") from error
