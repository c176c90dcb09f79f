"""NFS on the loopback of a whole node, with the kernel's own client: the server stops answering, and who waits is
named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers import nfs_server
from tests.helpers.booted_node import RECORDING, booted, start_recorder, until

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.lab.node import Plan
from zombiescope.query.waiting import waiting
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.timeout(900)]

PORT = 20490
SOURCE = "127.0.0.1:/export"
OPTIONS = (
    f"vers=3,nolock,noacl,proto=tcp,mountproto=tcp,port={PORT},mountport={PORT},mountvers=3,"
    "addr=127.0.0.1,mountaddr=127.0.0.1,hard,timeo=100,retrans=2,actimeo=0"
)
SERVES = f"systemd-run --unit nfs-stand-in /usr/bin/python3 -I /usr/local/bin/nfs_server.py {PORT}"
MOUNTS = f"modprobe nfs; modprobe nfsv3; mkdir -p /mnt/train; mount -i -t nfs -o {OPTIONS} {SOURCE} /mnt/train"
READS = "systemd-run --unit loader /bin/dd if=/mnt/train/data of=/dev/null bs=32k iflag=direct"
HANGS_S = 60


def test_a_file_server_that_does_not_answer_is_named_with_who_waits(tmp_path: Path) -> None:
    with booted(Plan(cpus=2)) as node:
        node.put("/usr/local/bin/nfs_server.py", Path(nfs_server.__file__).read_bytes())
        node.shell(SERVES, limit_s=60.0)
        until(node, f"ss -tln | grep -q :{PORT}")
        node.shell(MOUNTS, limit_s=60.0)
        start_recorder(node)
        node.shell(f"{READS}; sleep 15", limit_s=60.0)
        node.shell("systemctl kill --signal STOP nfs-stand-in")
        node.shell(f"sleep {HANGS_S}", limit_s=HANGS_S + 60.0)
        state = node.shell("cat /proc/$(systemctl show -P MainPID loader)/stat").split()[2]
        node.shell("systemctl kill --signal CONT nfs-stand-in; sleep 3; systemctl stop loader", limit_s=120.0)
        node.shell("umount /mnt/train; systemctl stop zombiescope nfs-stand-in", limit_s=120.0)
        place = node.get(RECORDING, tmp_path)
    assert state == "D", "it did not wait at all"
    with open_recording(place) as opened:
        tasks = waiting(opened, opened.start_us, opened.end_us + 1)
        found = diagnose(opened, opened.start_us, opened.end_us + 1)
    assert ("dd", "D", "nfs", SOURCE) in {(task.comm, task.state, task.kind, task.resource) for task in tasks}
    causes = [cause for incident in found.incidents for cause in incident.causes[:1] if cause.pattern == "storage-hang"]
    assert causes, [incident.causes[:1] for incident in found.incidents]
    assert SOURCE in causes[0].summary
    assert "dd" in causes[0].summary
