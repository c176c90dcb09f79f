"""Every system call is audited: rules are matched and records written for calls that interest nobody."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, cpu_below, measured, signature
from zombiescope.diagnosis.thresholds import AUDIT_LITTLE_CORES
from zombiescope.model.plans.step import advice, change, command

_AUDIT = (
    "__audit_syscall_exit __audit_syscall_entry audit_filter_syscall audit_filter_rules audit_filter_inodes "
    "audit_log_start"
    " audit_log_exit audit_log_end audit_log_format kauditd_thread kauditd_send_queue audit_receive audit_log_vformat"
    " audit_filter"
)


def examine(case: Case) -> Evidence:
    backlogs = [event for event in case.facts.events if event.kind == "audit_backlog"]
    cores = case.cores_in(*_AUDIT.split())
    found = [cpu_below(case, "auditing", _AUDIT, confirms_from=1e9)]
    if backlogs:
        text = f"the kernel reported {len(backlogs)} times that audit records pile up"
        found.append(measured(text, len(backlogs), "lines", "events", True, at_us=backlogs[0].at_us))
    elif cores is not None and cores < AUDIT_LITTLE_CORES:
        found.append(measured(f"auditing took {cores:.3f} of a CPU", round(cores, 4), "cores", "samples", False))
    else:
        found.append(measured("whether audit records piled up is not known", None, "lines", "events", None))
    return Evidence(
        tuple(found),
        case.answerable_hog,
        f"{case.hog.name} is slowed down because each of its system calls is audited",
        Fix(
            "audit fewer system calls",
            (
                command("auditctl -s; auditctl -l", "backlog, lost, and the rules"),
                change(
                    "auditctl -e 0",
                    "switch auditing off for a test, and only where 'enabled' above is 1",
                    touches="nothing of this node is audited any more, which its owner may have to answer for",
                    undo="auditctl -e 1",
                    risk="events that exceed the limit are missing from the audit trail",
                    verify="auditctl -s",
                    part="stop-gap",
                ),
                advice("put an exclude rule for the busy program first: -a never,exit -F exe=/path"),
            ),
        ),
    )


PATTERN = Pattern(
    id="audit-flood",
    title="Every system call is audited",
    proof="literature",
    looks_like="Tasks with many system calls spend their kernel time in audit functions, and kauditd cannot send the "
    "records as fast as they come.",
    confirmed_by="The kernel's own line that the audit backlog is exceeded or that records were lost.",
    refuted_by="Audit functions used less than 0.05 of a CPU, and the kernel logged no such line.",
    remedy="Narrow the audit rules; exclude the busy program; give audit a rate limit.",
    stop_gap="give audit a rate limit, which drops the records above it: auditctl -r 1000; auditctl -r 0 takes it back",
    examine=examine,
    numbers_tell=True,
    signatures=(signature(_AUDIT, means="a system call is matched with audit rules and recorded"),),
    least_share=0.15,
    culprit="The program whose system calls are audited.",
    known_from="audit-userspace 273",
)
