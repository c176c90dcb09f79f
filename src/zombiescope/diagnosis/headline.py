"""The first sentence of an incident: what was lost, then why. An engineer who is woken reads no further than that."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case


def headline(case: Case, because: str) -> str:
    """`because` after the cores that were lost; alone where none was, or where it says itself which core it is."""
    lost = [symptom for symptom in case.group.symptoms if symptom.detector.core_rank == 0]
    cores = sorted({symptom.cpu for symptom in lost if symptom.cpu is not None})
    if not cores or because.startswith("core "):
        return because
    seconds = max(symptom.seconds for symptom in lost)
    if len(cores) == 1:
        return f"core {cores[0]} starved for {seconds:.0f} s: {because}"
    return f"{len(cores)} cores starved for up to {seconds:.0f} s: {because}"
