"""A flight recorder for Linux nodes.

    import zombiescope

    zombiescope.mark("epoch 12 starts")           # a line on the time axis of the recorder running here
    with zombiescope.open("/var/lib/zombiescope") as recording:
        cores = recording.table("cores")          # an Arrow table; .pandas() and .numpy() likewise

Importing this package costs nothing: numpy and pyarrow are imported by `open`, not before.
"""

import typing as _typing

from zombiescope._mark import mark

if _typing.TYPE_CHECKING:
    from zombiescope.recording.reader import Recording
    from zombiescope.recording.reader import open_recording as open  # noqa: A004  the name that users expect

__all__ = ["Recording", "mark", "open"]

_LAZY = {"Recording": "Recording", "open": "open_recording"}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'zombiescope' has no attribute {name!r}")
    from zombiescope.recording import reader

    value = globals()[name] = getattr(reader, _LAZY[name])
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
