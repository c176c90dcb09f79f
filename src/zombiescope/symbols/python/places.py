"""What a Python function of a known library is there for: a collective, the next batch, a file or object store.

A stack is judged by its innermost function that says something: what only waits for others (threading, queues,
selectors) says nothing, and neither does a person's own code. Names are those of the libraries' sources; a library that
is not here is not known, which is not the same as "nothing".

    collective  waits for other ranks (torch.distributed, DDP, FSDP, DeepSpeed, Horovod, multihost_utils of JAX)
    data        the next batch (DataLoader, tf.data, datasets, webdataset, DALI, Grain, Ray Data)
    storage     a file or object store: checkpoints, fsspec, botocore
    device      waits for the accelerator (torch.cuda, jax.block_until_ready)
    backward    inside the engine of autograd: of DDP also where its all-reduce is waited for
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

Purpose = Literal["collective", "data", "storage", "device", "backward"]

_NO_WORD = (
    "threading.py", "queue.py", "queues.py", "selectors.py", "multiprocessing/connection.py", "socket.py", "ssl.py",
    "contextlib.py", "_contextlib.py", "c10d_logger.py", "asyncio/", "subprocess.py", "functools.py",
)  # fmt: skip
_FILES: tuple[tuple[str, Purpose], ...] = (
    ("torch/distributed/checkpoint/", "storage"),
    ("torch/serialization.py", "storage"),
    ("safetensors/", "storage"), ("fsspec/", "storage"), ("s3fs/", "storage"), ("gcsfs/", "storage"),
    ("botocore/", "storage"), ("boto3/", "storage"), ("s3torchconnector/", "storage"), ("smart_open/", "storage"),
    ("orbax/", "storage"), ("tensorstore/", "storage"), ("google/cloud/storage/", "storage"),
    ("torch/distributed/distributed_c10d.py", "collective"), ("torch/distributed/nn/", "collective"),
    ("torch/distributed/_functional_collectives", "collective"), ("torch/distributed/fsdp/", "collective"),
    ("torch/distributed/_composable/", "collective"), ("torch/distributed/algorithms/", "collective"),
    ("torch/distributed/rendezvous.py", "collective"), ("torch/nn/parallel/distributed.py", "collective"),
    ("deepspeed/comm/", "collective"), ("deepspeed/runtime/comm/", "collective"), ("horovod/", "collective"),
    ("jax/experimental/multihost_utils.py", "collective"),
    ("torch/utils/data/", "data"), ("torchdata/", "data"), ("tensorflow/python/data/", "data"),
    ("site-packages/datasets/", "data"), ("webdataset/", "data"), ("streaming/base/", "data"), ("ray/data/", "data"),
    ("nvidia/dali/", "data"), ("site-packages/grain/", "data"),
    ("torch/cuda/streams.py", "device"),
)  # fmt: skip
_FUNCTIONS: tuple[tuple[str, str, Purpose], ...] = (
    ("torch/cuda/", "synchronize", "device"),
    ("jax/_src/", "block_until_ready", "device"),
    ("torch/autograd/graph.py", "_engine_run_backward", "backward"),
)  # fmt: skip
_SAVES = ("save_checkpoint", "save_model", "save_pretrained", "save_state", "_save_checkpoint", "save_file")
_EVALUATES = ("evaluate", "evaluation", "validate", "validation", "eval", "run_validation", "eval_loop", "test_loop",
              "evaluation_loop", "prediction_loop")  # fmt: skip
_STARTS = (
    "<frozen importlib",
    "torch/_inductor/",
    "torch/_dynamo/",
    "torch/distributed/rendezvous.py",
    "triton/compiler/",
)
_STARTING = ("init_process_group", "from_pretrained", "load_checkpoint", "init_distributed")

Phase = Literal["start", "checkpoint", "evaluation"]


@lru_cache(maxsize=8192)
def purpose(name: str, file: str) -> Purpose | None:
    """Of one function; None where it says nothing."""
    last = name.rpartition(".")[2]
    for part, function, found in _FUNCTIONS:
        if part in file and last == function:
            return found
    return next((found for part, found in _FILES if part in file), None)


def purpose_of(functions: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Purpose | None:
    """Of a stack of (name, file), outermost first: its innermost function that says something. A collective and the
    device count only where nothing but waiting is inside of them, for DDP's forward has the whole model inside."""
    is_innermost = True
    for name, file in reversed(functions):
        found = purpose(name, file)
        if found is not None and (is_innermost or found in ("data", "storage")):
            return found
        is_innermost = is_innermost and says_nothing(file)
    return None


def says_nothing(file: str) -> bool:
    """Whether a function of this file only waits for another one, or calls it."""
    return any(part in file for part in _NO_WORD)


@lru_cache(maxsize=8192)
def phase(name: str, file: str) -> Phase | None:
    """What a job that runs this function is doing, where that is no training step."""
    last = name.rpartition(".")[2]
    if (
        last in _SAVES
        or "torch/distributed/checkpoint/" in file
        or ("torch/serialization.py" in file and "save" in last)
    ):
        return "checkpoint"
    if last in _STARTING or file.startswith(_STARTS) or any(part in file for part in _STARTS):
        return "start"
    return "evaluation" if last in _EVALUATES else None


_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python3")


def known_path(path: str) -> str:
    """A path as people know it: from site-packages or the standard library on, else the file and its directory."""
    for place in _INSTALLED:
        before, found, after = path.rpartition(place)
        if found and before and "/" in found + after:
            return (found + after).removeprefix("/lib/").removeprefix("/")
    return "/".join(path.rsplit("/", 2)[-2:]) if path.startswith("/") else path
