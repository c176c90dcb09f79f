"""Who is to blame for what a GPU's driver reports, and what to do: by all of its lines, not by one code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import gpu_faults
from zombiescope.diagnosis.gpu_faults import GpuStory
from zombiescope.diagnosis.incident import Incident
from zombiescope.kernel import xid
from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.log_flood import FloodGuard
from zombiescope.kernel.log_formats import classify, event_of
from zombiescope.store.event import Event

WISH = "154, GPU recovery action changed from 0x0 (None) to 0x{} (whatever this driver calls it)"
NVLINK = "149, NETIR_LINK_EVT {} XC0 i0 Link 08 (0x004505c6 0x00000000)"


def line(rest: str, at_s: float = 0.0, gpu: str = "0000:81:00") -> Event:
    text = rest if rest.startswith(("NVRM", "nvidia")) else f"NVRM: Xid (PCI:{gpu}): {rest}"
    event = event_of(KmsgRecord(3, 0, 1, 1, text))
    assert event is not None
    return Event(START_US + int(at_s * SECOND), event.kind, "kmsg", event.severity, event.text, dict(event.fields))


def told(*events: Event) -> list[GpuStory]:
    return list(gpu_faults.stories(events, lambda event: event.fields.get("comm")))


def only(*events: Event) -> GpuStory:
    (story,) = told(*events)
    return story


@pytest.mark.parametrize("code", sorted(xid.XIDS))
def test_the_log_and_the_catalogue_agree_on_how_bad_a_code_is(code: int) -> None:
    known = classify(f"NVRM: Xid (PCI:0000:81:00): {code}, pid=7, name=train, something")
    assert known is not None
    listed = xid.XIDS[code].severity
    assert (known.severity == "critical") == (listed == "critical")
    assert xid.XIDS[code].do


@pytest.mark.parametrize(
    ("number", "action"), [(1, "reset"), (2, "reboot"), (3, "drain-peers"), (4, "drain-reset"), (5, "imex")]
)
def test_what_the_driver_asks_for_comes_before_every_table(number: int, action: str) -> None:
    story = only(line("31, pid=7, name=train, MMU Fault"), line(WISH.format(number), 20))
    assert (story.leading.code, story.verdict.action, story.verdict.blame) == (31, action, "application")
    assert "Xid 154" in story.verdict.because


def test_a_wish_that_is_over_asks_for_nothing() -> None:
    over = line("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", 30)
    story = only(line("79, GPU has fallen off the bus."), line(WISH.format(2), 1), over)
    assert (story.verdict.action, story.verdict.severity, story.leading.code) == ("none", "warning", 79)


def test_a_wish_alone_is_a_fault_and_one_that_is_over_is_none() -> None:
    assert only(line(WISH.format(1))).verdict.action == "reset"
    assert told(line("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")) == []


@pytest.mark.parametrize(
    ("word", "severity", "action"), [("Fatal", "critical", "reset"), ("Nonfatal", "warning", "watch")]
)
def test_the_severity_in_the_text_comes_before_the_catalogue(word: str, severity: str, action: str) -> None:
    verdict = only(line(NVLINK.format(word))).verdict
    assert (verdict.severity, verdict.action, verdict.blame) == (severity, action, "link")


@pytest.mark.parametrize(
    ("rest", "action"),
    [
        ("94, pid=7, name=train, Contained: CE User Channel (0x9). RST: No, D-RST: No", "restart"),
        ("94, pid=7, name=train, Contained: CE User Channel (0x9). RST: No, D-RST: Yes", "drain-reset"),
        ("95, pid=7, name=train, Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No", "reset"),
    ],
)
def test_a_memory_error_says_itself_whether_a_reset_is_needed(rest: str, action: str) -> None:
    assert only(line(rest)).verdict.action == action


def test_channels_that_end_with_their_process_are_no_fault() -> None:
    """NVSentinel#1748: 11,760 of them on each healthy node."""
    jobs = [line(f"45, pid={pid}, name=train, Ch 0000000a", pid / 100) for pid in range(2_000)]
    assert told(*jobs, line("43, pid=7, name=train, Ch 00000010")) == []


def test_channels_never_lead_though_they_come_first_and_are_many() -> None:
    removed = [line("45, pid=7, name=train, Ch 0000000a", n / 1000) for n in range(100)]
    story = only(*removed, line("79, GPU has fallen off the bus.", 1))
    assert (story.leading.code, story.count) == (79, 101)


def test_a_channel_names_the_fault_whose_line_was_lost() -> None:
    story = only(line("45, pid=7, name=train, Ch 0000000a caused by previous Xid 149"))
    assert (story.verdict.code, story.verdict.blame, story.verdict.severity) == (149, "link", "critical")


