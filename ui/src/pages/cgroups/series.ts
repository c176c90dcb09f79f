// Thirty days as columns to draw. Between two boots is a hole: a reboot that helped must stay visible, and a line
// across it would show zombies that never existed.

import type { HistoryPoint } from "../../api/types";

export interface Series {
  at: number[];
  total: (number | null)[];
  dying: (number | null)[];
  restarts: (number | null)[];
  saturated: (number | null)[];
  /** When each later boot was first seen. */
  reboots: number[];
}

export function series(points: readonly HistoryPoint[]): Series {
  const made: Series = { at: [], total: [], dying: [], restarts: [], saturated: [], reboots: [] };
  const step = usualStep(points);
  let before: HistoryPoint | null = null;
  for (const point of points) {
    const rebooted = before !== null && before.boot !== point.boot;
    const missing = before !== null && point.at - before.at > 3 * step;
    if (before !== null && (rebooted || missing))
      hole(made, Math.min(before.at + step / 2, (before.at + point.at) / 2));
    if (rebooted) made.reboots.push(point.at);
    made.at.push(point.at);
    made.total.push(point.memory_cgroups);
    made.dying.push(point.dying);
    made.restarts.push(point.restarts || null); // a bar of nothing would be drawn as a line
    made.saturated.push(point.cores_saturated_s);
    before = point;
  }
  return made;
}

function hole(made: Series, at: number): void {
  made.at.push(at);
  for (const column of [made.total, made.dying, made.restarts, made.saturated]) column.push(null);
}

function usualStep(points: readonly HistoryPoint[]): number {
  const steps = points
    .slice(1)
    .map((point, number) => point.at - (points[number]?.at ?? 0))
    .filter((step) => step > 0);
  steps.sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] ?? 60;
}

export interface HistorySummary {
  days: number;
  reboots: number;
  most: { dying: number; at: number } | null;
  restarts: number;
  saturated_s: number;
}

export function summary(points: readonly HistoryPoint[]): HistorySummary | null {
  const first = points[0];
  const last = points[points.length - 1];
  if (!first || !last) return null;
  let most: HistorySummary["most"] = null;
  for (const point of points)
    if (point.dying !== null && (!most || point.dying > most.dying)) most = { dying: point.dying, at: point.at };
  return {
    days: (last.at - first.at) / 86400,
    reboots: new Set(points.map((point) => point.boot)).size - 1,
    most,
    restarts: points.reduce((sum, point) => sum + (point.restarts ?? 0), 0),
    saturated_s: points.reduce((sum, point) => sum + (point.cores_saturated_s ?? 0), 0),
  };
}
