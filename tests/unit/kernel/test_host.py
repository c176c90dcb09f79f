"""What a node is, and where it runs."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from zombiescope.kernel import host

Node = Callable[[str], str]


def test_a_node_with_cloud_init(node: Node) -> None:
    found = host.read(node("ubuntu-5.4-v1"))
    assert (found.hostname, found.release) == ("ip-10-0-12-34", "5.4.0-1103-aws")
    assert found.boot_id == "0f0e0d0c-0b0a-4a0b-8c0d-0e0f00010203"
    assert (found.os_id, found.os_version) == ("ubuntu", "20.04")
    assert found.consoles == ("tty1", "ttyS0")
    assert found.labels == {
        "zone": "us-east-1a",
        "image": "ami-0123456789abcdef0",
        "instance_type": "p4d.24xlarge",
    }


def test_the_instance_type_is_also_in_dmi_on_ec2(node: Node) -> None:
    found = host.read(node("al2023-6.12-v2"))
    assert found.labels == {"instance_type": "g6.48xlarge"}
    assert found.consoles == ("tty0", "ttyS0,115200n8")


def test_the_image_is_also_in_os_release(node: Node) -> None:
    found = host.read(node("debian-6.1-v2"))
    assert found.labels == {"image": "ml-base-2025.10.1"}
    assert found.product == "Google Compute Engine"


def test_a_machine_in_a_rack_has_no_labels(node: Node) -> None:
    found = host.read(node("el7-3.10"))
    assert found.labels == {}
    assert found.vendor is None


def test_azure_keeps_its_own_keys() -> None:
    compute = {"zone": "", "location": "westeurope", "vmSize": "Standard_ND96asr_v4"}
    document = {"ds": {"meta_data": {"imds": {"compute": compute}}}, "v1": {"availability_zone": None}}
    assert host.parse_instance_data(json.dumps(document).encode()) == {
        "zone": "westeurope",
        "instance_type": "Standard_ND96asr_v4",
    }


def test_redacted_values_are_absent() -> None:
    document = {"ds": {"meta_data": {"instance-type": "redacted for non-root user"}}}
    assert host.parse_instance_data(json.dumps(document).encode()) == {}


def test_what_is_no_json_has_no_labels() -> None:
    assert host.parse_instance_data(b"{") == {}
    assert host.parse_instance_data(b"[1]") == {}
    assert host.parse_instance_data(b"[" * 100_000) == {}


def test_this_machine() -> None:
    found = host.read()
    assert found.release == os.uname().release
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_in_a_pod_it_is_the_node_that_counts_and_not_the_image(tmp_path: Path) -> None:
    # GIVEN another mount namespace than process 1, and the host's PID namespace
    for process, inode in (("self", 4026532443), ("1", 4026531841)):
        (tmp_path / f"proc/{process}/ns").mkdir(parents=True)
        (tmp_path / f"proc/{process}/ns/mnt").symlink_to(f"mnt:[{inode}]")
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    for place, name in (("etc", "IMAGE"), ("proc/1/root/etc", "Flatcar")):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "os-release").write_text(f'PRETTY_NAME="{name}"\n')
    cloud = tmp_path / "proc/1/root/run/cloud-init"
    cloud.mkdir(parents=True)
    (cloud / "instance-data.json").write_text('{"v1": {"availability_zone": "us-east-1a"}}')
    found = host.read(str(tmp_path))
    assert found.os_name == "Flatcar"
    assert found.labels == {"zone": "us-east-1a"}


def test_the_files_of_an_image_say_nothing_about_a_node_that_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/mnt").symlink_to("mnt:[4026532443]")
    (tmp_path / "proc/self/mountinfo").write_text("30 29 0:28 / / ro - overlay overlay rw\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('PRETTY_NAME="IMAGE"\n')
    assert host.read(str(tmp_path)).os_name is None
