// The fix as something to paste: commands as they are, everything else as a comment, so that the whole block may be
// read, copied and run line by line. Nothing on this page runs anything.

import type { Incident } from "../documents";
import { moment, zoneName } from "../words";

export interface Step {
  text: string;
  command: boolean;
}

const COMMANDS = new Set([
  "systemctl", "zombiescope", "sysctl", "ethtool", "mkdir", "printf", "echo", "kubectl", "journalctl", "umount", "mount", "chrt", "taskset",
  "conntrack", "iptables", "nft", "auditctl", "perf", "cat", "sh", "sudo", "docker", "crictl", "systemd-run", "apt-get", "dnf", "yum",
]);

/** A command, or advice in words? Decided by its first word; "release them: ..." is words. */
export function steps(lines: readonly string[]): Step[] {
  return lines.map((text) => ({ text, command: text.startsWith("#") || COMMANDS.has(text.trim().split(/[\s:]/, 1)[0] ?? "") }));
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
