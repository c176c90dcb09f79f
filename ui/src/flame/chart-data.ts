// The time-ordered chart: what one core or thread ran, as the server merged consecutive samples. The answer is in the
// order of time; drawing wants it by level.

import type { FlamechartHeader } from "../api/types";
import type { Bars } from "./layout";
import { type ColumnsLike, type FunctionTable, functionsOf } from "./tree";

/** Bars are in seconds since `from`. */
export interface ChartData {
  readonly functions: FunctionTable;
  readonly bars: Bars;
  readonly samples: Uint32Array;
  readonly from: number;
  readonly to: number;
  readonly leftOff: number;
}

/** The answer of `flamechart`. */
export function chartFrom(columns: ColumnsLike<FlamechartHeader>): ChartData {
  const { header } = columns;
  const { name, module, kind, depth, start, end, samples } = columns.arrays;
  if (!name || !module || !kind || !depth || !start || !end) throw new Error("the flame chart has no columns");
  const [functions, fn] = functionsOf(header, name, module, kind, false);
  const order = byLevel(depth, start);
  const levels = new Uint32Array(maximum(depth) + 2);
  order.forEach((row, place) => {
    levels[depth[row]! + 1] = place + 1;
  });
  for (let level = 1; level < levels.length; level++) levels[level] = Math.max(levels[level]!, levels[level - 1]!);
  return {
    functions,
    bars: {
      levels,
      left: Float64Array.from(order, (row) => start[row]! - header.from),
      right: Float64Array.from(order, (row) => end[row]! - header.from),
      fn: Uint32Array.from(order, (row) => fn[row]!),
    },
    samples: Uint32Array.from(order, (row) => samples?.[row] ?? 0),
    from: header.from,
    to: header.to,
    leftOff: header.rows_left_off,
  };
}

/** The stack above a bar, outermost first: at each level the bar over its middle. */
export function stackAt(bars: Bars, bar: number): number[] {
  const level = levelOf(bars, bar),
    middle = (bars.left[bar]! + bars.right[bar]!) / 2,
    stack = [];
  for (let above = 0; above < level; above++) {
    let low = bars.levels[above]!,
      high = bars.levels[above + 1]!;
    while (low < high) {
      const between = (low + high) >>> 1;
      if (bars.right[between]! > middle) high = between;
      else low = between + 1;
    }
    if (low < bars.levels[above + 1]! && bars.left[low]! <= middle) stack.push(low);
  }
  return [...stack, bar];
}

export function levelOf(bars: Bars, bar: number): number {
  let level = 0;
  while (bars.levels[level + 1]! <= bar) level++;
  return level;
}

function byLevel(depth: ArrayLike<number>, start: ArrayLike<number>): number[] {
  return Array.from({ length: depth.length }, (_, row) => row).sort(
    (a, b) => depth[a]! - depth[b]! || start[a]! - start[b]!,
  );
}

function maximum(numbers: ArrayLike<number>): number {
  let most = -1;
  for (let i = 0; i < numbers.length; i++) most = Math.max(most, numbers[i]!);
  return most;
}
