import { describe, expect, it } from "vitest";
import { away, clock, day, duration, span, zoneName } from "./time";

describe("time", () => {
  it("speaks the node's zone", () => {
    expect(clock(1700000000, 0)).toBe("22:13:20");
    expect(clock(1700000000.129, 3600, 2)).toBe("23:13:20.12");
    expect(day(1700000000, 7200)).toBe("2023-11-15");
    expect([zoneName(0), zoneName(19800), zoneName(-25200)]).toEqual(["UTC", "UTC+05:30", "UTC−07:00"]);
  });

  it("names the day again only when it changes", () => {
    expect(span(1743476526, 1743476533, 0)).toBe("2025-04-01 03:02:06 – 03:02:13");
    expect(span(1743465595, 1743465605, 0)).toBe("2025-03-31 23:59:55 – 2025-04-01 00:00:05");
  });

  it("says durations in three digits, or in two units", () => {
    const said = { 0: "0 s", 0.0000206: "21 µs", 0.0025: "2.5 ms", 0.0101: "10.1 ms", 0.35: "350 ms", 0.9996: "1 s" };
    for (const [seconds, words] of Object.entries(said)) expect(duration(Number(seconds))).toBe(words);
    expect([1, 6.596, 12.54, 59.97, 60, 250, 11100, 190000].map(duration)).toEqual([
      "1 s",
      "6.6 s",
      "12.5 s",
      "1 min",
      "1 min",
      "4 min 10 s",
      "3 h 5 min",
      "2 d 5 h",
    ]);
    expect([duration(null), duration(Number.NaN)]).toEqual(["not measured", "not measured"]);
  });

  it("says which side of now, roughly", () => {
    expect([away(0, 7200), away(1_036_800, 0), away(2, 0), away(9e7, 0)]).toEqual([
      "2 h ago",
      "in 12 days",
      "now",
      "in 3 years",
    ]);
  });
});
