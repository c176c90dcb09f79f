/** Why there are no samples in a range: one sentence per reason. Pure. */

import type { Gap, Span } from "../api/types";
import { clock, duration, percent, span as spelled } from "../format";
import { type Filters, LISTS } from "../state/place";

export interface Facts {
  span: Span;
  node: string;
  recorded: Span;
  gaps: readonly Gap[];
  filters: Filters;
  /** How busy the cores were in the mean; null where that was not measured in all of the range. */
  busy: number | null;
  zone: number;
}

export interface Emptiness {
  kind: "outside" | "unrecorded" | "filtered" | "idle" | "unknown";
  words: string;
}

const BLINDING = /^(recorder|everything|stack samples)$/;
const IDLE = 0.02;
const NAMES: Partial<Record<keyof Filters, string>> = { comm: "name", match: "frame", cpu: "core" };

export function filterWords(filters: Filters): string {
  const { mode, match, python } = filters;
  const others = { mode, match, python: python && (python === "true" ? "only" : "without") };
  const lists = LISTS.flatMap((name) => filters[name].map((value) => [name, value] as const));
  return [...lists, ...(Object.entries(others) as [keyof Filters, string][])]
    .filter(([, value]) => value)
    .map(([name, value]) => `${NAMES[name] ?? name}=${value}`)
    .join(", ");
}

export function emptiness({ span, node, recorded, gaps, filters, busy, zone }: Facts): Emptiness {
  const from = Math.max(span.from, recorded.from);
  const to = Math.min(span.to, recorded.to);
  const when = `${clock(span.from, zone)} – ${clock(span.to, zone)}`;
  if (!(to > from))
    return {
      kind: "outside",
      words: `${spelled(span.from, span.to, zone)} is outside of this recording: ${node} was recorded ${spelled(recorded.from, recorded.to, zone)}.`,
    };
  let [blind, reached, why] = [0, from, ""];
  for (const gap of [...gaps].sort((a, b) => a.from - b.from)) {
    const [low, high] = [Math.max(gap.from, reached), Math.min(gap.to, to)];
    if (!BLINDING.test(gap.source) || high <= low) continue;
    blind += high - low;
    reached = high;
    why ||= gap.why;
  }
  const because = why && `: ${why}`;
  if (blind >= 0.99 * (to - from)) return { kind: "unrecorded", words: `No samples were recorded ${when}${because}.` };
  const chosen = filterWords(filters);
  if (chosen) return { kind: "filtered", words: `No sample of ${when} matches the filters: ${chosen}.` };
  if (blind)
    return { kind: "unrecorded", words: `No samples ${when}; ${duration(blind)} of it were not recorded${because}.` };
  if (busy !== null && busy < IDLE)
    return { kind: "idle", words: `No samples ${when}: the node was idle, its cores ${percent(busy)} busy.` };
  return { kind: "unknown", words: `No samples were recorded ${when}; why is not known.` };
}
