import { describe, expect, it } from "vitest";
import { away, count, length, measured, percent, plural, sentence, span, zoneName } from "./words";

describe("words", () => {
  it("does not make zero of what was not measured", () => {
    expect([count(null), percent(undefined), percent(Number.NaN), length(null)]).toEqual(Array(4).fill("not measured"));
    expect([count(0), percent(0), measured(null, "ratio")]).toEqual(["0", "0%", null]);
  });

  it("keeps the digits that matter", () => {
    expect([0.3181, 0.0654, 1, 0.9996].map((each) => percent(each))).toEqual(["32%", "6.5%", "100%", "100%"]);
    expect([2.06e-5, 0.35, 6, 12_000].map((each) => length(each))).toEqual(["21 µs", "350 ms", "6 s", "3 h 20 min"]);
  });

  it("names the day again only when it changes", () => {
    expect(span(1743476526, 1743476533, 0)).toBe("2025-04-01 03:02:06 – 03:02:13");
    expect(span(1743465595, 1743465605, 0)).toBe("2025-03-31 23:59:55 – 2025-04-01 00:00:05");
    expect([zoneName(0), zoneName(-25200)]).toEqual(["UTC", "UTC−07:00"]);
  });

  it("says which side of now, roughly", () => {
    expect([away(0, 7200), away(1_036_800, 0), away(2, 0), away(9e7, 0)]).toEqual([
      "2 h ago",
      "in 12 days",
      "now",
      "in 3 years",
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

  it("makes sentences", () => {
    expect([plural(1, "core"), plural(1200, "core")]).toEqual(["1 core", "1,200 cores"]);
    expect([sentence("it is so"), sentence("Why?"), sentence("")]).toEqual(["It is so.", "Why?", ""]);
  });
});
