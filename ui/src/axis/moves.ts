/** What hands do to the time axis, as changes of the state. */

import { signal } from "@preact/signals";
import type { Span } from "../api/types";
import { catchUp, compare, extent, following, info, navigate, replace, selection, view } from "../state";
import { CLOSEST_S, length, pan, reveal, step, within, zoom } from "./axis";

/** Pixels that the axis has; set by the timeline. */
export const plotWidth = signal(0);
/** What is being dragged and not yet chosen. */
export const draft = signal<{ span: Span; kind: "select" | "compare" } | null>(null);
/** Where the pointer is, on the axis. */
export const pointed = signal<number | null>(null);

export const hasRecording = (): boolean => length(extent.value) > 0;

export function look(next: Span): void {
  const all = extent.value;
  const whole = next.from <= all.from && next.to >= all.to;
  following.value = false;
  replace({ view: whole ? null : next });
}

export function zoomBy(factor: number, at = middle(selection.value ?? view.value)): void {
  if (hasRecording()) look(zoom(view.value, at, factor, extent.value));
}

export function panBy(share: number): void {
  if (hasRecording()) look(pan(view.value, share, extent.value));
}

/** The selection moves by its own width and stays in sight; without one the view moves. */
export function stepBy(direction: 1 | -1): void {
  const chosen = selection.value;
  if (!chosen) return panBy(direction * 0.25);
  select(step(chosen, direction, extent.value), true);
}

export function select(span: Span | null, quietly = false): void {
  const go = quietly ? replace : navigate;
  if (!span) return go({ selection: null, compare: null });
  const inside = within(span, extent.value);
  const shown = following.value ? view.value : null;
  const next = reveal(view.value, inside, extent.value);
  // Selecting in the live tail stops it, at what was being looked at.
  go({ selection: inside, ...(shown || next !== view.value ? { view: next } : {}) });
}

export function compareWith(span: Span | null): void {
  if (!span) return navigate({ compare: null });
  // The first thing chosen is what is looked at; a second needs a first.
  if (!selection.value) return select(span);
  navigate({ compare: within(span, extent.value) });
}

/** The selection with an end further out (above 1) or in. */
export function widen(factor: number): void {
  const chosen = selection.value;
  if (!chosen) return;
  const wide = Math.max(CLOSEST_S, length(chosen) * factor);
  select({ from: chosen.from, to: Math.min(extent.value.to, chosen.from + wide) }, true);
}

/** The same length of time just before the selection: what was normal. */
export function compareWithBefore(): void {
  if (selection.value) compareWith(step(selection.value, -1, extent.value));
}

/** The same length of time just after the selection. */
export function compareWithAfter(): void {
  if (selection.value) compareWith(step(selection.value, 1, extent.value));
}

export function swap(): void {
  if (selection.value && compare.value) navigate({ selection: compare.value, compare: selection.value });
}

export function wholeRecording(): void {
  following.value = false;
  catchUp();
  navigate({ view: null });
}

export function zoomToSelection(): void {
  const chosen = selection.value;
  if (!chosen) return;
  const room = length(chosen) * 0.1;
  navigate({ view: within({ from: chosen.from - room, to: chosen.to + room }, extent.value) });
}

export function follow(on: boolean): void {
  if (!info.value?.live) return;
  if (on) {
    catchUp();
    navigate({ view: null, selection: null, compare: null });
    following.value = true;
  } else {
    const shown = view.value;
    following.value = false;
    replace({ view: shown });
  }
}

const middle = (span: Span): number => (span.from + span.to) / 2;
