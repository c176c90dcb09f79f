// The fix as something to paste: commands as they are, everything else as a comment, so that the whole block may be
// read, copied and run line by line. Nothing on this page runs anything.

import type { Fix, FixStep, Incident } from "../../api/types";
import { moment, zoneName } from "../../format";

/** Older recorders noted lines, and which are commands; the oldest not even that: a comment does no harm in a shell. */
export function steps({ plan, steps: lines, commands }: Fix): FixStep[] {
  return plan ?? lines.map((text, number) => ({ kind: commands?.[number] ? "command" : "advice", text, comment: "" }));
}

/** What a name may not do in a shell: a line break would end the comment and begin a command. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
}

/** What a step that changes the node changes, and the ways back; nothing for one that only looks. */
export function details(step: FixStep): { name: string; text: string }[] {
  return (["touches", "undo", "check"] as const).flatMap((name) => {
    const text = step[name];
    return text ? [{ name, text }] : [];
  });
}

function pasteable(step: FixStep): string[] {
  const { kind, text, comment } = step;
  if (kind === "advice" || oneLine(text) !== text) return [`# ${oneLine(text)}`];
  const line = comment ? `${text}   # ${oneLine(comment)}` : text;
  return [line, ...details(step).map((each) => `#   ${each.name}: ${oneLine(each.text)}`)];
}

export function planText(incident: Incident, zoneOffsetS: number): string {
  const cause = incident.causes[0];
  if (!cause) return "";
  const head = [
    `# ${incident.node ?? "node"}, incident ${incident.id}, ${moment(incident.from, zoneOffsetS)} ${zoneName(zoneOffsetS)}`,
    `# ${cause.summary}`,
    `# plan: ${cause.fix.summary}`,
  ].map(oneLine);
  return `${[...head, ...steps(cause.fix).flatMap(pasteable)].join("\n")}\n`;
}
