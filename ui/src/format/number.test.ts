import { describe, expect, it } from "vitest";
import { measured } from "./measured";
import { compact, count, percent, plural, points, share, signed } from "./number";

describe("number", () => {
  it("does not make zero of what was not measured", () => {
    expect([count(null), percent(undefined), percent(Number.NaN)]).toEqual(Array(3).fill("not measured"));
    expect([count(0), percent(0), measured(null, "ratio")]).toEqual(["0", "0%", null]);
  });

  it("keeps the digits that matter", () => {
    expect([0.3181, 0.0996, 0.0654, 0.0065, 1, 0.9996].map((each) => percent(each))).toEqual([
      "32%",
      "10%",
      "6.5%",
      "0.65%",
      "100%",
      "100%",
    ]);
    expect([share(1, 1000), share(5, 100), share(1, 3), share(1, 1), share(1, 0), share(1, 1e6)]).toEqual([
      "0.10%",
      "5.00%",
      "33.3%",
      "100%",
      "0%",
      "<0.01%",
    ]);
    expect([signed(1234.4), signed(-2), signed(0.2), points(-0.5), points(0.004)]).toEqual([
      "+1,234",
      "−2",
      "±0",
      "−50.0 points",
      "+0.40 points",
    ]);
  });

  it("is short where there is little room", () => {
    expect([0.25, 1234, 12_345, 68_440_000].map(compact)).toEqual(["0.3", "1,234", "12.3k", "68.4M"]);
  });

  it("counts things", () => {
    expect([plural(1, "core"), plural(1200, "core"), plural(2, "branch", "branches")]).toEqual([
      "1 core",
      "1,200 cores",
      "2 branches",
    ]);
  });

  it("gives values their unit", () => {
    const values = [
      [0.3181, "ratio"],
      [68440, "cgroups"],
      [6.281, "cores"],
      [6, "s"],
      [6_596_000, "us"],
      ["ttyS0", null],
    ] as const;
    expect(values.map(([value, unit]) => measured(value, unit))).toEqual([
      "32%",
      "68,440 cgroups",
      "6.28 cores",
      "6 s",
      "6.6 s",
      "ttyS0",
    ]);
  });
});
