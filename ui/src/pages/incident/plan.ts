// The plan as something to read and to paste: commands as they are, everything else as a comment, so that the whole block
// may be read, copied and run line by line. Nothing on this page runs anything.

import type { ActionLogLine, Fix, Fixes, FixStep, Incident } from "../../api/types";
import { moment, zoneName } from "../../format";

const BLANK: Omit<FixStep, "does" | "command" | "kind"> = {
  id: "",
  part: "look",
  touches: [],
  risk: "",
  undo: "",
  verify: "",
  state: "planned",
  why: "",
  protected: null,
  applicable: false,
};

/** A step as recorders noted it before steps had types. */
interface OlderStep {
  kind: "command" | "advice";
  text: string;
  comment: string;
  touches?: string;
  undo?: string;
  check?: string;
}

function upgraded(step: FixStep | OlderStep): FixStep {
  if ("does" in step) return step;
  const { text, comment, touches, undo = "", check = "" } = step;
  if (step.kind === "advice") return { ...BLANK, kind: "advice", does: text, command: null };
  const kind = touches ? "change" : "look";
  return {
    ...BLANK,
    kind,
    does: comment || text,
    command: text,
    touches: touches ? [touches] : [],
    undo,
    verify: check,
  };
}

/** Older recorders noted lines, and which are commands; the oldest not even that: a comment does no harm in a shell. */
export function steps({ plan, steps: lines, commands }: Fix): FixStep[] {
  if (plan) return (plan as (FixStep | OlderStep)[]).map(upgraded);
  return lines.map((text, number) => {
    const [line = "", does = ""] = commands?.[number] ? text.split("   # ") : [];
    return line
      ? { ...BLANK, kind: "look" as const, does: does || line, command: line }
      : { ...BLANK, kind: "advice" as const, does: text, command: null };
  });
}

/** With what the action log says became of each of them. */
export function withStates(plan: readonly FixStep[], fixes: Fixes | null): FixStep[] {
  const known = new Map(fixes?.steps.map((each) => [each.id, each]));
  return plan.map((step) => {
    const found = known.get(step.id);
    return found ? { ...step, state: found.state, why: found.why } : step;
  });
}

/** What a name may not do in a shell: a line break would end the comment and begin a command. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
}

/** What a step that changes the node touches and risks, and the ways back; nothing for one that only looks. */
export function details(step: FixStep): { name: string; text: string }[] {
  if (step.kind !== "change") return [];
  const touched = step.touches.map((text) => ({ name: "touches", text }));
  const others = (["risk", "undo", "verify"] as const).map((name) => ({ name, text: step[name] }));
  return [...touched, ...others].filter(({ text }) => text);
}

function pasteable(step: FixStep): string[] {
  const { kind, does, command } = step;
  if (command === null || oneLine(command) !== command) return [`# ${oneLine(command ?? does)}`];
  const line = kind === "look" && does !== command ? `${command}   # ${oneLine(does)}` : command;
  const said = kind === "change" && does !== command ? [`# ${oneLine(does)}`] : [];
  return [...said, line, ...details(step).map((each) => `#   ${each.name}: ${oneLine(each.text)}`)];
}

/** What shows the live plan on the node, and with --apply does it; null for an id that is not ours. */
export function fixCommand(incident: Pick<Incident, "id">): string | null {
  return /^[0-9A-Za-z][0-9A-Za-z_-]*$/.test(incident.id) ? `zombiescope fix --incident ${incident.id}` : null;
}

/** Who it was, as far as the machine knew: sudo keeps the name of the person. */
export function whoDid({ who }: Pick<ActionLogLine, "who">): string {
  const { sudo, login, uid } = who;
  if (sudo) return String(sudo);
  if (login !== null && login !== undefined && login !== uid) return `uid ${login}`;
  return uid === 0 ? "root" : `uid ${uid ?? "?"}`;
}

/** What changed: the names whose value is another one afterwards. Where only one of the two is known, that one. */
export function beforeAfter({ before, after }: Pick<ActionLogLine, "before" | "after">): string {
  const word = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const names = Object.keys({ ...before, ...after }).filter(
    (name) => !before || !after || word(before[name]) !== word(after[name]),
  );
  const said = names.map((name) => {
    const values = [before, after].flatMap((side) => (side && name in side ? [word(side[name]) || "nothing"] : []));
    return `${name.replaceAll("_", " ")}: ${values.join(" → ")}`;
  });
  return said.join("; ");
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
