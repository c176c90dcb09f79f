"""The table of the agent's parts: a section of the configuration, the services that it asks for, and their metrics.

A new part is one line here. Its module is imported by whoever reads the configuration: nothing optional at its top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.agent import incident_log, kubernetes, own_families
from zombiescope.agent.metrics import part as metrics
from zombiescope.agent.profiles import part as profiles
from zombiescope.agent.ray import part as ray
from zombiescope.agent.recorder_section import RecorderSection
from zombiescope.agent.service import Service
from zombiescope.agent.shipping import part as shipping
from zombiescope.agent.tally import Family
from zombiescope.agent.webhook import part as webhook


@dataclass(frozen=True, slots=True)
class Part:
    """`services` makes the services that its section asks for; none: it is switched off."""

    name: str
    section: type
    services: Callable[[Any], Sequence[Service]]
    families: tuple[Family, ...] = ()


PARTS: tuple[Part, ...] = (
    Part("metrics", metrics.MetricsSection, metrics.services, metrics.FAMILIES),
    Part("webhook", webhook.WebhookSection, webhook.services, webhook.FAMILIES),
    Part("incident_log", incident_log.IncidentLogSection, incident_log.services),
    Part("kubernetes", kubernetes.KubernetesSection, kubernetes.services),
    Part("profiles", profiles.ProfilesSection, profiles.services, profiles.FAMILIES),
    Part("ray", ray.RaySection, ray.services, ray.FAMILIES),
    Part("shipping", shipping.ShippingSection, shipping.services, shipping.FAMILIES),
)

RECORDER = "recorder"


def sections() -> dict[str, type]:
    """Every section of the file, by name."""
    return {RECORDER: RecorderSection, **{part.name: part.section for part in PARTS}}


def families() -> Iterator[Family]:
    yield from own_families.FAMILIES
    for part in PARTS:
        yield from part.families
