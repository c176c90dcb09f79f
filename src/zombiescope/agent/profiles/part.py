"""The section `profiles` and its service: a process that stays, and sends what was sampled since the last time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from zombiescope.agent import worker
from zombiescope.agent.config.setting import Duration, Rule, setting
from zombiescope.agent.service import Context, Service
from zombiescope.agent.tally import Family
from zombiescope.base import safe_files
from zombiescope.base.http_client import is_address

MODULE = "zombiescope.query.exports.continuous"
PEERS = ("pyroscope", "parca", "otlp")
SILENCE_S = 180.0
SENT, BYTES = "zombiescope_profiles_samples_total", "zombiescope_profiles_bytes_total"
SKIPPED, FAILURES = "zombiescope_profiles_skipped_seconds_total", "zombiescope_profiles_failures_total"
FAMILIES = (
    Family(SENT, "counter", "Samples that the store of profiles has accepted."),
    Family(BYTES, "counter", "Bytes that were sent to it."),
    Family(SKIPPED, "counter", "Seconds of samples that were passed over because the store was away for too long."),
    Family(FAILURES, "counter", "How often the store could not be reached or refused."),
)
_EVERY, _BACKLOG, _ANSWER = Duration(60.0), Duration(900.0), Duration(10.0)


@dataclass(frozen=True, slots=True)
class ProfilesSection:
    """Samples to Pyroscope, Parca or an OTLP collector, all the time."""

    to: str = setting("pyroscope", "Kind of peer.", choices=PEERS)
    url: str | None = setting(None, "Its address: http://pyroscope:4040. Default: nothing is sent.")
    name: str = setting("zombiescope", "Application, job or service.name at the peer.")
    labels: dict[str, str] = field(
        default_factory=dict, metadata={"rule": Rule("Labels in addition to the node's: {team: ml}.")}
    )
    headers: dict[str, str] = field(
        default_factory=dict, metadata={"rule": Rule("Further headers: {X-Scope-OrgID: team}.")}
    )
    token_file: str | None = setting(None, "A file with the token to send as Bearer.")
    plain_http: bool = setting(False, "Send the token to another machine over unencrypted HTTP.")
    every: Duration = setting(_EVERY, "How often to send samples.", low=10, high=3600)
    backlog: Duration = setting(
        _BACKLOG, "How much to send afterwards when the peer was away; older samples are skipped.", low=60, high=86400
    )
    timeout: Duration = setting(_ANSWER, "How long to wait for the peer's answer.", low=1, high=60)

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        if self.url is not None and not is_address(self.url):
            yield "profiles.url", "is not an address", "write http://host:port or https://host"

    def policy(self) -> dict[str, Any]:
        """As the process takes it."""
        return {
            "to": self.to, "url": self.url, "name": self.name, "labels": dict(self.labels),
            "headers": dict(self.headers), "token_file": self.token_file, "plain_http": self.plain_http,
            "timeout_s": self.timeout, "backlog_s": self.backlog, "every_s": self.every,
        }  # fmt: skip


def services(section: ProfilesSection) -> Sequence[Service]:
    return (ProfilesService(section),) if section.url is not None else ()


@dataclass(slots=True)
class ProfilesService:
    section: ProfilesSection
    name: str = "profiles"

    def run(self, context: Context, stop: threading.Event) -> None:
        context.say("ok", "")
        while not stop.is_set():
            if context.node_dir.is_dir():
                self._send(context, stop)
            context.beat(self.section.every)
            stop.wait(self.section.every)

    def _send(self, context: Context, stop: threading.Event) -> None:
        folder = context.node_dir / "agent"
        safe_files.make_directory(folder)
        context.beat(worker.LIMIT_S + SILENCE_S)
        worker.run(
            MODULE, [str(context.node_dir), str(folder / "profiles.json")], self.section.policy(),
            lambda said: self._said(context, said), stop, SILENCE_S,
        )  # fmt: skip

    @staticmethod
    def _said(context: Context, said: dict[str, Any]) -> None:
        context.beat(worker.LIMIT_S + SILENCE_S)
        if "failure" in said:
            context.say("degraded", str(said["failure"]))
            context.count(FAILURES)
            return
        if "passes" in said:
            context.say("ok", "")
            context.worked()
        for family, key in ((SENT, "samples"), (BYTES, "bytes"), (SKIPPED, "skipped_s")):
            context.count(family, float(said.get(key, 0)))
