import { describe, expect, it } from "vitest";
import { packed } from "../flame/colours";
import { colourOf, HEAT_DEFAULT, legendMarks, levelOf, paintOf, ramp } from "./palette";

describe("palette", () => {
  it("tells one sample from none and from ten on the logarithmic scale", () => {
    const colours = ramp(HEAT_DEFAULT);
    expect(levelOf(10, 1000, "log")).toBeCloseTo(1 / 3);
    expect(levelOf(10, 1000, "linear")).toBeLessThan(0.01);
    expect(colourOf(1, 1000, "log", colours)).not.toBe(colourOf(3, 1000, "log", colours));
    expect(colourOf(1000, 1000, "log", colours)).toBe(packed([0x5f, 0x0a, 0x0a]));
  });

  it.each(["log", "linear"] as const)("grows with the count on the %s scale and stays within it", (scale) => {
    let last = -1;
    for (let count = 1; count <= 300; count++) {
      const level = levelOf(count, 300, scale);
      expect(level).toBeGreaterThan(last);
      last = level;
    }
    expect(last).toBe(1);
    expect([levelOf(0, 300, scale), levelOf(5, 0, scale), levelOf(1, 1, scale)]).toEqual([0, 0, 1]);
  });

  it("paints a single hit among many plainly, and nothing without a hit", () => {
    const ground = packed([255, 255, 255]);
    expect(paintOf(0, 9, "log", ground, [200, 0, 200])).toBe(ground);
    expect((paintOf(1, 1000, "log", ground, [200, 0, 200]) >>> 8) & 255).toBeLessThan(150);
    expect(paintOf(9, 9, "log", ground, [200, 0, 200])).toBe(packed([200, 0, 200]));
    expect(paintOf(30, 1000, "log", ground, [200, 0, 200])).not.toBe(paintOf(1, 1000, "log", ground, [200, 0, 200]));
  });

  it("marks a legend with few numbers in order", () => {
    expect(legendMarks(5000, "log")).toEqual([1, 100, 5000]);
    expect(legendMarks(40, "log")).toEqual([1, 10, 40]);
    expect(legendMarks(9, "linear")).toEqual([1, 5, 9]);
    expect([legendMarks(1, "log"), legendMarks(0, "log")]).toEqual([[1], []]);
  });
});
