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
    title="The input of a GPU became too slow",
    proof="literature",
    looks_like="The GPU is used less than before, and the workers that prepare its input run all the time. No core is "
    "short of anything and nobody else is busy.",
    confirmed_by="Workers that were there before ran 90% of the time or more while the GPU did a fifth less than in "
    "its own minutes before.",
    refuted_by="Nothing: it is measured where it happens. A job that was always like this is a note, not an incident.",
    remedy="More workers, or less work for each.",
    no_stop_gap="workers are started with the job, and nothing about them can be changed while it runs",
    examine=examine,
    symptoms=frozenset({"input_slower"}),
    hog="Nobody: the job's own workers are the limit.",
    culprit="Nobody.",
    known_from="PyTorch's DataLoader",
)
