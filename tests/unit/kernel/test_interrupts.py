"""/proc/interrupts: the table, and what changed between two of them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from zombiescope.kernel import interrupts
from zombiescope.kernel.interrupts import NO_CPU, Interrupts

Node = Callable[[str], str]


def _text(
    cpus: Sequence[int], rows: Mapping[str, Sequence[int]], device: str = "IO-APIC   1-edge      eth0-TxRx-0"
) -> bytes:
    lines = ["            " + "".join(f"CPU{cpu:<8d}" for cpu in cpus)]
    for label, counts in rows.items():
        tail = f"   {device}" if len(counts) == len(cpus) else ""
        lines.append(f"{label:>4}: " + " ".join(f"{count:>10}" for count in counts) + tail)
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize(
    ("name", "label", "device"),
    [
        ("el7-3.10", "64", "em1-TxRx-0"),
        ("el7-3.10", "16", "ehci_hcd:usb1, uhci_hcd:usb3"),
        ("el7-3.10", "TLB", "TLB shootdowns"),
        ("el7-3.10", "ERR", ""),
        ("ubuntu-5.4-v1", "25", "eth0-Tx-Rx-0"),
        ("ubuntu-5.4-v1", "24", "ena-mgmnt@pci:0000:20:03.0"),
        ("debian-6.1-v2", "27", "virtio1-input.1"),
        ("al2023-6.12-v2", "41", "mlx5_comp0@pci:0000:00:06.0"),
    ],
)
def test_devices_of_several_kernels(node: Node, name: str, label: str, device: str) -> None:
    # GIVEN the text of a kernel
    data = Path(node(name), "proc/interrupts").read_bytes()
    kept = Interrupts()
    kept.update(data)

    # THEN the table and the incremental reader name the same owner
    assert interrupts.parse(data).rows[label].device == device
    assert kept.devices()[label] == device


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("IO-APIC   7-edge      ", ""),
        ("GICv3  27 Level     ", ""),
        ("GICv3  27 Level     arch_timer", "arch_timer"),
        ("ITS-MSI 524289 Edge      eth0-Tx-Rx-0", "eth0-Tx-Rx-0"),
    ],
)
def test_owners_are_told_from_triggers(text: str, device: str) -> None:
    table = interrupts.parse(_text((0, 1), {"7": (1, 2)}, device=text))
    assert table.rows["7"] == interrupts.InterruptRow((1, 2), device)


def test_columns_are_the_online_cpus(node: Node) -> None:
    table = interrupts.read(node("debian-6.1-v2"))
    assert table is not None
    assert table.cpus == (0, 1, 3)
    assert table.rows["27"].counts == (0, 0, 21203)


def test_the_first_update_is_the_baseline() -> None:
    assert Interrupts().update(_text((0, 1), {"24": (5, 6)})) == []


def test_only_what_changed_is_reported() -> None:
    kept = Interrupts()
    kept.update(_text((0, 1), {"24": (5, 6), "25": (1, 1), "LOC": (100, 200)}))

    deltas = kept.update(_text((0, 1), {"24": (5, 9), "25": (1, 1), "LOC": (110, 220)}))

    assert sorted(deltas) == [("24", 1, 3), ("LOC", 0, 10), ("LOC", 1, 20)]
    assert kept.update(_text((0, 1), {"24": (5, 9), "25": (1, 1), "LOC": (110, 220)})) == []


def test_rows_that_appear_count_from_zero_and_those_after_them_do_not_shift() -> None:
    kept = Interrupts()
    kept.update(_text((0, 1), {"24": (5, 6), "LOC": (100, 200)}))

    assert kept.update(_text((0, 1), {"24": (5, 6), "30": (0, 7), "LOC": (100, 201)})) == [
        ("30", 1, 7),
        ("LOC", 1, 1),
    ]


def test_a_row_that_went_and_came_back_counts_from_zero() -> None:
    kept = Interrupts()
    kept.update(_text((0,), {"24": (500,), "25": (1,)}))
    assert kept.update(_text((0,), {"25": (1,)})) == []
    assert "24" not in kept.devices()

    assert kept.update(_text((0,), {"24": (700,), "25": (1,)})) == [("24", 0, 700)]


def test_one_row_replaced_by_another() -> None:
    kept = Interrupts()
    kept.update(_text((0,), {"24": (500,), "25": (1,)}))
    kept.update(_text((0,), {"30": (3,), "25": (1,)}))
    assert kept.update(_text((0,), {"24": (9,), "25": (1,)})) == [("24", 0, 9)]


def test_a_cpu_that_comes_online_starts_without_a_delta() -> None:
    kept = Interrupts()
    kept.update(_text((0, 1), {"LOC": (100, 200)}))

    # A CPU keeps its counts while it is offline, so its first ones are no news.
    assert kept.update(_text((0, 1, 2), {"LOC": (101, 200, 5000)})) == [("LOC", 0, 1)]
    assert kept.update(_text((0, 1, 2), {"LOC": (101, 200, 5003)})) == [("LOC", 2, 3)]


def test_a_cpu_that_goes_offline_moves_no_column() -> None:
    kept = Interrupts()
    kept.update(_text((0, 1, 2), {"LOC": (100, 200, 300)}))
    assert kept.update(_text((0, 2), {"LOC": (101, 302)})) == [("LOC", 0, 1), ("LOC", 2, 2)]


def test_counters_wrap_at_32_bits_and_start_anew_when_the_owner_changes() -> None:
    kept = Interrupts()
    kept.update(_text((0, 1), {"24": ((1 << 32) - 10, 5000)}))
    assert kept.update(_text((0, 1), {"24": (5, 20)})) == [("24", 0, 15), ("24", 1, 20)]


def test_rows_of_one_number_belong_to_no_cpu() -> None:
    kept = Interrupts()
    kept.update(_text((0, 1), {"24": (1, 1), "ERR": (0,)}))
    assert kept.update(_text((0, 1), {"24": (1, 1), "ERR": (2,)})) == [("ERR", NO_CPU, 2)]


def test_a_large_machine_reports_the_cells_that_changed() -> None:
    # GIVEN 192 CPUs and 500 interrupts
    cpus = range(192)
    before = {str(irq): [0] * 192 for irq in range(24, 524)}
    kept = Interrupts()
    kept.update(_text(cpus, before))

    # WHEN one queue per CPU fires and one row counts everywhere
    after = {label: list(counts) for label, counts in before.items()}
    for irq in range(24, 216):
        after[str(irq)][irq - 24] += irq
    after["300"] = [3] * 192
    deltas = kept.update(_text(cpus, after))

    # THEN exactly these are reported
    assert len(deltas) == 192 + 192
    assert ("215", 191, 215) in deltas
    assert ("300", 7, 3) in deltas


def test_this_machine_takes_interrupts() -> None:
    kept = Interrupts()
    kept.update(Path("/proc/interrupts").read_bytes())
    sum(range(3_000_000))
    deltas = kept.update(Path("/proc/interrupts").read_bytes())

    table = interrupts.read()
    assert table is not None
    assert all(delta > 0 and (cpu in table.cpus or cpu == NO_CPU) for _, cpu, delta in deltas)
    assert {label for label, _, _ in deltas} <= set(kept.devices())
    assert deltas


def test_a_wide_counter_that_starts_again_has_not_run_backwards() -> None:
    kept = interrupts.Interrupts()
    kept.update(b"     CPU0\n25: 9209120330\n")
    assert kept.update(b"     CPU0\n25: 1\n") == [("25", -1, 1)]
