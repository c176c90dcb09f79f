/** Long waits by the core that they were for, and in words. Pure. */

import type { DelayLane, LongWait } from "../api/types";
import { duration } from "../format";

const MOST_CORES = 4;

export interface CoreWaits {
  cpu: number;
  waits: LongWait[];
  seconds: number;
}

/** The cores that were waited for longest, each with its waits. Pure. */
export function byCore({ waits }: Pick<DelayLane, "waits">): CoreWaits[] {
  const found = new Map<number, CoreWaits>();
  for (const one of waits) {
    const core = found.get(one.cpu) ?? { cpu: one.cpu, waits: [], seconds: 0 };
    core.waits.push(one);
    core.seconds += one.to - one.from;
    found.set(one.cpu, core);
  }
  return [...found.values()]
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, MOST_CORES)
    .sort((a, b) => a.cpu - b.cpu);
}

/** NET_RX of eth0 waited 951 ms: kubelet (pid 8781) ran on core 1 */
export function waitWords({ victim, by, cpu, from, to }: LongWait): string {
  return `${victim} waited ${duration(to - from)}: ${by ?? "an unknown task"} ran on core ${cpu}`;
}
