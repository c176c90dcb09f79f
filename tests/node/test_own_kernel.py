"""A kernel image of one's own that cannot come up: Debian's, which has the disk's driver as a module, without ramdisk."""

from __future__ import annotations

import pytest
from tests.helpers.booted_node import booted

from zombiescope.lab.failure import LabError
from zombiescope.lab.image import image
from zombiescope.lab.node import Plan

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.slow]


def test_a_modular_kernel_dies_with_a_reason() -> None:
    kernel = image("bookworm").kernel
    with pytest.raises(LabError, match="Unable to mount root fs") as error, booted(Plan("v2", str(kernel), False)):
        pass
    assert "virtio_blk" in str(error.value)
    assert "Call Trace" not in str(error.value)
