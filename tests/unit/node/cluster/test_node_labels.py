"""Labels of a fleet from what clouds and installers write on a Node."""

import pytest

from zombiescope.node.cluster.node_labels import labels_of


@pytest.mark.parametrize(
    ("labels", "provider", "expected"),
    [
        (
            {
                "topology.kubernetes.io/zone": "us-east-1a",
                "node.kubernetes.io/instance-type": "p4d.24xlarge",
                "eks.amazonaws.com/nodegroup": "train",
                "eks.amazonaws.com/nodegroup-image": "ami-1",
            },
            "aws:///us-east-1a/i-0abc",
            {"zone": "us-east-1a", "instance_type": "p4d.24xlarge", "pool": "train", "image": "ami-1"},
        ),
        (
            {"cloud.google.com/gke-nodepool": "a3"},
            "gce://project/us-central1-a/gke-1",
            {"zone": "us-central1-a", "pool": "a3", "image": "COS 117"},
        ),
        ({}, "kind://docker/kind/kind-control-plane", {"image": "COS 117"}),
        ({}, "", {"image": "COS 117"}),
    ],
)
def test_labels(labels: dict[str, str], provider: str, expected: dict[str, str]) -> None:
    assert labels_of(labels, provider, "COS 117") == expected
