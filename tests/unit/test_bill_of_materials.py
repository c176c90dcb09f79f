"""The bill of materials says what the locks say, and the page of licences is not older than they are."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "requirements/bill_of_materials.py"


def module() -> Any:
    spec = importlib.util.spec_from_file_location("bill_of_materials", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["bill_of_materials"] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def printed(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-P", str(SCRIPT), *arguments], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_every_pinned_package_is_in_it_once_with_its_hashes() -> None:
    parts = json.loads(printed())["components"]
    names = [(part["name"], part["version"]) for part in parts]
    assert len(names) == len(set(names))
    for line in (ROOT / "requirements/runtime.txt").read_text().splitlines():
        elsewhere = any(f"sys_platform == '{name}'" in line for name in ("win32", "emscripten"))
        if "==" in line and not elsewhere:
            name, _, rest = line.partition("==")
            assert (name.partition("[")[0], rest.split()[0]) in names
    assert {"preact", "@preact/signals"} <= {name for name, _ in names}
    assert "vite" not in {name for name, _ in names}, "what builds the page is not shipped"
    assert all(part["hashes"] and all(len(each["content"]) in (64, 128) for each in part["hashes"]) for part in parts)


def test_hashes_belong_to_their_own_package() -> None:
    bill = module()
    lock = (
        "a==1 \\\n    --hash=sha256:" + "0" * 64 + "\nb==2 ; sys_platform == 'win32' \\\n    --hash=sha256:" + "1" * 64
    )
    (only,) = bill.of_python(lock)
    assert (only.name, only.hashes) == ("a", (("SHA-256", "0" * 64),))


def test_the_same_locks_give_the_same_bytes() -> None:
    assert printed() == printed()


def test_no_address_of_a_registry() -> None:
    assert "://" not in printed()


def test_the_page_of_licences_is_up_to_date() -> None:
    assert (ROOT / "docs/licences.md").read_text() == printed("--page"), "make lock writes it anew"


def test_every_licence_is_declared() -> None:
    assert [part.name for part in module().components() if part.licence == "not declared"] == []