def test_800_000_lines_of_one_code_are_one_fault_with_their_number() -> None:
    # GIVEN a GPU that repeats itself for eight seconds, through the recorder's own guard against floods
    guard, stored = FloodGuard(), []
    event = event_of(KmsgRecord(3, 0, 1, 1, "NVRM: Xid (PCI:0000:81:00): 95, pid=7, name=train, Uncontained: L2"))
    assert event is not None
    for second in range(8):
        for part in range(100_000):
            for one in guard.admit(event, second * 1_000_000_000 + part):
                stored.append(Event(START_US + second * SECOND, one.kind, "kmsg", one.severity, one.text, one.fields))
    stored += [
        Event(START_US + 8 * SECOND, one.kind, "kmsg", one.severity, one.text, one.fields)
        for one in guard.flush(10_000_000_000)
    ]
    # THEN a few hundred events are stored, and they are one fault of 800,000 lines
    assert len(stored) < 200
    story = only(*stored)
    (fault,) = story.faults
    assert (fault.code, fault.count, story.count) == (95, 800_000, 800_000)
    assert (fault.first.at_us, fault.last.at_us) == (START_US, START_US + 8 * SECOND)


def test_a_fault_of_applications_in_different_jobs_is_the_gpus() -> None:
    faults = [line(f"31, pid={n}, name=train-{n}, MMU Fault", n) for n in range(3)]
    verdict = only(*faults).verdict
    assert (verdict.blame, verdict.action, verdict.code) == ("gpu", "test", 31)
    # AND of one job it is that job's, however often
    same = only(*(line(f"31, pid={n}, name=train, MMU Fault", n) for n in range(3))).verdict
    assert (same.blame, same.action) == ("application", "restart")


def test_the_lines_of_a_lost_gpu_that_a_reader_took_apart_name_it() -> None:
    story = only(
        line("NVRM: The NVIDIA GPU 0000:b3:00.0"),
        line("NVRM: fallen off the bus and is not responding to commands.", 0.001),
    )
    assert (story.leading.code, story.leading.first.fields["gpu"]) == (79, "0000:b3:00.0")


def test_a_gpu_is_one_whatever_spelling_its_address_has() -> None:
    story = only(
        line("79, GPU has fallen off the bus."), line("NVRM: GPU 0000:81:00.0: GPU has fallen off the bus.", 1)
    )
    assert [one.code for one in story.faults] == [79]


def test_two_instances_of_a_gpu_are_one_gpu_and_two_gpus_are_two() -> None:
    cut = "0000:81:00 GPU-I:0{}"
    stories = told(
        *(line("31, pid=7, name=a, MMU Fault", n, cut.format(n)) for n in (1, 2)), line("79, x", 3, "0000:41:00")
    )
    assert len(stories) == 2


# --- in a report -----------------------------------------------------------------------------------------------------


def reported(tmp_path: Path, *events: Event) -> Incident:
    scene = Scene(cpus=2).vmstat()
    for event in events:
        scene.made.happen(event.at_us, event.kind, event.source, event.severity, event.text, **event.fields)
    (incident,) = scene.diagnose(tmp_path).incidents
    return incident


def test_the_report_says_who_is_to_blame_and_what_to_do_as_two_answers(tmp_path: Path) -> None:
    incident = reported(
        tmp_path, line("119, pid=7, name=nvidia-smi, Timeout after 6s of waiting", 5), line(WISH.format(2), 6)
    )
    cause = incident.causes[0]
    assert cause.pattern == "gpu-fault"
    assert cause.summary == "the GPU at 0000:81:00 has firmware that does not answer (GSP timeout) (Xid 119)"
    assert cause.fix.summary == xid.TO_DO["reboot"]
    said = {link.step: link.fact for link in cause.chain}
    assert said["blame"] == "to blame is the driver or the GPU's firmware"
    assert said["verdict"] == "what to do: the driver itself asks for it (Xid 154)"
    assert cause.culprit is None


def test_a_gpu_that_could_not_be_initialised_is_reported_with_its_address(tmp_path: Path) -> None:
    incident = reported(
        tmp_path,
        line("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0xffff:1863)", 5),
        line("NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0", 5.1),
    )
    assert incident.causes[0].summary == "the GPU at 0000:01:00.0 could not be initialised by its driver"
    assert incident.severity == "critical"


@pytest.mark.parametrize(("word", "severity"), [("Fatal", "critical"), ("Non-fatal", "warning")])
def test_a_switch_is_as_bad_as_it_says_and_its_further_lines_are_one_fault(
    word: str, severity: str, tmp_path: Path
) -> None:
    switch = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, "
    incident = reported(
        tmp_path,
        line(f"{switch}{word}, Link 32 egress non-posted PRIV error (First)", 5),
        line(f"{switch}Severity 0 Engine instance 32 Sub-engine instance 00", 5.01),
        line(switch + "Data {0x00140004, 0x00100000}", 5.02),
    )
    assert incident.severity == severity
    said = "a fatal error" if word == "Fatal" else "an error that was not fatal"
    assert incident.causes[0].summary == f"the NVSwitch 3 reported {said} on link 32 (SXid 12028)"
    assert [one.facts["count"] for one in incident.symptoms] == [1]


@pytest.mark.parametrize("cpus", [2, 16, 192])
def test_a_node_on_which_jobs_end_reports_nothing(cpus: int, tmp_path: Path) -> None:
    scene = Scene(cpus=cpus).vmstat()
    for number in range(50):
        event = line(f"45, pid={number}, name=train, Ch 0000000a", 2 + number / 10)
        scene.made.happen(event.at_us, event.kind, event.source, event.severity, event.text, **event.fields)
    assert scene.diagnose(tmp_path).incidents == ()
