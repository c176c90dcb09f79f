// What an average hides, in words that are true on a busy machine too: where all cores are busy the average is true.

import type { Worst } from "../../api/types";
import { duration, measured, percent } from "../../format";

const CALM = 0.6;

export function hiddenWords({
  average_busy,
  average_kernel,
  core,
  core_kernel,
  seconds,
}: NonNullable<Worst["hidden"]>): string {
  const lasted = `For ${duration(seconds)}`;
  if (average_busy < CALM)
    return `${lasted} a dashboard of averages shows ${percent(average_busy)} busy and nothing wrong.`;
  const times = core_kernel / Math.max(average_kernel, 0.01);
  const all = `all cores were ${percent(average_busy)} busy on average`;
  return `${lasted} ${all}; core ${core} spent ${measured(times, "times")} as long in the kernel as the average core.`;
}
