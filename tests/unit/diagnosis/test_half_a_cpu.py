"""Half a CPU in the kernel: what every busy program has, unless a number explains it or it is new."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.made import SECOND
from tests.helpers.scenes import SYSCALL, Scene

CALL = " ".join(SYSCALL)


def test_half_a_cpu_in_the_kernel_is_told_when_a_number_explains_it(tmp_path: Path) -> None:
    # GIVEN a shell that starts a thousand processes a second; they and it are in the kernel for 0.6 of a CPU
    scene = Scene().counter("stat", "processes", 1_000)
    for number in range(60):
        at_s = 5 + number * 0.1
        scene.hog(f"{CALL} __x64_sys_execve bprm_execve load_elf_binary", "true", pid=5000 + number, ppid=700,
                  share=0.6, from_s=at_s, to_s=at_s + 0.1)  # fmt: skip
    scene.hog("", "bash", pid=700, cpu=0, share=0.1)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert (incident.severity, incident.causes[0].pattern) == ("info", "fork-storm")
    assert incident.causes[0].culprit is not None
    assert incident.causes[0].culprit.comm == "bash"


def test_half_a_cpu_is_not_hidden_by_a_second_of_somebody_else(tmp_path: Path) -> None:
    scene = Scene().vmstat()
    scene.hog(f"{CALL} nfnetlink_rcv_batch nf_tables_newrule nft_expr_init", "felix", share=0.6, from_s=5, to_s=15)
    scene.hog(f"{CALL} vfs_read copy_page_to_iter", "cat", cpu=2, pid=3000, from_s=8, to_s=9.5)
    found = scene.diagnose(tmp_path).incidents
    assert {(one.causes[0].pattern, one.causes[0].hog.comm) for one in found} == {
        ("iptables-storm", "felix"), ("unknown-kernel-hog", "cat"),
    }  # fmt: skip


def test_half_a_cpu_is_not_hidden_by_a_second_in_which_everybody_had_something_to_do(tmp_path: Path) -> None:
    # GIVEN one who loads rules for ten seconds, and a second in which others add what is missing to a whole core
    scene = Scene(cpus=16).vmstat()
    scene.hog(f"{CALL} nfnetlink_rcv_batch nf_tables_newrule nft_expr_init", "felix", share=0.75, from_s=5, to_s=15)
    for number in range(4):
        scene.hog(f"{CALL} vfs_read copy_page_to_iter", f"reader-{number}", cpu=3 + number, pid=3000 + number,
                  share=0.12, from_s=8, to_s=9.5)  # fmt: skip
    found = scene.diagnose(tmp_path).incidents
    told = [one for one in found if one.causes[0].pattern == "iptables-storm" and one.causes[0].hog.comm == "felix"]
    assert sum(one.to_us - one.from_us for one in told) >= 9 * SECOND, [
        (one.causes[0].summary, [symptom.text for symptom in one.symptoms]) for one in found
    ]


def test_half_a_cpu_in_the_kernel_is_what_a_web_server_has(tmp_path: Path) -> None:
    scene = Scene().vmstat().counter("stat", "processes", 1)
    scene.hog(f"{CALL} tcp_sendmsg tcp_write_xmit ip_output", "nginx", share=0.7, from_s=0, to_s=20)
    assert scene.diagnose(tmp_path).incidents == ()
