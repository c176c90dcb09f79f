"""A GPU that fell idle because its training stopped, and those that only look like it; workers that were stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.training import TRAINER, WORKER, Training

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Incident

FROM_S, TO_S = 40, 52
WORKERS = 8
LOADER = ("__next__", "python3.12/site-packages/torch/utils/data/dataloader.py", 708)
QUEUE = ("get", "python3.12/queue.py", 171)
TRAIN = ("<module>", "jobs/train.py", 13)
STEP = (TRAIN, ("backward", "python3.12/site-packages/torch/_tensor.py", 525))
FEED = (TRAIN, LOADER, QUEUE)
Frames = tuple[tuple[str, str, int], ...]


def only(found: Diagnosis) -> Incident:
    (incident,) = found.incidents
    return incident


class Job(Training):
    """A trainer with eight workers on cores of their own, whose Python is read ten times a second."""

    def fed(self, workers: int = WORKERS) -> Job:
        self.name = "python3"
        for number in range(workers):
            self.runs(WORKER + number, "pt_data_worker", 7 + number % 8, 0.4, ppid=TRAINER)
        return self.python(0, FROM_S, (STEP, 8), (FEED, 2))

    def python(self, from_s: int, to_s: int, *what: tuple[Frames, int], state: str = "S") -> Job:
        for second in range(from_s, to_s):
            at_us = START_US + second * SECOND
            for frames, looks in what:
                numbers = [self.node.frame(name, "python", file) for name, file, _ in frames]
                lines = [line for _, _, line in frames]
                self.node.python(at_us, task_tid=TRAINER, frames=numbers, lines=lines, until_us=at_us + 99_000 * looks,
                                 looks=looks, comm="python3", state=state)  # fmt: skip
                at_us += looks * 100_000
        return self

    def idle(self, to_s: int = TO_S, percent: int = 0) -> Job:
        self.use(0, percent, FROM_S, to_s)
        return self

    def silent(self, to_s: int = TO_S, workers: int = WORKERS) -> Job:
        """Nobody of the job uses the CPU."""
        self.runs(TRAINER, self.name, self.core(0), 0.0, FROM_S, to_s)
        for number in range(max(workers, 1)):
            self.runs(WORKER + number, "pt_data_worker", (7 if workers else 6) + number % 8, 0.0, FROM_S, to_s)
        if not workers or self.core(0) + 1 < 7:
            self.runs(WORKER, "pt_data_worker", 6, 0.0, FROM_S, to_s)
        return self

    def quiet(self, kind: str, state: str = "T", workers: int = WORKERS, to_s: int = TO_S, **more: Any) -> Job:
        """As the recorder writes it: the first row two seconds later."""
        for second in range(FROM_S + 2, to_s):
            for number in range(workers):
                self.node.add("waiting", time=START_US + second * SECOND, since=START_US + FROM_S * SECOND,
                              pid=WORKER + number, tid=WORKER + number, comm="pt_data_worker", state=state, kind=kind,
                              resource=f"python3:{TRAINER}", alike=workers, kernel_thread=0, **more)  # fmt: skip
        return self


def stopped(**made: Any) -> Job:
    return Job(**made).fed().idle().silent().python(FROM_S, TO_S, (FEED, 10)).quiet("stopped")


@pytest.mark.parametrize(("cpus", "usual"), [(16, 90), (16, 9), (192, 90)])
def test_stopped_workers_of_a_gpu_are_named(cpus: int, usual: int, tmp_path: Path) -> None:
    incident = only(stopped(cpus=cpus, usual=usual).diagnose(tmp_path))
    cause = incident.causes[0]
    assert (cause.pattern, incident.severity) == ("workers-stopped", "warning")
    assert cause.summary == (
        f"GPU 0 idle for 12 s (before: {usual}%): train.py (pid {TRAINER}) waits in __next__, train.py:13; "
        "its 8 workers are stopped by a signal (SIGSTOP)"
    )
    assert cause.culprit is not None
    assert (cause.hog.comm, cause.culprit.comm) == (None, "pt_data_worker")
    resumed = next(step.command for step in cause.fix.steps if step.command and step.command.startswith("kill"))
    assert resumed == "kill -CONT " + " ".join(str(WORKER + number) for number in range(WORKERS))
    assert any("who sent the signal is not recorded" in str(step) for step in cause.fix.steps)


def test_stopped_workers_need_no_python(tmp_path: Path) -> None:
    node = Job().fed().idle().silent().quiet("stopped")
    node.node.tables["python"] = []
    assert only(node.diagnose(tmp_path)).causes[0].pattern == "workers-stopped"


def deadlock(**made: Any) -> Job:
    return Job(**made).fed().idle().silent().python(FROM_S, TO_S, (FEED, 10))


@pytest.mark.parametrize("wchan", ["futex_wait_queue", "sk_wait_data", "request_wait_answer"])
def test_workers_that_sleep_for_ever_are_named_with_what_is_not_known(wchan: str, tmp_path: Path) -> None:
    incident = only(deadlock().quiet("asleep", "S", wchan=wchan).diagnose(tmp_path))
    cause = incident.causes[0]
    assert (cause.pattern, incident.severity, cause.culprit) == ("gpu-idle", "warning", None)
    assert cause.summary == (
        f"GPU 0 idle for 12 s (before: 90%): train.py (pid {TRAINER}) waits in __next__, train.py:13; "
        f"its 8 workers sleep in {wchan}; what they wait for is not known"
    )


def test_workers_whose_sleep_nobody_looked_at_use_no_cpu(tmp_path: Path) -> None:
    summary = only(deadlock().diagnose(tmp_path)).causes[0].summary
    assert summary.endswith("its 8 workers use no CPU; what they wait for is not known")


def test_where_python_was_not_read_it_is_a_note(tmp_path: Path) -> None:
    node = deadlock()
    node.node.tables["python"] = []
    found = node.diagnose(tmp_path)
    assert found.incidents == ()
    assert any(note.startswith("GPU 0 idle for 12 s (before: 90%): train.py") for note in found.noted)


def itself(kind: str) -> Job:
    """The trainer in state T, whose Python still stands where it stood."""
    node = Job().fed().idle().silent().python(FROM_S, TO_S, (STEP, 10), state="T").quiet(kind)
    for second in range(FROM_S + 2, TO_S):
        node.node.add("waiting", time=START_US + second * SECOND, since=START_US + FROM_S * SECOND, pid=TRAINER,
                      tid=TRAINER, comm="python3", state="T", kind=kind, resource="bash:700", alike=1)  # fmt: skip
    return node


def test_a_trainer_that_was_stopped_itself(tmp_path: Path) -> None:
    incident = only(itself("stopped").diagnose(tmp_path))
    assert incident.causes[0].pattern == "workers-stopped"
    assert "is itself stopped by a signal" in incident.causes[0].summary


def test_one_that_somebody_suspends_in_a_terminal_is_a_note(tmp_path: Path) -> None:
    found = itself("suspended").diagnose(tmp_path)
    assert found.incidents == ()
    assert any("it is suspended in a terminal" in note for note in found.noted)


# --- what is healthy --------------------------------------------------------------------------------------------------


SAVE = (TRAIN, ("save", "python3.12/site-packages/torch/serialization.py", 900))
EVALUATE = (TRAIN, ("evaluate", "jobs/train.py", 40), LOADER, QUEUE)


def checkpoint() -> Job:
    """The main thread serialises and writes; its workers have filled their queues."""
    node = Job().fed().idle().silent().python(FROM_S, TO_S, (SAVE, 10), state="R")
    node.runs(TRAINER, "python3", node.core(0), 0.9, FROM_S, TO_S)
    return node


def upload() -> Job:
    """A checkpoint that is sent to a store: hardly any CPU."""
    return Job().fed().idle().silent().python(FROM_S, TO_S, (SAVE, 10)).quiet("asleep", "S", wchan="futex_wait")


def evaluation() -> Job:
    """With workers of its own, and little for the GPU to do."""
    node = Job().fed().idle().python(FROM_S, TO_S, (EVALUATE, 10))
    for number in range(4):
        node.runs(WORKER + 100 + number, "pt_data_worker", 9 + number, 0.5, FROM_S, TO_S, ppid=TRAINER)
    return node


def end_of_job() -> Job:
    """Its process is noticed to have left eight seconds later."""
    node = Job().fed().idle(60).silent(60).python(FROM_S, FROM_S + 4, (FEED, 10))
    node.leaves(0, FROM_S + 8)
    return node


def start() -> Job:
    """Nothing was used before."""
    node = Job().fed().silent()
    node.use(0, 0, 0, 55)
    return node.python(FROM_S, TO_S, (FEED, 10))


def periodic() -> Job:
    """Eight seconds of work, four of pause."""
    node = deadlock()
    for second in range(0, 40, 12):
        node.use(0, 0, second + 8, second + 12)
    return node


def between_jobs() -> Job:
    node = deadlock()
    node.node.tables["gpu_processes"] = []
    node.node.gpu_process(START_US, 0, TRAINER, "python3", start_ticks=1)
    node.leaves(0, FROM_S)
    return node


def short_pause() -> Job:
    return (
        Job().fed().idle(FROM_S + 4).silent(FROM_S + 4).python(FROM_S, FROM_S + 4, (FEED, 10)).quiet("stopped", to_s=44)
    )


def slow_batch() -> Job:
    """Eight seconds without workers that were stopped."""
    return Job().fed().idle(FROM_S + 8).silent(FROM_S + 8).python(FROM_S, FROM_S + 8, (FEED, 10))


@pytest.mark.parametrize(
    "node",
    [checkpoint, upload, evaluation, end_of_job, start, periodic, between_jobs, short_pause, slow_batch],
    ids=lambda make: str(make.__name__),
)
def test_a_gpu_that_is_idle_for_a_good_reason_is_no_incident(node: Any, tmp_path: Path) -> None:
    found = node().diagnose(tmp_path)
    assert found.incidents == ()
    assert not any("idle" in note for note in found.noted)


def test_a_server_without_requests_is_no_incident(tmp_path: Path) -> None:
    """The same queue in the same function as before; nobody but itself feeds it."""
    serve: Frames = (("serve", "jobs/serve.py", 7), QUEUE)
    node = Job().idle()
    node.python(0, FROM_S, (serve, 5), ((*serve[:1], STEP[1]), 5)).python(FROM_S, TO_S, (serve, 10))
    node.runs(WORKER, "pt_data_worker", 6, 0.0)
    node.runs(TRAINER, "python3", node.core(0), 0.0, FROM_S, TO_S)
    assert node.diagnose(tmp_path).incidents == ()


# --- without a GPU ----------------------------------------------------------------------------------------------------


def without_gpu(kind: str = "stopped", workers: int = WORKERS, parent: float = 0.0) -> Job:
    node = Job(measured=False).fed().silent().quiet(kind, workers=workers)
    node.runs(9_000, "compile", 3, 0.9)  # has nothing to do with it
    node.node.tables["gpus"], node.node.tables["gpu_processes"] = [], []
    node.runs(TRAINER, "python3", node.core(0), parent, FROM_S + 1, TO_S)
    return node


def test_stopped_workers_are_reported_without_a_gpu(tmp_path: Path) -> None:
    incident = only(without_gpu().diagnose(tmp_path))
    cause = incident.causes[0]
    assert (cause.pattern, incident.severity, cause.hog.comm) == ("workers-stopped", "warning", None)
    assert cause.summary == (
        f"8 workers (pt_data_worker) of python3 (pid {TRAINER}) were stopped by a signal for 11 s, "
        "and it waits for them"
    )


@pytest.mark.parametrize(
    "node",
    [
        lambda: without_gpu("suspended"),  # Ctrl-Z
        lambda: without_gpu(workers=1),
        lambda: without_gpu(parent=0.6),  # it has others, and goes on
        lambda: without_gpu("asleep"),
    ],
)
def test_a_stopped_process_that_nobody_waits_for_is_no_incident(node: Any, tmp_path: Path) -> None:
    assert node().diagnose(tmp_path).incidents == ()
