/** What the reader types as a filter. Pure. */

import type { Filters, ListFilter } from "../state/place";

export type Kind = ListFilter | "match";
export const KINDS: readonly Kind[] = ["cpu", "pid", "tid", "comm", "unit", "container", "pod", "image", "match"];

const NAMES: Record<string, Kind> = {
  cpu: "cpu",
  core: "cpu",
  pid: "pid",
  process: "pid",
  tid: "tid",
  thread: "tid",
  comm: "comm",
  name: "comm",
  unit: "unit",
  container: "container",
  pod: "pod",
  image: "image",
  match: "match",
  frame: "match",
};

/** What each choice about Python functions is called, and what it shows. */
export const PYTHON: Record<Filters["python"], { word: string; shows: string }> = {
  "": { word: "all", shows: "all samples, with Python functions where they are known" },
  true: { word: "python", shows: "only samples with Python functions on them" },
  false: { word: "no python", shows: "all samples, with stacks as they were taken" },
};

/**
 * What may be chosen: nothing where no Python was recorded. A page in a file holds stacks of one kind and cannot show
 * the other; a filter that is in the address can always be taken away.
 */
export function pythonChoices(now: Filters["python"], recorded: boolean, frozen: boolean): Filters["python"][] {
  if (!recorded && !now) return [];
  return frozen && now !== "false" ? ["", "true"] : ["", "true", "false"];
}

/** `unit:foo.service` and `core=3` say their kind themselves; otherwise the chosen one holds. /re/ is always about frames. */
export function understood(text: string, chosen: Kind): { kind: Kind; value: string } {
  const typed = text.trim();
  const between = /^\/(.+)\/$/.exec(typed);
  if (between) return { kind: "match", value: between[1]! };
  const named = /^([a-z]+)\s*[:=]\s*(.+)$/i.exec(typed);
  const kind = named && NAMES[named[1]!.toLowerCase()];
  return kind ? { kind, value: named[2]! } : { kind: chosen, value: typed };
}

/** What is being typed, also before there is a value: its kind, and the part of the text that says the kind. */
export function typed(text: string, chosen: Kind): { kind: Kind; prefix: string } {
  const named = /^\s*([a-z]+)\s*[:=]\s*/i.exec(text);
  const kind = named && NAMES[named[1]!.toLowerCase()];
  return kind ? { kind, prefix: named[0] } : { kind: chosen, prefix: "" };
}

/** Why it cannot be a filter; empty if it can. */
export function problemWith(kind: Kind, value: string): string {
  if (kind === "cpu" && !/^\d+(-\d+)?(,\d+(-\d+)?)*$/.test(value)) return "a core is a number, or 0-7";
  if ((kind === "pid" || kind === "tid") && !/^\d+$/.test(value)) return "an id is a number";
  if (kind === "match") {
    try {
      new RegExp(value);
    } catch (error) {
      return `not a regular expression: ${(error as Error).message.replace(/^.*: /, "")}`;
    }
  }
  return "";
}
