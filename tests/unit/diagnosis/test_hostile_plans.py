"""Plans that no pattern's scene reaches, made of names that a neighbour chose: containers, pods, values, places.

tests/unit/diagnosis/test_plans.py does the same for the scene of every pattern.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.helpers import printed
from tests.helpers.scenes import Scene
from tests.unit.diagnosis.test_plans import HOSTILE, is_shell, lines, steps

from zombiescope import audit
from zombiescope.diagnosis import plan, plan_container
from zombiescope.diagnosis.incident import Actor
from zombiescope.model.plans.step import Step
from zombiescope.query.containers import Container


def harmless(found: list[Step], name: str) -> None:
    """Whatever is printed is one line of shell in which the name is part of one word, and no option."""
    for step in found:
        assert str(step).isprintable()
    for line in lines(found):
        assert line.isprintable(), line
        assert is_shell(line), line
        words = printed.words(line)
        assert all(name in word for word in words if "pwned" in word), line
        assert not [word for word in words if word.startswith("-") and "pwned" in word and "=" not in word], line
        assert not {"touch", "pwned"} & set(printed.programs(line)), line


def actors(name: str) -> Iterator[Actor]:
    whole = {
        "comm": name, "pid": 7, "unit": f"{name}.service", "cgroup": f"/x/{name}", "container": "c" * 64,
        "container_name": name, "pod": name, "namespace": name, "image": name,
    }  # fmt: skip
    for kept in product((True, False), repeat=4):
        left = {
            key for key, stays in zip(("unit", "container", "container_name", "pod"), kept, strict=True) if not stays
        }
        yield Actor(**{key: value for key, value in whole.items() if key not in left})  # type: ignore[arg-type]


def known(name: str) -> Iterator[Container | None]:
    yield None
    one = Container("c" * 64, name=name, image=name, runtime="docker", starts=1)
    yield one
    yield one._replace(restart_policy=name)
    yield one._replace(restart_policy="always")
    yield one._replace(requester=name, requester_pid=5, requester_unit=f"{name}.service", requester_command=name)
    yield one._replace(requester=name, requester_command=name)
    yield one._replace(pod=name, namespace=name, pod_uid=name)


@pytest.mark.parametrize("name", HOSTILE)
def test_containers_pods_and_who_asks_for_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for actor, container in product(actors(name), known(name)):
        monkeypatch.setattr(plan_container, "container_of", lambda *_, one=container: one)
        found = list(plan_container.stop_what(SimpleNamespace(), actor, f"starts {name}"))  # type: ignore[arg-type]
        harmless(found, name)
        made += found
    assert any("pwned" in line for line in lines(made)) or name.startswith("-") or not name.isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_values_that_a_recording_says_a_kernel_had(name: str) -> None:
    facts: Any = SimpleNamespace(node={"sysctls": {"vm.x": name}})
    harmless(list(plan.set_sysctl(facts, "vm.x", "0", touches="x")), name)
    harmless(list(plan.write_file("/sys/x", "never", name, touches="x")), name)
    harmless(list(plan.write_file(f"/sys/{name}", "never", name, touches="x")), name)


@pytest.mark.parametrize("name", [name for name in HOSTILE if "/" not in name])
def test_a_recording_in_a_place_that_somebody_named(name: str, tmp_path: Path) -> None:
    scene = Scene().hog("do_syscall_64 __x64_sys_bpf an_unheard_of_function", comm=name[:15], unit=f"{name}.service")
    found = steps(scene, tmp_path / name)
    assert found
    harmless(found, name)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.isprintable() and "/" not in name])
def test_units_that_an_image_brings(name: str, tmp_path: Path) -> None:
    """Names of units have a shape, by which others are left out; what is in them has none."""
    units = tmp_path / "etc/systemd/system"
    wants = units / "multi-user.target.wants"
    wants.mkdir(parents=True)
    for number, rest in enumerate(("Restart=always\nRestartSec=0", "Type=simple", "WatchdogSec=1")):
        unit = f"agent{number}.service"
        (units / unit).write_text(f"[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/nowhere/{name}\n{rest}\n")
        (wants / unit).symlink_to(f"../{unit}")
    found = audit.examine(tmp_path).findings
    assert found
    for finding in found:
        for line in finding.fix:
            assert line.isprintable(), line
            assert is_shell(line), line
            assert not {"touch", "pwned"} & set(printed.programs(line)), line


# --- one function quotes ---------------------------------------------------------------------------------------------

CHECKED = {
    ("hung_task.py", "pid"): "an int",
    ("scheduler_contention.py", "crowd.cpu"): "an int",
    ("shm_full.py", "size"): "an int",
    ("shm_full.py", "twice"): "an int",
    ("trainer_starved.py", "worst.cpu"): "an int",
}
QUOTES = {"shell", "shlex.quote", "_echo"}


def _joined(node: ast.AST) -> Iterator[ast.FormattedValue]:
    """Values in f-strings that are not arguments of what quotes."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in QUOTES:
        return
    if isinstance(node, ast.FormattedValue):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _joined(child)


def test_whatever_stands_in_a_command_was_quoted() -> None:
    found = set()
    for file in sorted((printed.SOURCE / "diagnosis").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("command", "change"):
                given = [*node.args[:1], *(word.value for word in node.keywords if word.arg in ("undo", "check"))]
                for value in (value for part in given for value in _joined(part)):
                    if not (isinstance(value.value, ast.Call) and ast.unparse(value.value.func) in QUOTES):
                        found.add((file.name, ast.unparse(value.value)))
    assert found == CHECKED.keys()
