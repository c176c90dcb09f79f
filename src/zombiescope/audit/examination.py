"""One audit: what systemd would read is read, every rule is asked, and what could not be read is said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from zombiescope.audit import catalogue as catalogues
from zombiescope.audit import kernel_facts, platform, rules
from zombiescope.audit.finding import Audit, MissingUntilBoot, worst_first
from zombiescope.audit.node import Node
from zombiescope.audit.surroundings import Surroundings, Watch
from zombiescope.base.missing import Missing
from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.show import RunningUnit, running_units
from zombiescope.node.systemd.unit_files import generators, instances
from zombiescope.node.systemd.unit_files.starts import starts
from zombiescope.node.systemd.watcher import BusUnavailableError

_UNREAD_SHOWN = 20


def examine(
    root: str | Path = "/",
    live: bool | None = None,
    *,
    catalogue: Iterable[Path] = (),
    bus_address: str | None = None,
    surroundings: Surroundings | None = None,
) -> Audit:
    """Look at the node (`root` is /) or at a root directory.

    `live` asks the running systemd over D-Bus as well; None asks it when the root is that of this machine.
    `surroundings` are read here, of this machine, unless somebody has read them already.
    OSError when the root cannot be opened, CatalogueError when an entry of the catalogue cannot be used.
    """
    with Root(root) as place:
        asks = place.is_this_machine if live is None else live
        watch = Watch() if surroundings is None and asks and place.is_this_machine else None
        running, missing = _ask(bus_address, place) if asks else (None, [])
        node = look(place, running, catalogue)
        if watch is not None:
            surroundings = watch.end()
            missing += surroundings.missing
        node.surroundings = surroundings or Surroundings()
        findings = worst_first(finding for rule in rules.every() for finding in rule.find(node))
        missing += _unknown(node)
        return Audit(
            root=place.path,
            live=running is not None,
            findings=findings,
            missing=tuple(missing),
            units=len(set(node.files.names)),
            enabled=sum(1 for name in node.starts if name.endswith(".service")),
            platform=node.platform.name,
            running=running,
        )


def look(root: Root, running: dict[str, RunningUnit] | None = None, catalogue: Iterable[Path] = ()) -> Node:
    """Everything that the rules need."""
    known = catalogues.load(root, catalogue)
    files = unit_files.read(root)
    started = starts(files)
    wanted = tuple(name for rule in rules.every() for name in getattr(rule, "SYSCTLS", ()))
    kernel = kernel_facts.read(root, known.hierarchies, wanted)
    where = platform.detect(root, started, kernel, known.platforms)
    return Node(root, files, started, running, kernel, where, known)


def _ask(address: str | None, root: Root) -> tuple[dict[str, RunningUnit] | None, list[Missing]]:
    try:
        answer = running_units(address)
    except BusUnavailableError as unavailable:
        state = unavailable.state
        if not root.is_directory("/run/systemd/system"):  # sd_booted(3)
            why = "systemd is not running here; its files were read instead, and apply where this root is booted"
            grant = "in a container: mount the host's / and /run/dbus, and use zombiescope audit --root /host --systemd"
            return None, [Missing("systemd", why, grant)]
        return None, [Missing("systemd", f"{state.why}; its files were read instead", state.fix)]
    if not answer.unanswered:
        return answer.units, []
    why = f"it did not describe {answer.unanswered} services in time; their settings are from files"
    return answer.units, [Missing("systemd", why, "run it again when the node is less busy")]


def _unknown(node: Node) -> list[Missing]:
    """What the files do not show."""
    root, found = node.root, []
    if node.files.systemd_version is None and not set(node.files.names):
        found.append(
            Missing("units", "no systemd and no unit file in this root", "nothing to grant: no unit starts here")
        )
    for item in generators.unknown(root, node.files):
        grant = "boot it, and run zombiescope audit on the node"
        found.append(MissingUntilBoot(f"generator: {item.source}", f"only known after boot: {item.why}", grant))
    for template in sorted(node.files.endless)[:_UNREAD_SHOWN]:
        why = f"its instances pull in others without an end; {instances.MOST:,} of all were followed"
        found.append(Missing(template, why, "look at its Wants=, Requires= and Also= lines"))
    for path in node.files.tree.odd_names:
        shown = path.encode("utf-8", "backslashreplace").decode()
        found.append(Missing(shown, "systemd does not accept this as the name of a unit", "rename or remove it"))
    for path, why in sorted(root.unread.items())[:_UNREAD_SHOWN]:
        shown = path.encode("utf-8", "backslashreplace").decode()
        found.append(Missing(shown, f"could not be read: {why}", "run as root, or repair the file"))
    if len(root.unread) > _UNREAD_SHOWN:
        found.append(Missing("files", f"{len(root.unread) - _UNREAD_SHOWN} more could not be read", "run as root"))
    return found
