"""An hour in which nothing happens, replayed: timers, a little housekeeping, restarts that belong to every day."""

from __future__ import annotations

from zombiescope.lab.scenario import Needs, Scenario, Truth

SCENARIO = Scenario(
    id="healthy-idle",
    title="An idle hour, replayed",
    does="writes the raw files of an idle hour into a temporary directory and diagnoses them; touches nothing",
    truth=Truth(None),
    script="",
    seconds=3600.0,
    needs=Needs(root=False),
    kind="replay",
)
