// Rectangles by level, as arrays: of a flame graph (x = samples) or of a chart (x = seconds). Within a level they stand
// from left to right and do not overlap, so whatever is at a point, or begins a window, is found by binary search.

import type { FlameTree } from "./tree";

export interface Bars {
  /** Bars of level l are levels[l] .. levels[l + 1] - 1. */
  readonly levels: Uint32Array;
  readonly left: Float64Array;
  readonly right: Float64Array;
  readonly fn: Uint32Array;
}

/** A window of x. */
export interface Extent {
  readonly x0: number;
  readonly x1: number;
}

/** Bar i is node i. */
export function barsOf(tree: FlameTree): Bars {
  const { width, parent } = tree;
  const left = new Float64Array(tree.count),
    right = new Float64Array(tree.count);
  right[0] = width[0] ?? 0;
  for (let node = 1; node < tree.count; node++) {
    const isFirst = parent[node] !== parent[node - 1] || node === 1;
    left[node] = isFirst ? left[parent[node]!]! : right[node - 1]!;
    right[node] = left[node]! + width[node]!;
  }
  return { levels: tree.levels, left, right, fn: tree.fn };
}

/** The bar at x, or -1. */
export function hit(bars: Bars, level: number, x: number): number {
  if (level < 0 || level >= bars.levels.length - 1) return -1;
  const bar = firstAfter(bars, level, x);
  return bar < bars.levels[level + 1]! && bars.left[bar]! <= x ? bar : -1;
}

/** The first bar of a level that ends after x; the end of the level if there is none. */
export function firstAfter(bars: Bars, level: number, x: number): number {
  let low = bars.levels[level]!,
    high = bars.levels[level + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (bars.right[middle]! > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The bar nearest to x in a level: for keys that go up and down. -1 in an empty level. */
export function nearest(bars: Bars, level: number, x: number): number {
  if (level < 0 || level >= bars.levels.length - 1 || bars.levels[level] === bars.levels[level + 1]) return -1;
  const after = Math.min(firstAfter(bars, level, x), bars.levels[level + 1]! - 1);
  if (after === bars.levels[level] || bars.left[after]! <= x) return after;
  return bars.left[after]! - x < x - bars.right[after - 1]! ? after : after - 1;
}

/** Bars of a window that are narrower than `least`, and the window's deepest level. */
export function narrowIn(bars: Bars, view: Extent, least: number, fromLevel = 0): { narrow: number; deepest: number } {
  let narrow = 0,
    deepest = fromLevel;
  for (let level = fromLevel; level < bars.levels.length - 1; level++) {
    const end = bars.levels[level + 1]!;
    let bar = firstAfter(bars, level, view.x0);
    if (bar >= end || bars.left[bar]! >= view.x1) continue;
    deepest = level;
    for (; bar < end && bars.left[bar]! < view.x1; bar++) if (bars.right[bar]! - bars.left[bar]! < least) narrow++;
  }
  return { narrow, deepest };
}

/** The window of a node, and what is around it when it is the whole. */
export function extentOf(bars: Bars, bar: number): Extent {
  return { x0: bars.left[bar] ?? 0, x1: bars.right[bar] ?? 0 };
}

/** Closer or further, with x staying where it is on the screen; never beyond the whole, never below a millionth. */
export function zoomed(view: Extent, whole: Extent, x: number, factor: number): Extent {
  const span = whole.x1 - whole.x0;
  const wide = Math.min(span, Math.max(span * 1e-7, (view.x1 - view.x0) * factor));
  const part = view.x1 > view.x0 ? (x - view.x0) / (view.x1 - view.x0) : 0.5;
  return kept({ x0: x - part * wide, x1: x - part * wide + wide }, whole);
}

export function panned(view: Extent, whole: Extent, by: number): Extent {
  return kept({ x0: view.x0 + by, x1: view.x1 + by }, whole);
}

function kept(view: Extent, whole: Extent): Extent {
  const wide = Math.min(view.x1 - view.x0, whole.x1 - whole.x0);
  const x0 = Math.min(Math.max(view.x0, whole.x0), whole.x1 - wide);
  return { x0, x1: x0 + wide };
}

/** Between two windows while a zoom is under way: 0 is the first, 1 the second. Widths change evenly to the eye. */
export function between(from: Extent, to: Extent, part: number): Extent {
  if (part >= 1) return to;
  const ease = 1 - (1 - part) ** 3;
  return { x0: from.x0 + (to.x0 - from.x0) * ease, x1: from.x1 + (to.x1 - from.x1) * ease };
}

/** Where to look so that a bar is seen: the window itself if it is wide enough there, else that of its outermost
 * ancestor in which it is. */
export function revealing(
  tree: FlameTree,
  bars: Bars,
  node: number,
  view: Extent,
  pixels: number,
  least = 40,
): number | null {
  const wide = bars.right[node]! - bars.left[node]!;
  const inView = bars.left[node]! >= view.x0 - 1e-9 && bars.right[node]! <= view.x1 + 1e-9;
  if (inView && (wide / (view.x1 - view.x0)) * pixels >= least) return null;
  for (const above of tree.path(node)) {
    const span = bars.right[above]! - bars.left[above]!;
    if (span > 0 && (wide / span) * pixels >= least) return above;
  }
  return node;
}
