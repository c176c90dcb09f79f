"""Plans in these tests are made of what the tests say, and not of what this machine happens to hold."""

from __future__ import annotations

import pytest

from zombiescope.fix import plan_incident


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_incident, "MORE", {})
