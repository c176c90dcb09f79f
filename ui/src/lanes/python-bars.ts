/** Spans of a thread as bars on the axis: what touches and says the same is one, what is too narrow is a pixel. */

import type { Lanes } from "../api/types";

export interface Bar {
  x: number;
  width: number;
  what: string;
  waits: boolean;
}

export function barsOf(thread: Lanes["python"][number], toX: (at: number) => number, width: number): Bar[] {
  const bars: Bar[] = [];
  thread.from.forEach((from, n) => {
    const [left, right] = [Math.max(0, toX(from)), Math.min(width, toX(thread.to[n] ?? from))];
    if (right < 0 || left > width) return;
    const [what, waits] = [thread.what[n] ?? "", thread.waits[n] ?? false];
    const last = bars[bars.length - 1];
    if (last && last.what === what && last.waits === waits && left - (last.x + last.width) < 2)
      last.width = Math.max(last.width, right - last.x);
    else bars.push({ x: left, width: Math.max(1, right - left), what, waits });
  });
  return bars;
}
