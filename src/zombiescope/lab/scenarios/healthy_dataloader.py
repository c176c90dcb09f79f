"""Training fed by worker processes: jobs start, run, write a checkpoint and end, one after the other; nothing wrong.

With PyTorch's own DataLoader where PyTorch is installed. Elsewhere it is an imitation, and its processes have other
names than PyTorch's: workers make batches of 64 images of 224 x 224 and put each into a file of its own in /dev/shm,
the trainer maps it, copies it into locked memory and unlinks it, as the DataLoader does with pinned memory. What the
kernel sees is the same: pages of shmem by the hundred thousand, a large process at the start and at the end of a job.
"""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, Needs, Scenario, Truth

SCRIPT = r"""
disk, shm = args
job_s, pause_s, step_s = 14.0, 2.0, 0.02
workers = max(2, min(8, os.cpu_count() // 2))
try:
    import torch
except ImportError:
    torch = None
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np
SHAPE, BYTES = (64, 3, 224, 224), 64 * 3 * 224 * 224 * 4

def save(chunks):
    with open(f"{disk}/checkpoint.new", "wb", buffering=0) as file:
        for chunk in chunks:
            file.write(chunk)
        os.fsync(file.fileno())
    os.rename(f"{disk}/checkpoint.new", f"{disk}/checkpoint")

# --- the imitation

def worker(number, asked, made):
    name_is("data-worker")
    dies_with_its_parent()
    dice = np.random.default_rng(number)
    while os.read(asked, 1):
        path = f"{shm}/{os.getpid()}-{time.monotonic_ns()}"
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        os.ftruncate(fd, BYTES)
        room = mmap.mmap(fd, BYTES)
        batch = np.frombuffer(room, np.float32).reshape(SHAPE)
        for image in batch:
            image[:] = dice.integers(0, 256, image.shape, np.uint8)
        del batch, image
        room.close()
        os.close(fd)
        os.write(made, path.encode().ljust(255) + b"\n")

def start_workers():
    made_r, made_w = os.pipe()
    asked = []
    for number in range(workers):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(write)
            worker(number, read, made_w)
            os._exit(0)
        os.close(read)
        os.write(write, b"xx")  # two batches ahead, as prefetch_factor
        asked.append(write)
    return asked, os.fdopen(made_r, "rb")

def imitated_job(until):
    name_is("trainer")
    dies_with_its_parent()
    model = np.ones(1536 << 18, np.float32)  # 1.5 GB that are touched at the start, and given back at the end
    pinned = mmap.mmap(-1, BYTES)
    libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(pinned))), ctypes.c_size_t(BYTES))
    weights = np.random.default_rng(0).standard_normal((1024, 1024), dtype=np.float32)
    asked, made = start_workers()
    middle, step = (time.monotonic() + until) / 2, 0
    while time.monotonic() < until:
        path = made.read(256).decode().strip()
        fd = os.open(path, os.O_RDONLY)
        with mmap.mmap(fd, BYTES, prot=mmap.PROT_READ) as batch:
            os.unlink(path)
            os.close(fd)
            pinned[:] = batch
        os.write(asked[step % workers], b"x")
        weights = np.tanh(np.frombuffer(pinned, np.float32, 1 << 20).reshape(1024, 1024) @ weights)
        time.sleep(step_s)  # the accelerator's turn
        step += 1
        if middle and time.monotonic() > middle:
            save(memoryview(model).cast("B")[at:at + (1 << 20)] for at in range(0, 128 << 20, 1 << 20))
            middle = None

# --- PyTorch

def torch_job(until):
    name_is("trainer")
    dies_with_its_parent()
    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20
        def __getitem__(self, number):
            return torch.rand(3, 224, 224), number % 10
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [torch.nn.Conv2d(3, 32, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(8), torch.nn.Flatten(),
              torch.nn.Linear(2048, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)]
    net = torch.nn.Sequential(*layers).to(device)
    optimiser = torch.optim.SGD(net.parameters(), 0.01)
    loader = torch.utils.data.DataLoader(Images(), 64, num_workers=workers, pin_memory=device == "cuda")
    middle = (time.monotonic() + until) / 2
    for images, labels in loader:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images.to(device, non_blocking=True)), labels.to(device))
        loss.backward()
        optimiser.step()
        if middle and time.monotonic() > middle:
            torch.save(net.state_dict(), f"{disk}/checkpoint.new")
            os.rename(f"{disk}/checkpoint.new", f"{disk}/checkpoint")
            middle = None
        if time.monotonic() > until:
            return

wait_for_the_word()
while True:
    job = os.fork()
    if job == 0:
        (torch_job if torch else imitated_job)(time.monotonic() + job_s)
        os._exit(0)
    os.waitpid(job, 0)
    for name in os.listdir(shm):
        os.unlink(f"{shm}/{name}")
    time.sleep(pause_s)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory()), str(sandbox.in_memory())]


SCENARIO = Scenario(
    id="healthy-dataloader",
    title="Training fed by DataLoader workers",
    does="runs training jobs of 14 s, each with worker processes that hand over batches through /dev/shm, and a "
    "checkpoint: PyTorch's own DataLoader where it is installed, otherwise an imitation of it",
    truth=Truth(None),
    script=SCRIPT,
    comm="launcher",
    seconds=60.0,
    needs=Needs(3 * GB, processes=1024),
    prepare=prepare,
    kind="healthy",
)
