/** Lines of the lanes as points of a picture. Pure. */

import type { Span } from "../api/types";
import { toX } from "../axis/axis";

export type Point = readonly [x: number, y: number];

/** The highest measured value in view, counting the neighbours just outside, whose line enters it. */
export function highest(at: readonly number[], values: readonly (number | null)[], view: Span): number {
  let most = 0;
  for (let n = 0; n < at.length; n++) {
    if ((at[n + 1] ?? at[n]!) < view.from || (at[n - 1] ?? at[n]!) > view.to) continue;
    const value = values[n];
    if (value !== null && value !== undefined && value > most) most = value;
  }
  return most;
}

/**
 * Pieces of a line: cut where nothing was measured. Of the points that fall on one pixel the highest is kept, so that a peak
 * survives any zoom.
 */
export function pieces(
  at: readonly number[],
  values: readonly (number | null)[],
  view: Span,
  width: number,
  height: number,
  top: number,
): Point[][] {
  const out: Point[][] = [];
  let piece: Point[] = [];
  const end = (): void => {
    if (piece.length) out.push(piece);
    piece = [];
  };
  for (let n = 0; n < at.length; n++) {
    if ((at[n + 1] ?? at[n]!) < view.from) continue;
    if ((at[n - 1] ?? at[n]!) > view.to) break;
    const value = values[n];
    if (value === null || value === undefined || Number.isNaN(value)) {
      end();
      continue;
    }
    const x = toX(view, width, at[n]!);
    const y = height - (top > 0 ? Math.min(1, value / top) : 0) * (height - 2) - 1;
    const last = piece[piece.length - 1];
    if (last && Math.floor(last[0]) === Math.floor(x)) {
      if (y < last[1]) piece[piece.length - 1] = [last[0], y];
    } else piece.push([x, y]);
  }
  end();
  return out;
}

/** The value that held at a time: that of the last point before it, unless that is long ago. */
export function valueAt(
  at: readonly number[],
  values: readonly (number | null)[],
  time: number,
  longest_s: number,
): number | null {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  if (low === 0 || time - at[low - 1]! > longest_s) return null;
  return values[low - 1] ?? null;
}
