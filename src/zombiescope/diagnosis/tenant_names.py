"""What a person calls the process on a GPU: its script and its pod, and not its pid.

Trainers are all called python; the script stands in the command line, where the recorder could read it. Names are other
people's, so they are bounded here and escaped where they are printed.
"""

from __future__ import annotations

from zombiescope.diagnosis.facts import Facts
from zombiescope.query.gpu_use import Tenant
from zombiescope.store import columns

MOST = 60
INTERPRETERS = ("python", "pt_main_thread", "ray::", "torchrun")


class TenantNames:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def of(self, tenants: list[Tenant]) -> str:
        """Of the processes of one GPU: the one with most memory stands for all."""
        if not tenants:
            return ""
        first = max(tenants, key=lambda one: (one.memory_bytes or 0, -one.pid))
        where = _place(first)
        who = _short(self._script(first) or first.comm or f"pid {first.pid}")
        return f"{who}, {where}" if where else who

    def _script(self, tenant: Tenant) -> str | None:
        if tenant.comm is not None and not tenant.comm.startswith(INTERPRETERS):
            return None
        return script(self._command_lines.get(tenant.pid, ""))

    @property
    def _command_lines(self) -> dict[int, str]:
        facts = self._facts
        span = (facts.start_us, facts.end_us)
        return facts.always(("command lines of GPUs", *span), lambda: _read(facts))


def _read(facts: Facts) -> dict[int, str]:
    pids = {one.pid for one in facts.gpu_tenants}
    rows = facts.recording.table("tasks", facts.start_us, facts.end_us, ("pid", "cmdline"))
    found = zip(columns.ids(rows.column("pid")).tolist(), columns.texts(rows.column("cmdline")), strict=True)
    return {pid: text for pid, text in found if text and pid in pids}


def script(command_line: str) -> str | None:
    """The file or module that an interpreter runs."""
    words = command_line.split()[1:16]
    for place, word in enumerate(words):
        if word == "-m":
            return words[place + 1] if place + 1 < len(words) else None
        if not word.startswith("-"):
            return word.rpartition("/")[2] if word.endswith(".py") else None
    return None


def _place(tenant: Tenant) -> str:
    named = tenant.named
    if named.pod or tenant.pod:
        return f"pod {_short(named.pod_path or tenant.pod or '')}"
    if named.name:
        return f"container {_short(named.name)}"
    return _short(tenant.unit) if tenant.unit else ""


def _short(text: str) -> str:
    return text if len(text) <= MOST else text[: MOST - 1] + "…"
