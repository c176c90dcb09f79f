"""Heat by package and memory errors by module."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import rdma_tree

from zombiescope.kernel import edac, thermal_throttle


def test_siblings_are_counted_once_on_192_cpus(tmp_path: Path) -> None:
    rdma_tree.throttling(tmp_path, 192, core_throttle_count=3, package_throttle_count=7, core_throttle_total_time_ms=5)
    places = thermal_throttle.places(str(tmp_path))
    assert places is not None
    assert {package: len(found) for package, found in places.cores.items()} == {0: 48, 1: 48}
    counts = {"core_throttle_count": 144, "core_throttle_total_time_ms": 240, "package_throttle_count": 7}
    assert thermal_throttle.read(places) == {0: counts, 1: counts}


def test_a_machine_that_counts_no_heat_has_none(tmp_path: Path) -> None:
    rdma_tree.throttling(tmp_path, 4)
    assert thermal_throttle.places(str(tmp_path)) is None
    assert thermal_throttle.places(str(tmp_path / "nowhere")) is None


def test_a_module_is_called_by_its_label_and_a_hostile_label_is_harmless(tmp_path: Path) -> None:
    base = "sys/devices/system/edac/mc"
    for module, label in (("dimm0", "CPU_SrcID#0_MC#0_Chan#1_DIMM#0"), ("dimm1", "\x1b[31m<b>" + "x" * 500)):
        rdma_tree.write(tmp_path, f"{base}/mc0/{module}/dimm_ce_count", 4)
        rdma_tree.write(tmp_path, f"{base}/mc0/{module}/dimm_ue_count", 0)
        rdma_tree.write(tmp_path, f"{base}/mc0/{module}/dimm_label", label)
    rdma_tree.write(tmp_path, f"{base}/mc1/ce_count", 9)
    rdma_tree.write(tmp_path, f"{base}/power/runtime_status", "unsupported")
    found = edac.read(str(tmp_path))
    assert found["CPU_SrcID#0_MC#0_Chan#1_DIMM#0"] == (4, 0)
    assert found["mc1"] == (9, None)
    assert not any("\x1b" in name or "<" in name or len(name) > 64 for name in found)


def test_no_driver_no_modules(tmp_path: Path) -> None:
    assert edac.read(str(tmp_path)) == {}
