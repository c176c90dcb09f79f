"""A flight recorder for Linux nodes.

    import zombiescope

    zombiescope.mark("epoch 12 starts")           # a line on the time axis of the recorder running here
    zombiescope.step(n)                           # a training step begins; never raises, never waits
    with zombiescope.open("/var/lib/zombiescope") as recording:
        cores = recording.table("cores")          # an Arrow table; .pandas() and .numpy() likewise
        found = recording.diagnose(last="10m")    # as the command; .flamegraph() and .heatmap() likewise

Importing this package costs nothing: numpy and pyarrow are imported by `open`, not before.
"""

from zombiescope._mark import mark, step

TYPE_CHECKING = False  # as typing's, which takes longer to load than all of this
if TYPE_CHECKING:
    from zombiescope.notebook.recording import Recording
    from zombiescope.notebook.recording import open_recording as open  # noqa: A004  the name that users expect

del TYPE_CHECKING

__all__ = ["Recording", "mark", "open", "step"]

_LAZY = {"Recording": "Recording", "open": "open_recording"}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'zombiescope' has no attribute {name!r}")
    from zombiescope.notebook import recording

    value = globals()[name] = getattr(recording, _LAZY[name])
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
