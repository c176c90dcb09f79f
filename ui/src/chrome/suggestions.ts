/** What a filter may be set to: tasks that ran in the selected time, busiest first. Requested when the reader begins to type. */

import type { Group } from "../api/groups";
import type { Level } from "../api/types";
import { chosen, NO_FILTERS, sampleParams, useDocument } from "../state";
import { strip } from "../strip/load";
import type { Kind } from "./filter-words";

export interface Suggestion {
  value: string;
  /** Shown next to it, where the value alone says little. */
  label: string;
}

const MOST = 60;
const LEVELS: Partial<Record<Kind, Level>> = {
  pid: "process",
  tid: "thread",
  comm: "comm",
  unit: "unit",
  container: "container",
  pod: "pod",
  image: "image",
};

const VALUES: Record<string, (row: Group) => string | number | null> = {
  pid: (row) => row.pid,
  tid: (row) => row.tid,
  comm: (row) => row.comm,
  unit: (row) => row.unit,
  container: (row) => row.container?.split("/").pop() ?? null,
  pod: (row) => row.pod,
  image: (row) => row.image,
};

/** Pure: rows of `who` as what the box of a filter of this kind may be set to. */
export function suggested(kind: Kind, rows: readonly Group[]): Suggestion[] {
  const seen = new Map<string, Suggestion>();
  for (const row of rows) {
    const found = VALUES[kind]?.(row);
    if (found === null || found === undefined || found === "") continue;
    const value = String(found);
    const label = kind === "pid" || kind === "tid" ? (row.comm ?? "") : "";
    if (!seen.has(value)) seen.set(value, { value, label });
  }
  return [...seen.values()];
}

export function useSuggestions(kind: Kind, wanted: boolean): Suggestion[] {
  const level = LEVELS[kind];
  const asked = { ...sampleParams(chosen.value, NO_FILTERS), top: MOST };
  const who = useDocument(wanted && level ? "who" : null, { ...asked, by: level }, { wait_ms: 100 });
  const functions = useDocument(wanted && kind === "match" ? "functions" : null, asked, { wait_ms: 100 });
  if (!wanted) return [];
  if (kind === "cpu") return (strip.value?.cpus ?? []).map((cpu) => ({ value: String(cpu), label: "" }));
  if (kind === "match")
    return (functions.data?.functions ?? []).map(({ name, module }) => ({
      value: name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
      label: module ?? "",
    }));
  return suggested(kind, who.data?.who ?? []);
}
