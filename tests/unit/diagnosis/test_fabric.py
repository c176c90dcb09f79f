"""Ports of the fabric: errors that are new are told with what they say; what a healthy fabric does raises nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.pattern_scenes import resends
from tests.helpers.scenes import Scene

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.kernel.infiniband_counters import FULL
from zombiescope.store.reader import open_recording

READINGS = 90
"""Fifteen minutes, every ten seconds."""
BAD = range(60, 66)


class Fabric:
    """Ports that carry traffic; what else they count is given by reading."""

    def __init__(self, ports: int = 16, readings: int = READINGS) -> None:
        self.node, self.readings = Node(), readings
        for number in range(ports):
            load = self.node.series("infiniband", "port_xmit_data", f"mlx5_{number}/1")
            state = self.node.series("infiniband_link", "state", f"mlx5_{number}/1", "gauge")
            rate = self.node.series("infiniband_link", "rate_mbps", f"mlx5_{number}/1", "gauge")
            self.node.count(at(0), state, 4)
            self.node.count(at(0), rate, 400_000)
            for reading in range(readings):
                self.node.count(at(reading), load, 1_000_000_000)

    def counts(
        self, name: str, added: Callable[[int], int], port: str = "mlx5_3/1", source: str = "infiniband"
    ) -> None:
        number = self.node.series(source, name, port)
        for reading in range(self.readings):
            if value := added(reading):
                self.node.count(at(reading), number, value)

    def diagnose(self, place: Path) -> Diagnosis:
        write_segment(place, self.node.tables)
        with open_recording(place) as recording:
            return diagnose(recording, recording.start_us, recording.end_us + 1)


def at(reading: int) -> int:
    return START_US + (reading + 1) * 10 * SECOND


def in_bad(value: int, otherwise: int = 0) -> Callable[[int], int]:
    return lambda reading: value if reading in BAD else otherwise


@pytest.mark.parametrize(
    ("counter", "added", "words"),
    [
        ("symbol_error", 200, "cable"),
        ("port_xmit_discards", 500, "no room"),
        ("local_ack_timeout_err", 40, "a peer does not answer"),
        ("packet_seq_err", 3000, "get lost"),
        ("out_of_buffer", 40_000, "does not take packets fast enough"),
        ("rx_icrc_encapsulated", 1, "damaged though every link"),
        ("unresponsive_remote_events", 12, "a peer does not answer"),
        ("cmds_err", 5, "driver or its firmware"),
    ],
)
def test_what_is_new_is_told_with_port_counter_time_and_meaning(
    counter: str, added: int, words: str, tmp_path: Path
) -> None:
    fabric = Fabric()
    fabric.counts(counter, in_bad(added))
    [incident] = fabric.diagnose(tmp_path).incidents
    cause = incident.causes[0]
    assert (cause.pattern, incident.severity) == ("fabric-errors", "warning")
    assert "mlx5_3/1" in cause.summary
    assert counter in cause.summary
    assert words in cause.summary
    assert cause.confidence <= 0.6
    assert incident.from_us == pytest.approx(at(BAD[0]) - 10 * SECOND, abs=11 * SECOND)


def test_a_queue_that_gave_up_is_critical(tmp_path: Path) -> None:
    fabric = Fabric()
    fabric.counts("req_transport_retries_exceeded", lambda reading: int(reading == 60))
    [incident] = fabric.diagnose(tmp_path).incidents
    assert incident.severity == "critical"


def test_two_ports_with_errors_are_both_named(tmp_path: Path) -> None:
    fabric = Fabric()
    fabric.counts("symbol_error", in_bad(100))
    fabric.counts("symbol_error", in_bad(90), "mlx5_9/1")
    found = fabric.diagnose(tmp_path).incidents
    named = {symptom.facts["port"] for incident in found for symptom in incident.symptoms}
    assert named == {"mlx5_3/1", "mlx5_9/1"}


def test_a_burst_on_a_port_that_always_counts_a_few_stands_out(tmp_path: Path) -> None:
    fabric = Fabric()
    fabric.counts("packet_seq_err", in_bad(9000, 100))
    assert [one.causes[0].pattern for one in fabric.diagnose(tmp_path).incidents] == ["fabric-errors"]


@pytest.mark.parametrize(
    ("counters", "added"),
    [
        (("np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets"), in_bad(2_000_000)),  # ECN at work
        (("out_of_sequence",), in_bad(5_000_000)),  # adaptive routing
        (("port_xmit_wait",), in_bad(90_000_000)),  # credits
        (("packet_seq_err", "roce_adp_retrans"), lambda _: 300),  # what it always does
        (("symbol_error",), lambda reading: 2 * (reading == 60)),  # two bits
        (("link_downed", "local_ack_timeout_err"), lambda reading: int(reading == 60)),  # the switch was rebooted
        (("out_of_buffer",), lambda reading: 4000 * (reading % 6 == 0)),  # every epoch
        (("resp_cqe_flush_error", "a_counter_of_tomorrow"), in_bad(5000)),
    ],
)
def test_what_a_healthy_fabric_does_raises_nothing(
    counters: tuple[str, ...], added: Callable[[int], int], tmp_path: Path
) -> None:
    fabric = Fabric()
    for counter in counters:
        fabric.counts(counter, added)
    assert fabric.diagnose(tmp_path).incidents == ()


def test_a_port_that_went_down_once_with_its_peer_is_a_note_and_three_times_a_flap(tmp_path: Path) -> None:
    for times, found in ((1, []), (3, ["fabric-errors"])):
        fabric = Fabric()
        fabric.counts("link_downed", lambda reading, times=times: int(60 <= reading < 60 + times))  # type: ignore[misc]
        for reading in range(60, 60 + times):
            text = "the RDMA port mlx5_3/1 is down, it was active"
            fabric.node.happen(at(reading), "link_down", "infiniband", "info", text, interface="mlx5_3/1", state=1)
        named = [one.causes[0].pattern for one in fabric.diagnose(tmp_path / str(times)).incidents]
        assert named == found


def test_a_port_that_lost_speed_or_stays_down_is_told(tmp_path: Path) -> None:
    for name, value, words in (("rate_mbps", 200_000, "runs at 200 Gb/s"), ("state", 1, "has been down for")):
        fabric = Fabric()
        fabric.node.count(at(40), fabric.node.series("infiniband_link", name, "mlx5_3/1", "gauge"), value)
        [incident] = fabric.diagnose(tmp_path / name).incidents
        assert words in incident.symptoms[0].text
        assert incident.causes[0].pattern == "fabric-errors"


def test_errors_since_the_recording_began_are_a_note(tmp_path: Path) -> None:
    fabric = Fabric(readings=12)
    fabric.counts("symbol_error", lambda _: 50)
    assert {one.severity for one in fabric.diagnose(tmp_path).incidents} == {"info"}


def test_the_ethernet_side_is_told_by_what_its_counters_mean(tmp_path: Path) -> None:
    fabric = Fabric()
    fabric.counts("rx_pcs_symbol_err_phy", in_bad(900), "ens1f0", "ethtool")
    fabric.counts("rx_packets_phy", lambda _: 10_000, "ens1f0", "ethtool")
    [incident] = fabric.diagnose(tmp_path).incidents
    assert "ens1f0" in incident.causes[0].summary
    assert "cable" in incident.causes[0].summary


def test_a_full_counter_is_said_beside_it(tmp_path: Path) -> None:
    fabric = Fabric()
    fabric.counts("port_rcv_errors", in_bad(300))
    why = "mlx5_3/1 symbol_error: full, they count no more"
    fabric.node.add("gaps", time=at(0), end=at(80), source=FULL, why=why)
    [incident] = fabric.diagnose(tmp_path).incidents
    assert any(why in link.fact for link in incident.causes[0].chain)


def test_a_hostile_port_makes_no_command_of_its_own(tmp_path: Path) -> None:
    fabric = Fabric()
    fabric.counts("symbol_error", in_bad(300), "-x; rm -rf $(HOME)\n/1")
    [incident] = fabric.diagnose(tmp_path).incidents
    assert not any("rm -rf" in step.line for step in incident.causes[0].fix.steps)


def test_who_is_too_slow_to_receive_belongs_to_the_core_that_was_lost(tmp_path: Path) -> None:
    fabric = Fabric(ports=2)
    fabric.counts("out_of_buffer", in_bad(40_000), "mlx5_0/1")
    for second in range(READINGS * 10):
        held = second // 10 in BAD
        for cpu in range(2):
            busy = {"system": 1000} if held and cpu == 1 else {"user": 300, "system": 5}
            fabric.node.core(START_US + (second + 1) * SECOND, cpu, **busy)
    [incident] = fabric.diagnose(tmp_path).incidents
    assert {one.kind for one in incident.symptoms} == {"core_saturated", "fabric_errors"}
    assert incident.causes[0].pattern != "fabric-errors"


def test_ports_that_fail_together_are_one_incident(tmp_path: Path) -> None:
    fabric = Fabric()
    for number in range(16):
        fabric.counts("local_ack_timeout_err", in_bad(50), f"mlx5_{number}/1")
    [incident] = fabric.diagnose(tmp_path).incidents
    assert "(and 15 more)" in incident.causes[0].summary


@pytest.mark.parametrize(("of_peer", "named"), [(900, True), (300, False)])
def test_the_peer_that_has_most_of_what_tcp_sent_again_is_named(tmp_path: Path, of_peer: int, named: bool) -> None:
    scene = resends(Scene())
    scene.event("tcp_retransmits", "x", severity="info", resent=1000, peer="10.0.0.7", peer_resent=of_peer, peers=3)
    found = scene.diagnose(tmp_path)
    texts = [one.text for incident in found.incidents for one in incident.symptoms if one.kind == "packet_loss"]
    assert texts
    assert any("most of them to 10.0.0.7 (900 of 1,000" in text for text in texts) == named


def test_raw_bit_errors_before_fec_are_no_bad_cable(tmp_path: Path) -> None:
    """Every link of 200 or 400 Gb/s (PAM4) has them at all times; FEC puts them right."""
    fabric = Fabric(ports=1)
    for lane in range(4):
        fabric.counts(f"rx_err_lane_{lane}_phy", in_bad(90_000, 3_000), "eth0", "ethtool")
    assert fabric.diagnose(tmp_path).incidents == ()


def test_symbol_errors_after_fec_are_one(tmp_path: Path) -> None:
    fabric = Fabric(ports=1)
    fabric.counts("rx_symbol_err_phy", in_bad(90), "eth0", "ethtool")
    (incident,) = fabric.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "fabric-errors"
