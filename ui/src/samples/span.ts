/** Which time the pictures of samples are made of. Pure but for the clock of the live tail. */

import { effect, signal } from "@preact/signals";
import type { Span } from "../api/types";
import { length, within } from "../axis/axis";
import { chosen, following } from "../state";

/** A heat map of more than this has no pixel for a second. */
export const HEAT_S = 600;
/** A short selection is shown with what was around it. */
export const AROUND_S = 60;

const inside = (span: Span, outer: Span): boolean => span.from >= outer.from - 1e-6 && span.to <= outer.to + 1e-6;

/**
 * What the heat map shows. A view that fits is shown as it is, so that both stand above each other. Of a longer view the
 * selection is shown, with what was around it; and what is then selected in the heat map itself must not make it jump.
 */
export function heatSpan(view: Span, selection: Span | null, before: Span | null, extent: Span): Span {
  if (length(view) <= HEAT_S || !selection) return view;
  if (before && length(before) <= HEAT_S && inside(selection, before)) return before;
  if (length(selection) >= AROUND_S) return selection;
  const middle = (selection.from + selection.to) / 2;
  const from = Math.floor(middle - AROUND_S / 2);
  return within({ from, to: from + AROUND_S }, extent);
}

/** How often pictures of samples are redrawn while the live tail is followed. */
export const LIVE_MS = 5000;

/** `chosen`, but at rest while the live tail moves. */
export const settled = signal<Span>({ from: 0, to: 0 });

export function settle(): () => void {
  let last = 0;
  let timer = 0;
  const end = effect(() => {
    const next = chosen.value;
    clearTimeout(timer);
    const wait = following.value && length(settled.peek()) > 0 ? Math.max(0, LIVE_MS - (performance.now() - last)) : 0;
    const take = (): void => {
      last = performance.now();
      settled.value = next;
    };
    if (wait) timer = window.setTimeout(take, wait);
    else take();
  });
  return () => {
    clearTimeout(timer);
    end();
  };
}
