import type { GpuSeconds } from "../../api/types";

/** What the time of a job's GPUs went to: parts of the whole, busy first, then the largest. Pure. */
export function gpuParts(row: GpuSeconds): { state: string; part: number }[] {
  const waited = Object.entries(row.waited)
    .filter(([state]) => state !== "unused")
    .sort(([, a], [, b]) => b - a);
  const all: [string, number][] = [["busy", row.busy_s], ...waited];
  return all.map(([state, seconds]) => ({ state, part: row.wall_s ? seconds / row.wall_s : 0 })).filter(worthAWord);
}

function worthAWord({ part }: { part: number }): boolean {
  return part >= 0.005;
}
