import { describe, expect, it } from "vitest";
import type { LongWait } from "../api/types";
import { byCore, waitWords } from "./core-waits";

const wait = (cpu: number, from: number, to: number, by: string | null = "kubelet (pid 1893)"): LongWait => ({
  cpu,
  from,
  to,
  victim: "NET_RX of eth0",
  by,
});

describe("the waits of cores", () => {
  it("has the cores most waited for, in their order", () => {
    const waits = [wait(9, 0, 1), wait(1, 0, 5), wait(3, 0, 2), wait(4, 0, 3), wait(7, 0, 4), wait(1, 6, 7)];
    const found = byCore({ waits });
    expect(found.map((one) => one.cpu)).toEqual([1, 3, 4, 7]);
    expect(found[0]!.waits).toHaveLength(2);
    expect(found[0]!.seconds).toBe(6);
  });

  it("says who ran there, or that it is not known", () => {
    expect(waitWords(wait(39, 10, 16.599))).toContain("kubelet (pid 1893) ran on core 39");
    expect(waitWords(wait(39, 10, 11, null))).toContain("an unknown task");
  });
});
