import { describe, expect, it } from "vitest";
import { packed } from "../flame/colours";
import { colourOf, domainOf, HEAT_DEFAULT, legendMarks, levelOf, paintOf, ramp } from "./palette";

const domain = (max: number, usual = 0) => ({ max, usual });

describe("palette", () => {
  it("tells one sample from none and from ten on the logarithmic scale", () => {
    const colours = ramp(HEAT_DEFAULT);
    expect(levelOf(10, domain(1000), "log")).toBeCloseTo(1 / 3);
    expect(levelOf(10, domain(1000), "linear")).toBeLessThan(0.01);
    expect(colourOf(1, domain(1000), "log", colours)).not.toBe(colourOf(3, domain(1000), "log", colours));
    expect(colourOf(1000, domain(1000), "log", colours)).toBe(packed([0x5f, 0x0a, 0x0a]));
  });

  it.each(["log", "linear"] as const)("grows with the count on the %s scale and stays within it", (scale) => {
    let last = -1;
    for (let count = 1; count <= 300; count++) {
      const level = levelOf(count, domain(300), scale);
      expect(level).toBeGreaterThan(last);
      last = level;
    }
    expect(last).toBe(1);
    expect([levelOf(0, domain(300), scale), levelOf(5, domain(0), scale), levelOf(1, domain(1), scale)]).toEqual([
      0, 0, 1,
    ]);
  });

  it("paints a single hit among many plainly, and nothing without a hit", () => {
    const ground = packed([255, 255, 255]);
    expect(paintOf(0, domain(9), "log", ground, [200, 0, 200])).toBe(ground);
    expect((paintOf(1, domain(1000), "log", ground, [200, 0, 200]) >>> 8) & 255).toBeLessThan(150);
    expect(paintOf(9, domain(9), "log", ground, [200, 0, 200])).toBe(packed([200, 0, 200]));
    expect(paintOf(30, domain(1000), "log", ground, [200, 0, 200])).not.toBe(
      paintOf(1, domain(1000), "log", ground, [200, 0, 200]),
    );
  });

  it("marks a legend with few numbers in order", () => {
    expect(legendMarks(domain(5000), "log")).toEqual([1, 100, 5000]);
    expect(legendMarks(domain(40), "log")).toEqual([1, 10, 40]);
    expect(legendMarks(domain(9), "linear")).toEqual([1, 5, 9]);
    expect([legendMarks(domain(1), "log"), legendMarks(domain(0), "log")]).toEqual([[1], []]);
  });

  it("keeps the middle of the automatic scale for what nearly every cell has", () => {
    const full = domainOf(Array.from({ length: 500 }, () => 2));
    expect(levelOf(2, full, "auto")).toBeCloseTo(0.45);
    expect(levelOf(1, full, "auto")).toBeLessThan(levelOf(2, full, "auto"));
    expect(levelOf(2.3, full, "auto")).toBeGreaterThan(levelOf(2, full, "auto"));
    expect(legendMarks(full, "auto")).toEqual([2]);
    const idle = domainOf([...Array.from({ length: 500 }, () => 1), 200]);
    expect([levelOf(1, idle, "auto"), levelOf(200, idle, "auto")]).toEqual([0, 1]);
    expect(domainOf([])).toEqual({ max: 0, usual: 0 });
  });
});
