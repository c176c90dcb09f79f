"""Steps of a plan, computed from what was recorded: quoted, with their way back, and never on a protected unit.

Names come from other people's nodes: a unit, a cgroup, a card may be called anything. They become arguments here and
nowhere else; one that no program would take as a plain argument (empty, with a line break, with a dash in front) makes
no command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from zombiescope.audit.protected import protection
from zombiescope.diagnosis.carriers import is_carrier, is_carrier_unit
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.kernel.cgroup_path import owner
from zombiescope.model.plans.step import Act, Step, advice, change, command, note
from zombiescope.query.cgroups import CgroupsView

NOTE_FIRST = "note this value: it is the way back"
LONGEST_NAME = 4096
SETTING_RISK = "it holds for the whole node, until the next boot"
STOP_RISK = "whatever needs {unit} goes without it; its own processes end"


def shell(*words: str | int) -> str:
    """A command line of these words, each of which stays one word."""
    return shlex.join(map(str, words))


def is_plain(name: str | None) -> bool:
    """Whether a recorded name can be an argument at all."""
    return bool(name) and name is not None and len(name) <= LONGEST_NAME and name[0] != "-" and name.isprintable()


# --- settings of the kernel ------------------------------------------------------------------------------------------


def setting(facts: Facts, name: str) -> str | None:
    """A sysctl, or a file of /sys, as it was when the recording began."""
    known = facts.node.get("sysctls")
    value = known.get(name) if isinstance(known, dict) else None
    return value if isinstance(value, str) and is_plain(value) else None


def lacks_setting(facts: Facts, name: str) -> bool:
    """Whether this kernel is known not to have it."""
    known = facts.node.get("sysctls")
    return isinstance(known, dict) and known.get(name) is None


def set_sysctl(facts: Facts, name: str, value: str, comment: str = "", *, touches: str) -> Iterator[Step]:
    """With the recorded value as the way back; where none was recorded, it is printed first."""
    if lacks_setting(facts, name):
        return
    before = setting(facts, name)
    if before == value:
        yield note(f"{name} is {value} already")
        return
    look = shell("sysctl", name)
    if before is None:
        yield command(look, NOTE_FIRST)
    undo = (
        f"set {name} again to the value that was noted" if before is None else shell("sysctl", "-w", f"{name}={before}")
    )
    act = Act("setting", (("path", f"/proc/sys/{name.replace('.', '/')}"), ("value", value)))
    does = f"set {name} to {value}" + (f": {comment}" if comment else "")
    line = shell("sysctl", "-w", f"{name}={value}")
    yield change(line, does, touches=touches, risk=SETTING_RISK, undo=undo, verify=look, part="stop-gap", act=act)


def write_file(path: str, value: str, before: str | None, comment: str = "", *, touches: str) -> Iterator[Step]:
    """A word into a file of /proc or /sys."""
    look = shell("cat", path)
    before = before if is_plain(before) else None  # a recording may say that a kernel had anything
    if before == value:
        yield note(f"{path} says {value} already")
        return
    if before is None:
        yield command(look, NOTE_FIRST)
    undo = f"write the value that was noted to {shlex.quote(path)}" if before is None else _echo(before, path)
    act = Act("setting", (("path", path), ("value", value)))
    does = f"write {value} to {path}" + (f": {comment}" if comment else "")
    line = _echo(value, path)
    yield change(line, does, touches=touches, risk=SETTING_RISK, undo=undo, verify=look, part="stop-gap", act=act)


def _echo(value: str, path: str) -> str:
    return f"{shell('echo', value)} > {shlex.quote(path)}"


# --- files of a cgroup, cards ----------------------------------------------------------------------------------------


def cgroup_file(view: CgroupsView, cgroup: str, v2: str, v1: str, comment: str = "") -> Step | None:
    """The command that shows a file of a cgroup, where this node has it; v1 is "memory/memory.failcnt". A pattern of
    names (ids replaced by *) is no place."""
    if not cgroup.startswith("/") or "*" in cgroup or not is_plain(cgroup):
        return None
    controller, _, file = v1.partition("/")
    is_v1 = view.memory is not None and view.memory.hierarchy == "v1"
    place = f"/sys/fs/cgroup/{controller}{cgroup}/{file}" if is_v1 else f"/sys/fs/cgroup{cgroup}/{v2}"
    return command(shell("cat", place), comment)


def cards(facts: Facts) -> list[str]:
    """Network cards of the node that can be named in a command."""
    known = facts.node.get("nics")
    named = [*(known if isinstance(known, dict) else ()), *(row["nic"] for row in facts.queues)]
    return sorted({str(card) for card in named if is_plain(str(card))})


# --- who is to blame -------------------------------------------------------------------------------------------------


def untouchable(unit: str) -> str | None:
    """Why no command is given for a unit; None where one may be."""
    return "it runs the containers and jobs of others" if is_carrier_unit(unit) else protection(unit)


def stop(actor: Actor | None, does: str) -> Iterator[Step]:
    """What ends what a unit `does` ("makes these cgroups"); words where no command can be given safely."""
    if actor is None:
        yield note(f"the process that {does} was not recorded, so there is none to stop")
    elif _is_of_a_user(actor):
        yield advice(f"ask the user whose {actor.name} {does}: it does not belong to a system unit")
    elif actor.unit is None:
        where = f" under {actor.cgroup}" if actor.cgroup else ""
        yield advice(f"{actor.subject} {does}{where}; it belongs to no unit, so the user who started it has to stop it")
    elif (why := untouchable(actor.unit)) is not None:
        yield note(f"no command is given for {actor.unit}: {why}; look for who asks it to")
    else:
        yield stop_unit(actor.unit, does, unit_place(actor))


def unit_place(actor: Actor) -> str | None:
    """The cgroup of its unit, where the evidence is in it."""
    if actor.cgroup is None or actor.unit is None or owner(actor.cgroup).unit != actor.unit:
        return None
    above, its, _ = actor.cgroup.partition(f"/{actor.unit}")
    return above + its


def stop_unit(unit: str, does: str, cgroup: str | None = None) -> Step:
    """Of one that is not protected. `cgroup`: where the evidence has it; systemd has to agree before it is stopped."""
    return change(
        shell("systemctl", "disable", "--now", unit),
        stops(unit, f"it {does}"),
        touches=f"{unit} is stopped and does not start at the next boot",
        risk=STOP_RISK.format(unit=unit),
        undo=shell("systemctl", "enable", "--now", unit),
        verify=shell("systemctl", "is-active", unit),
        act=Act("unit.disable", (("unit", unit), *((("cgroup", cgroup),) if cgroup else ()))),
    )


def stops(unit: str, why: str = "") -> str:
    """What ending a unit is called, in every plan."""
    return f"stop {unit} and keep it from starting again" + (f": {why}" if why else "")


def _is_of_a_user(actor: Actor) -> bool:
    """Of a user's own systemd: the system's units of the same names are others."""
    return actor.cgroup is not None and "/user@" in actor.cgroup


def may_change(actor: Actor | None) -> bool:
    """Whether a process may be told to run otherwise: not one that carries out, nor one of a protected service."""
    if actor is None or is_carrier(actor):
        return False
    return actor.unit is None or not actor.unit.endswith((".service", ".socket")) or untouchable(actor.unit) is None
