import { describe, expect, it } from "vitest";
import { clock, day, duration, percent, zone } from "./clock";

describe("clock", () => {
  it("speaks the node's zone", () => {
    expect(clock(1700000000, 0)).toBe("22:13:20");
    expect(clock(1700000000.129, 3600, 2)).toBe("23:13:20.12");
    expect(day(1700000000, 7200)).toBe("2023-11-15");
    expect([zone(0), zone(19800), zone(-3600)]).toEqual(["UTC", "+05:30", "−01:00"]);
  });

  it("says durations in two units at most", () => {
    expect([0.0101, 1, 12.54, 59.97, 60, 250, 11100, 190000].map(duration)).toEqual([
      "10 ms",
      "1 s",
      "12.5 s",
      "1 min",
      "1 min",
      "4 min 10 s",
      "3 h 5 min",
      "2 d 5 h",
    ]);
  });

  it("does not make a number of what was not measured", () => {
    expect([percent(null), percent(NaN), percent(0.126), percent(0.126, 1)]).toEqual(["–", "–", "13%", "12.6%"]);
  });
});
