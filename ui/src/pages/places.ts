// Where a statement is proved: a page, a span of time, filters and a search.
//
// A place is plain data. Every link of a chain, every tile of the home page and every row that can be opened has one, so
// "show me" is the same act everywhere, and is a link that can be copied. It says everything about where it leads: what
// the reader had filtered or searched before does not stay, or the proof would not be seen.

import { NO_FILTERS, type Page, START, type Place as State, type View } from "../state/place";
import type { Span } from "./documents";

export interface Place {
  page: Page;
  rec?: string;
  id?: string;
  view?: Span;
  sel?: Span;
  cmp?: Span;
  cpu?: readonly number[];
  comm?: readonly string[];
  unit?: readonly string[];
  mode?: "kernel" | "user";
  draw?: View;
  q?: string;
}

/** The place as the state module takes it. The recording stays unless another is named. */
export function change(place: Place): Partial<State> {
  const { rec: _rec, colour: _colour, icicle: _icicle, ...fresh } = START;
  return {
    ...fresh,
    page: place.page,
    ...(place.rec === undefined ? {} : { rec: place.rec }),
    incidentId: place.id ?? "",
    view: place.view ?? null,
    selection: place.sel ?? null,
    compare: place.cmp ?? null,
    filters: {
      ...NO_FILTERS,
      cpu: (place.cpu ?? []).map(String),
      comm: [...(place.comm ?? [])],
      unit: [...(place.unit ?? [])],
      mode: place.mode ?? "",
    },
    look: place.draw ?? "flame",
    search: { text: place.q ?? "", mode: "highlight" },
  };
}

/** A regular expression that finds exactly this function. */
export function exactly(name: string): string {
  return `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
}

export function around(span: Span, before: number, after = before): Span {
  return { from: span.from - before, to: span.to + after };
}

/** The part of a span that was recorded; the span itself where nothing of it was. */
export function within(span: Span, bounds: Span | null): Span {
  if (!bounds || span.to <= bounds.from || span.from >= bounds.to) return span;
  return { from: Math.max(span.from, bounds.from), to: Math.min(span.to, bounds.to) };
}
