// The fix as something to paste: commands as they are, everything else as a comment, so that the whole block may be
// read, copied and run line by line. Nothing on this page runs anything.

import type { Fix, Incident } from "../../api/types";
import { moment, zoneName } from "../../format";

export interface Step {
  text: string;
  command: boolean;
}

/** Which steps are commands says the document; where it does not, none is: a comment does no harm in a shell. */
export function steps(fix: Fix): Step[] {
  return fix.steps.map((text, number) => ({ text, command: fix.commands?.[number] ?? false }));
}

export function planText(incident: Incident, zoneOffsetS: number): string {
  const cause = incident.causes[0];
  if (!cause) return "";
  const head = [
    `# ${incident.node ?? "node"}, incident ${incident.id}, ${moment(incident.from, zoneOffsetS)} ${zoneName(zoneOffsetS)}`,
    `# ${cause.summary}`,
    `# plan: ${cause.fix.summary}`,
  ];
  return `${[...head, ...steps(cause.fix).map((step) => (step.command ? step.text : `# ${step.text}`))].join("\n")}\n`;
}
