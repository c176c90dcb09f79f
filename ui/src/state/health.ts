/** The parts of a recorder that do not work, in words. Pure. */

import type { PartHealth } from "../api/types";
import { capital, clock } from "../format";

const MEANS: Record<string, string> = {
  recorder: " Nothing is recorded.",
  "live diagnosis": " Incidents are not detected.",
};
const FIXES: Record<string, string> = { "live diagnosis": "zombiescope selftest" };

export interface Alarm {
  name: string;
  words: string;
  /** What to type, or how to say it. */
  fix: string;
}

/** Failed or hung parts; of a silent publisher only itself, since nothing is known about what it looked after. */
export function alarms(parts: readonly PartHealth[], zone: number): Alarm[] {
  return parts
    .filter(({ state, obscured_by }) => (state === "failed" || state === "hung") && obscured_by === null)
    .map(({ name, state, since, why, fix }) => ({
      name,
      words: `${capital(name)} has ${state === "hung" ? "not responded" : "failed"} since ${clock(since, zone)}${
        why && `: ${why.replace(/[.\s]+$/, "")}`
      }.${MEANS[name] ?? ""}`,
      fix: fix || FIXES[name] || "",
    }));
}
