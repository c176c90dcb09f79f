import { describe, expect, it } from "vitest";
import type { GpuSeconds } from "../../api/types";
import { gpuParts } from "./gpu-parts";

const NONE = { data: 0, core: 0, collective: 0, storage: 0, throttled: 0, stopped: 0, broken: 0, unknown: 0, host: 0 };

function row(busy_s: number, waited: Partial<GpuSeconds["waited"]>, wall_s = 100): GpuSeconds {
  const whose = { gpu: 0, job: "slurm/7", rank: null, pid: null, comm: null, pod: null, gpus: 1 };
  return { ...whose, wall_s, busy_s, waited: { ...NONE, unused: 0, ...waited } };
}

describe("the GPU seconds of a job", () => {
  it("are busy first, then what cost most; parts below half a percent are left out", () => {
    expect(gpuParts(row(60, { data: 10, collective: 29.7, host: 0.3 }))).toEqual([
      { state: "busy", part: 0.6 },
      { state: "collective", part: 0.297 },
      { state: "data", part: 0.1 },
    ]);
  });

  it("are nothing of nothing", () => {
    expect(gpuParts(row(0, {}, 0))).toEqual([]);
  });
});
