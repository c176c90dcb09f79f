"""A parallel compile: many short processes, many page faults, all cores busy, and nothing wrong."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, Needs, Scenario, Truth

SCRIPT = r"""
import subprocess
place = args[0]
text = "".join(f"int f{n}(int a) {{ int s = 0; for (int i = 0; i < a; i++) s += (i * {n}) ^ a; return s; }}\n"
               for n in range(400))
for number in range(os.cpu_count()):
    with open(f"{place}/{number}.c", "w") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + text)
wait_for_the_word()
while True:
    started = [subprocess.Popen(["gcc", "-O2", "-c", f"{place}/{number}.c", "-o", f"{place}/{number}.o"])
               for number in range(os.cpu_count())]
    for each in started:
        each.wait()
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory())]


SCENARIO = Scenario(
    id="healthy-compile",
    title="A parallel compile",
    does="compiles C files with gcc on all cores",
    truth=Truth(None),
    script=SCRIPT,
    comm="builder",
    seconds=60.0,
    needs=Needs(2 * GB, processes=1024, programs=(("gcc", "gcc"),)),
    prepare=prepare,
    kind="healthy",
)
