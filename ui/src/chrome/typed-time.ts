/** Times as people type them: 12:03, 12:03:22, 12:03..12:05:30; of the node's zone and the recording's days. Pure. */

import type { Span } from "../api/types";

const DAY_S = 86_400;
const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$/;

export function typedSpan(text: string, extent: Span, offset_s: number): Span | null {
  if (!(extent.to > extent.from)) return null;
  const [first = "", second] = text.trim().split(/\s*(?:\.\.|-|–)\s*/);
  const from = moment(first, extent, offset_s);
  if (!from) return null;
  if (second === undefined) return { from: from.at, to: from.at + from.wide };
  const to = moment(second, { from: from.at, to: from.at + DAY_S }, offset_s);
  return to && to.at > from.at ? { from: from.at, to: to.at } : null;
}

/** The first such time of day in `extent`; without seconds a whole minute is meant. */
function moment(text: string, extent: Span, offset_s: number): { at: number; wide: number } | null {
  const match = CLOCK.exec(text);
  if (!match) return null;
  const midnight = Math.floor((extent.from + offset_s) / DAY_S) * DAY_S - offset_s;
  const wide = match[3] ? 1 : 60;
  let at = midnight + Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3] ?? 0);
  if (at + wide <= extent.from) at += DAY_S;
  return at < extent.to ? { at, wide } : null;
}
