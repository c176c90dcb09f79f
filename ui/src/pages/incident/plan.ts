// The fix as something to paste: commands as they are, everything else as a comment, so that the whole block may be
// read, copied and run line by line. Nothing on this page runs anything.

import type { Fix, FixStep, Incident } from "../../api/types";
import { moment, zoneName } from "../../format";

/** Older recorders noted lines, and which are commands; the oldest not even that: a comment does no harm in a shell. */
export function steps({ plan, steps: lines, commands }: Fix): FixStep[] {
  return plan ?? lines.map((text, number) => ({ kind: commands?.[number] ? "command" : "advice", text, comment: "" }));
}

function pasteable({ kind, text, comment }: FixStep): string {
  if (kind === "advice") return `# ${text}`;
  return comment ? `${text}   # ${comment}` : text;
}

export function planText(incident: Incident, zoneOffsetS: number): string {
  const cause = incident.causes[0];
  if (!cause) return "";
  const head = [
    `# ${incident.node ?? "node"}, incident ${incident.id}, ${moment(incident.from, zoneOffsetS)} ${zoneName(zoneOffsetS)}`,
    `# ${cause.summary}`,
    `# plan: ${cause.fix.summary}`,
  ];
  return `${[...head, ...steps(cause.fix).map(pasteable)].join("\n")}\n`;
}
