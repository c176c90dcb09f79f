"""The section `metrics` and its two services: one counts what is recorded, one answers whoever asks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zombiescope.agent.config.setting import setting
from zombiescope.agent.metrics.families import FAMILIES as FAMILIES
from zombiescope.agent.optional import package
from zombiescope.agent.service import Context, Service
from zombiescope.base import listen_address
from zombiescope.base.errors import UserError

if TYPE_CHECKING:
    from zombiescope.agent.metrics.account import NodeAccount
    from zombiescope.agent.metrics.door import Access

PORT = 9321
TURN_S = 2.0


@dataclass(frozen=True, slots=True)
class MetricsSection:
    """/metrics, /healthz and /readyz."""

    enabled: bool = setting(True, "Serve metrics.")
    listen: str = setting(f"127.0.0.1:{PORT}", "Address and port.")
    token_file: str | None = setting(
        None, "A file with the token that clients must send (Authorization: Bearer). Default: none."
    )
    open: bool = setting(False, "Answer without a token on addresses other than the loopback.")
    names: tuple[str, ...] = setting((), "Further host names of this server, for use on the loopback without a token.")

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        try:
            where = listen_address.parse(self.listen, PORT)
        except ValueError as error:
            yield "metrics.listen", str(error), None
            return
        if not where.loopback and not self.open and self.token_file is None:
            why = f"{self.listen} is reached from other machines"
            yield "metrics.listen", why, "set metrics.token_file, or metrics.open: true"


def services(section: MetricsSection) -> Sequence[Service]:
    if not section.enabled:
        return ()
    from zombiescope.agent.metrics.account import NodeAccount

    account = NodeAccount()
    return (account, MetricsDoor(section, account))


@dataclass(slots=True)
class MetricsDoor:
    section: MetricsSection
    account: NodeAccount
    name: str = "metrics"

    def run(self, context: Context, stop: threading.Event) -> None:
        package("prometheus_client", "agent")
        from zombiescope.agent.metrics.door import Door
        from zombiescope.agent.metrics.exposition import registry
        from zombiescope.agent.metrics.pages import Pages

        registered = registry(context.tally)
        pages = Pages(registered, context, self.account)
        where = listen_address.parse(self.section.listen, PORT)
        door = Door(pages.answer, self._access(where))
        try:
            made = listen_address.bound(where)
        except OSError as error:
            raise UserError(
                f"{self.section.listen} cannot be listened on: {error.strerror}", "set metrics.listen"
            ) from error
        context.say("ok", f"http://{where.shown}:{listen_address.port_of(made)}/metrics")
        asyncio.run(door.serve(made, lambda: self._turns(context, stop)))

    @staticmethod
    def _turns(context: Context, stop: threading.Event) -> bool:
        """Asked by the door's loop every second: one that hangs asks nothing, and beats no more."""
        context.beat(TURN_S)
        return stop.is_set()

    def _access(self, where: listen_address.ListenAddress) -> Access:
        from zombiescope.agent.metrics.door import Access

        if self.section.token_file is not None:
            return Access(token=read_token(Path(self.section.token_file)))
        ours = {"localhost", os.uname().nodename.lower(), *map(str.lower, self.section.names)}
        return Access(names=frozenset(ours) if where.loopback else frozenset(), is_open=not where.loopback)


def read_token(path: Path) -> str:
    """The one line of the file. Raises UserError."""
    try:
        token = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise UserError(f"{path}: {why}", "metrics.token_file names a file with the token") from error
    if len(token) < 16:
        raise UserError(f"{path}: a token has at least 16 characters", "head -c 24 /dev/urandom | base64 makes one")
    return token
