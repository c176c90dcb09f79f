"""What a command line of a plan does to a node: whether it only looks, or changes something."""

from __future__ import annotations

import re

from tests.helpers import printed

_VERBS = {
    "systemctl": "stop start restart try-restart reload disable enable mask unmask kill isolate set-property edit "
    "revert daemon-reload daemon-reexec reset-failed preset link",
    "loginctl": "terminate-session terminate-user terminate-seat kill-session kill-user",
    "docker": "rm rmi update stop start restart kill run exec pause unpause prune create rename",
    "podman": "rm rmi update stop start restart kill run exec pause unpause prune create rename",
    "crictl": "rm rmi rmp stop stopp start exec update run runp create",
    "kubectl": "delete apply create edit patch replace scale drain cordon uncordon taint label annotate rollout exec "
    "run",
    "ip": "set add del delete flush",
    "nft": "add delete flush insert replace",
    "bpftool": "detach load attach pin delete update",
    "zombiescope": "fix",
}
_OPTIONS = {
    "ethtool": r"-[LKGCAXUNEsPr]|--set-\S+|--reset|--config-\S+",
    "auditctl": r"-[DdaAeWwbfR]",
    "nvidia-smi": r"-pm|-pl|-r|-c|-e|-mig|-lgc|-rgc|-ac|-rac|--gpu-reset|--persistence-mode.*|--power-limit.*",
    "conntrack": r"-[DFUI]",
    "sysctl": r"-w|-p|--system|--write|\S+=.*",
    "iptables": r"-[ADIFXPR]",
    "mount": r".*",
}
_ALWAYS = frozenset(
    {
        "kill", "pkill", "killall", "renice", "rm", "rmdir", "mv", "dd", "mkdir", "umount", "modprobe", "rmmod",
        "insmod", "swapoff", "swapon", "reboot", "shutdown", "truncate", "ln", "install", "chmod", "chown", "tee",
        "dcgm-exporter",
    }
)  # fmt: skip


def changes(line: str) -> bool:
    """Whether it changes anything on the node."""
    if re.search(r">>?\s*['\"]?/(?:sys|proc|etc|dev/shm|run)\b", line):
        return True
    return any(_changes(command) for command in printed.simple(line))


def _changes(command: list[str]) -> bool:
    while command and (command[0] in ("sudo", "nice", "ionice", "xargs", "env") or "=" in command[0]):
        command = command[1:]
        while command and command[0].startswith("-"):
            command = command[1:]
    if not command:
        return False
    program, words = command[0].rpartition("/")[2], command[1:]
    if program in _ALWAYS:
        return True
    if program in ("chrt", "taskset"):
        plain = [word for word in words if not word.startswith("-")]
        return len(plain) > 1 or "-p" not in "".join(word for word in words if word.startswith("-"))
    if program in _VERBS:
        return bool(set(_VERBS[program].split()) & set(words))
    return program in _OPTIONS and any(re.fullmatch(_OPTIONS[program], word) for word in words)
