/** The mathematics of the one time axis: seconds on one side, pixels on the other. Pure. */

import type { Span } from "../api/types";
import { clock, day } from "../format";

/** A closer view than a handful of samples is useless. */
export const CLOSEST_S = 0.05;

export const length = (span: Span): number => span.to - span.from;
export const contains = (span: Span, at: number): boolean => at >= span.from && at < span.to;
export const overlaps = (a: Span, b: Span): boolean => a.from < b.to && b.from < a.to;

export function toX(span: Span, width: number, at: number): number {
  return length(span) > 0 ? ((at - span.from) / length(span)) * width : 0;
}

export function toTime(span: Span, width: number, x: number): number {
  return width > 0 ? span.from + (x / width) * length(span) : span.from;
}

export function ordered(a: number, b: number): Span {
  return a < b ? { from: a, to: b } : { from: b, to: a };
}

/** Moved, and if need be cut, so that it lies within `extent`. */
export function within(span: Span, extent: Span): Span {
  const wide = Math.min(length(span), length(extent));
  const from = Math.max(extent.from, Math.min(span.from, extent.to - wide));
  return { from, to: from + wide };
}

/** The part of `span` that lies in `extent`, or null. */
export function cut(span: Span, extent: Span): Span | null {
  const from = Math.max(span.from, extent.from);
  const to = Math.min(span.to, extent.to);
  return from < to ? { from, to } : null;
}

/** The part of a span that was recorded; the span itself where nothing of it was, or nothing is known. */
export function recordedPart(span: Span, recorded: Span | null): Span {
  return (recorded && cut(span, recorded)) ?? span;
}

export function around(span: Span, seconds: number): Span {
  return { from: span.from - seconds, to: span.to + seconds };
}

/** `factor` below 1 looks closer. What is at `at` stays where it is on the screen. */
export function zoom(span: Span, at: number, factor: number, extent: Span): Span {
  const wide = Math.max(CLOSEST_S, Math.min(length(extent), length(span) * factor));
  const share = length(span) > 0 ? (at - span.from) / length(span) : 0.5;
  const from = at - share * wide;
  return within({ from, to: from + wide }, extent);
}

/** A turn of the wheel as a factor; trackpads send many small turns, mice few large ones. */
export function wheelFactor(delta: number, mode: number): number {
  const pixels = delta * (mode === 1 ? 16 : mode === 2 ? 400 : 1);
  return Math.exp(Math.max(-300, Math.min(300, pixels)) * 0.0022);
}

/** Moved by a part of its width. */
export function pan(span: Span, share: number, extent: Span): Span {
  const by = length(span) * share;
  return within({ from: span.from + by, to: span.to + by }, extent);
}

/** The next piece of the same width to the right (1) or left (-1). */
export function step(span: Span, direction: 1 | -1, extent: Span): Span {
  return pan(span, direction, extent);
}

/** `view`, moved just so far that `span` can be seen; looked at from farther away if it does not fit. */
export function reveal(view: Span, span: Span, extent: Span): Span {
  if (span.from >= view.from && span.to <= view.to) return view;
  const room = length(span) * 0.25;
  if (length(span) + 2 * room > length(view)) return within({ from: span.from - room, to: span.to + room }, extent);
  const middle = (span.from + span.to) / 2;
  return within({ from: middle - length(view) / 2, to: middle + length(view) / 2 }, extent);
}

const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000,
];

export interface Mark {
  at: number;
  x: number;
  label: string;
  /** A new day begins, or the first mark: the date is worth saying. */
  day: string | null;
}

/** Round times at a readable distance, in the node's zone. */
export function marks(span: Span, width: number, offset_s: number, apart = 90): Mark[] {
  if (!(length(span) > 0) || width <= 0) return [];
  const least = (length(span) * apart) / width;
  const every = STEPS.find((one) => one >= least) ?? STEPS[STEPS.length - 1]!;
  const decimals = every >= 1 ? 0 : every >= 0.1 ? 1 : every >= 0.01 ? 2 : 3;
  const out: Mark[] = [];
  let said = "";
  for (let n = Math.ceil((span.from + offset_s) / every); ; n++) {
    const at = n * every - offset_s;
    if (at > span.to) break;
    const today = day(at, offset_s);
    const label =
      every >= 86400 ? today.slice(5) : every >= 60 ? clock(at, offset_s).slice(0, 5) : clock(at, offset_s, decimals);
    out.push({ at, x: toX(span, width, at), label, day: today === said ? null : today });
    said = today;
  }
  return out;
}

/** Decimals that tell neighbouring pixels apart. */
export function precision(span: Span, width: number): number {
  const pixel = length(span) / Math.max(1, width);
  return pixel >= 0.5 ? 0 : pixel >= 0.05 ? 1 : pixel >= 0.005 ? 2 : 3;
}

/** A drag of fewer pixels is a click. */
export const CLICK_PX = 4;

/** What a click means: the cell of the axis under it, one tick of the recorder wide. */
export function clicked(at: number, column_s: number, view: Span): Span {
  const wide = Math.max(column_s, CLOSEST_S);
  const from = view.from + Math.floor((at - view.from) / wide) * wide;
  return { from, to: from + wide };
}

export interface Cluster<T> {
  x: number;
  items: T[];
}

/** Things closer than `apart` pixels become one; `xs` must be sorted. */
export function clusters<T>(items: readonly T[], x: (item: T) => number, apart: number): Cluster<T>[] {
  const out: Cluster<T>[] = [];
  for (const item of items) {
    const at = x(item);
    const last = out[out.length - 1];
    if (last && at - last.x < apart) last.items.push(item);
    else out.push({ x: at, items: [item] });
  }
  return out;
}
