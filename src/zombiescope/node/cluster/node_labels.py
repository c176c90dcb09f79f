"""What the cluster knows of our Node: zone, instance type, image and pool, from its labels and its provider id.

A fleet compares nodes by these. Clouds and installers name the same thing differently; the first name that is there
counts. Absence: a cluster on plain machines has a zone only if somebody gave it one; then the label is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightkube import AsyncClient

_NAMES: dict[str, tuple[str, ...]] = {
    "zone": ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    "region": ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    "instance_type": ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
    "image": (
        "eks.amazonaws.com/nodegroup-image", "karpenter.k8s.aws/instance-ami-id",
        "kubernetes.azure.com/node-image-version",
    ),
    "pool": (
        "karpenter.sh/nodepool", "karpenter.sh/provisioner-name", "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool",
        "agentpool",
    ),
}  # fmt: skip
"""Ours -> theirs, the most specific first."""
MOST = 253


async def node_labels(client: AsyncClient, node: str) -> dict[str, str]:
    from lightkube.resources.core_v1 import Node

    found = await client.get(Node, node)
    labels = (found.metadata.labels if found.metadata else None) or {}
    provider = (found.spec.providerID if found.spec else None) or ""
    info = found.status.nodeInfo if found.status else None
    return labels_of(labels, provider, info.osImage if info else None)


def labels_of(labels: dict[str, Any], provider: str, os_image: str | None) -> dict[str, str]:
    """`provider`: as aws:///us-east-1a/i-0abc and gce://project/us-central1-a/name."""
    found = {ours: next((labels[name] for name in names if labels.get(name)), None) for ours, names in _NAMES.items()}
    cloud, _, path = provider.partition("://")
    parts = path.split("/")
    if cloud in ("aws", "gce") and len(parts) == 3:
        found["zone"] = found["zone"] or parts[1] or None
    found["image"] = found["image"] or os_image
    return {ours: str(value)[:MOST] for ours, value in found.items() if value}
