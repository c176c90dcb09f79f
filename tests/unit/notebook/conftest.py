from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.imports.raw_case import rebuild_founding_case
from zombiescope.store.compact import compact


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's recording in rec, all of it Parquet."""
    made = tmp_path_factory.mktemp("demo")
    rebuild_founding_case(made / "rec", None)
    (node,) = (made / "rec").iterdir()
    compact(node)
    return made
