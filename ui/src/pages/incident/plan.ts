// The fix as something to paste: commands as they are, everything else as a comment, so that the whole block may be
// read, copied and run line by line. Nothing on this page runs anything.

import type { Incident } from "../documents";
import { moment, zoneName } from "../words";

export interface Step {
  text: string;
  command: boolean;
}

const COMMANDS = new Set([
  "apt-get", "auditctl", "bpftool", "cat", "chrt", "conntrack", "crictl", "crun", "dmesg", "dnf", "docker", "echo", "ethtool", "findmnt", "grep", "ip",
  "iptables", "iptables-save", "ipvsadm", "journalctl", "kill", "kubectl", "loginctl", "ls", "lsns", "mkdir", "mount", "nft", "nvidia-smi", "perf", "pidstat",
  "printf", "ps", "renice", "sh", "ss", "sudo", "sysctl", "systemctl", "systemd-cgls", "systemd-cgtop", "systemd-run", "taskset", "tc", "umount", "yum", "zombiescope",
]);
/** Words that begin a sentence as well as a command: "find who looks up ..." is advice. */
const TWOFOLD = /^(find [/.]|for \w+ in |while |test -)/;

/** A command, or advice in words? Decided by how it begins; "release them: ..." is words. */
export function steps(lines: readonly string[]): Step[] {
  return lines.map((text) => {
    const first = text.trim().split(/[\s;|]/, 1)[0] ?? "";
    return { text, command: text.startsWith("#") || COMMANDS.has(first) || TWOFOLD.test(text.trim()) };
  });
}

export function planText(incident: Incident, zoneOffsetS: number): string {
  const cause = incident.causes[0];
  if (!cause) return "";
  const head = [
    `# ${incident.node ?? "node"}, incident ${incident.id}, ${moment(incident.from, zoneOffsetS)} ${zoneName(zoneOffsetS)}`,
    `# ${cause.summary}`,
    `# plan: ${cause.fix.summary}`,
  ];
  return [...head, ...steps(cause.fix.steps).map((step) => (step.command ? step.text : `# ${step.text}`))].join("\n") + "\n";
}
