"""The founding agent as it is: a supervisor that stays up asks Docker's API for ever new containers, and each leaves a
zombie. systemd counts no restart, no command line names a container, and a monitor is connected to Docker all the time.
"""

from __future__ import annotations

from zombiescope.lab.docker import PROGRAMS
from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, RUNTIMES, Needs, Scenario, Truth
from zombiescope.lab.zombies import WALKER

COUNT = 600
MADE_S = 150
LOOPS = 3
IMAGE = "registry.local/collector:3"
CLIENT = r"""
import http.client, json, os, socket, sys, time
class Api(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[2])
def ask(connection, method, path, body=None):
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    if answer.status >= 400 and answer.status not in (404, 409):
        raise SystemExit(f"{method} {path}: {answer.status} {data[:200]}")
    return json.loads(data or b"null")
open("/proc/self/comm", "w").write(sys.argv[1])
for file in filter(None, sys.argv[3].split(":")):
    open(file, "w").write("0")
"""
AGENT = (
    CLIENT
    + r"""
image, pins = sys.argv[4], sys.argv[5]
touch = "read -r name </proc/sys/kernel/random/uuid; echo state >/data/$name"
spec = {"Image": image, "Cmd": ["sh", "-c", touch], "HostConfig": {"NetworkMode": "host", "Binds": [pins + ":/data"]}}
for _ in range(int(sys.argv[6]) - 1):
    if os.fork() == 0:
        break
name = f"site-agent-{os.getpid()}"
while True:  # as ecs-init does: remove what is left, create, start, wait, again
    api = Api("localhost")
    ask(api, "DELETE", f"/containers/{name}?force=true")
    made = ask(api, "POST", f"/containers/create?name={name}", spec)["Id"]
    ask(api, "POST", f"/containers/{made}/start")
    ask(api, "POST", f"/containers/{made}/wait")
    api.close()
"""
)
MONITOR = (
    CLIENT
    + r"""
api = Api("localhost")
while True:
    ask(api, "GET", "/containers/json")
    time.sleep(1)
"""
)
SCRIPT = (
    WALKER
    + r"""
import subprocess
from pathlib import Path
from zombiescope.lab.docker import docker
from zombiescope.lab.isolation import enter_own_namespaces, tmpfs
place, parent, image, count, made_s, loops = Path(args[0]), args[1], args[2], int(args[3]), float(args[4]), args[5]
agent_in, monitor_in = args[6:8]
enter_own_namespaces(network=False)
tmpfs(place / "pins")
def client(name, *words):
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": (place / (name + ".log")).open("w")}
    return subprocess.Popen([sys.executable, place / name, name, place / "docker.sock", *words], **quiet)
with docker(place, cgroup_parent=parent) as daemon:
    daemon.load(image)
    monitor = client("site-monitor", monitor_in)
    time.sleep(2)
    agent = client("site-agent", agent_in, image, str(place / "pins"), loops)
    end = time.monotonic() + made_s
    while len(os.listdir(place / "pins")) < count and time.monotonic() < end:
        if agent.poll() is not None or monitor.poll() is not None:
            sys.exit((place / "site-agent.log").read_text()[-300:])
        time.sleep(0.2)
    walk_them()
    time.sleep(1000)
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    """The clients are in cgroups named like units, below the scenario's own."""
    place = sandbox.directory()
    for name, text in (("site-agent", AGENT), ("site-monitor", MONITOR)):
        (place / name).write_text(text)
    sandbox.cgroup("memory", "docker", children=True)
    units = [sandbox.cgroup("memory", f"{name}.service") / "cgroup.procs" for name in ("site-agent", "site-monitor")]
    return [str(place), f"/{sandbox.name}/docker", IMAGE, str(COUNT), str(MADE_S), str(LOOPS), *map(str, units)]


SCENARIO = Scenario(
    id="api-loop",
    title="Zombie cgroups of a supervisor that asks Docker's API for containers",
    does=f"starts a private Docker daemon and a client of its API that creates up to {COUNT:,} short containers, each "
    "kept by one page in a tmpfs, next to a monitor that is connected all the time; and repeatedly drops the "
    "machine's slab caches (vm.drop_caches=2), which walks them",
    truth=Truth("zombie-memcg", "walker", "site-agent", IMAGE, never=(*RUNTIMES, "site-monitor")),
    script=SCRIPT,
    comm="starter",
    frames="6.18: mem_cgroup_iter < drop_slab < drop_caches_sysctl_handler",
    seconds=30,
    ready_s=MADE_S + 60,
    needs=Needs(
        1 * GB, processes=1024, programs=PROGRAMS, controllers=("memory",), files=("/proc/sys/vm/drop_caches",)
    ),
    prepare=prepare,
    many=True,
)
