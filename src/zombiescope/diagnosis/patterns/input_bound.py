"""The input of a training became slower than its GPU: nobody starves it, its own workers are the limit."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, measured
from zombiescope.model.plans.step import advice, command


def examine(case: Case) -> Evidence:
    found = case.of_kind("input_slower")
    if not found:
        return Evidence(())
    worst = max(found, key=lambda one: one.seconds)
    many, ratio = worst.facts["workers"], float(worst.facts["ratio"])
    said = measured(f"{many} workers ran {ratio * 100:.0f}% of the time", round(ratio, 4), "ratio", "samples", True)
    summary = f"the input of GPU {worst.facts['gpu_number']} became too slow: its {many} workers are busy all the time"
    fix = Fix(
        "prepare the input with more workers or with less work, and look at what changed in the data",
        (
            command("zombiescope flamegraph --comm pt_data_worker", "what the workers do"),
            advice("PyTorch: num_workers, prefetch_factor, persistent_workers; decode and resize before training"),
        ),
    )
    return Evidence((said,), None, summary, fix)


PATTERN = Pattern(
    id="input-bound",
    title="A GPU's input pipeline became too slow",
    proof="literature",
    looks_like="The GPU is used less than before, and the workers that prepare its input are always busy. No resource "
    "is exhausted, and nothing else is busy.",
    confirmed_by="The same workers as before ran 90% of the time or more, while the GPU did a fifth less than in the "
    "minutes before.",
    refuted_by="Nothing: both are measured directly. A job that was always like this is a note, not an incident.",
    remedy="Start more workers, or give each less work.",
    no_stop_gap="the number of workers is fixed when the job starts",
    examine=examine,
    symptoms=frozenset({"input_slower"}),
    hog="No process: the job's own workers are the limit.",
    culprit="No process.",
    known_from="PyTorch's DataLoader",
)
