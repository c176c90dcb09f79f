/** What a recording is opened on, when the address does not say. Pure. */

import type { Span } from "../api/types";
import { length, within } from "./axis";

/** A selection of less than this part of the view would be a line too thin to find. */
const FINDABLE = 0.02;
/** Cores in less than this part of the view: the rest is events from long before. */
const WORTH = 0.3;
const LEAST_S = 60;

/** The whole recording (null), unless what matters would be lost in it. */
export function opening(extent: Span, selection: Span | null, measured: Span | null): Span | null {
  if (selection) return length(selection) < FINDABLE * length(extent) ? around(selection, 5, extent) : null;
  if (measured && length(measured) < WORTH * length(extent)) return around(measured, 0.25, extent);
  return null;
}

function around(span: Span, room: number, extent: Span): Span {
  const wide = Math.max(LEAST_S, length(span) * (1 + 2 * room));
  const middle = (span.from + span.to) / 2;
  return within({ from: middle - wide / 2, to: middle + wide / 2 }, extent);
}
