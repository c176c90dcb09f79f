"""The supervisor's process: `python -m zombiescope.agent '<json>'`, which `zombiescope agent` becomes."""

from __future__ import annotations

import json
import os
import sys

from zombiescope.agent.notify import Notifier
from zombiescope.agent.supervisor import Supervisor, say


def main() -> int:
    if len(sys.argv) != 2:
        say("is started by `zombiescope agent`")
        return 2
    return Supervisor(json.loads(sys.argv[1]), Notifier.from_environment()).run()


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)
