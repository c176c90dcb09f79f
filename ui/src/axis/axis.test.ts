import { describe, expect, it } from "vitest";
import {
  clicked,
  clusters,
  cut,
  marks,
  pan,
  precision,
  reveal,
  step,
  toTime,
  toX,
  wheelFactor,
  within,
  zoom,
} from "./axis";

const ALL = { from: 1000, to: 2000 };

describe("axis", () => {
  it("maps there and back", () => {
    const view = { from: 1000.5, to: 1060.25 };
    for (const at of [1000.5, 1033.125, 1060.25]) expect(toTime(view, 1234, toX(view, 1234, at))).toBeCloseTo(at, 9);
  });

  it("keeps what is under the pointer in its place while zooming", () => {
    const view = { from: 1200, to: 1400 };
    const closer = zoom(view, 1250, 0.5, ALL);
    expect(closer).toEqual({ from: 1225, to: 1325 });
    expect(toX(closer, 800, 1250)).toBeCloseTo(toX(view, 800, 1250));
  });

  it("never shows what lies outside of the recording", () => {
    expect(zoom({ from: 1000, to: 1100 }, 1010, 100, ALL)).toEqual(ALL);
    expect(zoom({ from: 1000, to: 1100 }, 1000, 2, ALL)).toEqual({ from: 1000, to: 1200 });
    expect(pan({ from: 1900, to: 2000 }, 0.5, ALL)).toEqual({ from: 1900, to: 2000 });
    expect(within({ from: 0, to: 5000 }, ALL)).toEqual(ALL);
  });

  it("has a closest look", () => {
    const view = zoom({ from: 1200, to: 1200.1 }, 1200.05, 0.001, ALL);
    expect(view.to - view.from).toBeCloseTo(0.05);
  });

  it("steps by whole widths and stops at the ends", () => {
    expect(step({ from: 1200, to: 1300 }, 1, ALL)).toEqual({ from: 1300, to: 1400 });
    expect(step({ from: 1050, to: 1150 }, -1, ALL)).toEqual({ from: 1000, to: 1100 });
  });

  it("moves no more than needed to show a span", () => {
    const view = { from: 1200, to: 1300 };
    expect(reveal(view, { from: 1210, to: 1220 }, ALL)).toBe(view);
    expect(reveal(view, { from: 1500, to: 1510 }, ALL)).toEqual({ from: 1455, to: 1555 });
    expect(reveal(view, { from: 1500, to: 1700 }, ALL)).toEqual({ from: 1450, to: 1750 });
  });

  it("cuts to what both have", () => {
    expect(cut({ from: 900, to: 1100 }, ALL)).toEqual({ from: 1000, to: 1100 });
    expect(cut({ from: 10, to: 20 }, ALL)).toBeNull();
  });

  it("turns a wheel one way and back to where it was", () => {
    expect(wheelFactor(100, 0) * wheelFactor(-100, 0)).toBeCloseTo(1);
    expect(wheelFactor(-100, 0)).toBeLessThan(1);
    expect(wheelFactor(3, 1)).toBeCloseTo(wheelFactor(48, 0));
  });

  it("marks round times of the node's zone, far enough apart to read", () => {
    const found = marks({ from: 1700000000, to: 1700000060 }, 900, 1800, 90);
    expect(found.map((mark) => mark.label)).toEqual([
      "22:43:20",
      "22:43:30",
      "22:43:40",
      "22:43:50",
      "22:44:00",
      "22:44:10",
      "22:44:20",
    ]);
    expect(found[0]!.day).toBe("2023-11-14");
    expect(found[1]!.day).toBeNull();
    for (let n = 1; n < found.length; n++) expect(found[n]!.x - found[n - 1]!.x).toBeGreaterThanOrEqual(90);
  });

  it("says a new day where it begins", () => {
    const found = marks({ from: 1700000000, to: 1700014400 }, 900, 0);
    const fresh = found.filter((mark) => mark.day);
    expect(fresh.map((mark) => mark.day)).toEqual(["2023-11-14", "2023-11-15"]);
    expect(fresh[1]!.label).toBe("00:00");
  });

  it("knows no marks of nothing", () => {
    expect(marks({ from: 0, to: 0 }, 900, 0)).toEqual([]);
    expect(marks({ from: 0, to: 10 }, 0, 0)).toEqual([]);
  });

  it("says as many decimals as a pixel is worth", () => {
    expect(precision({ from: 0, to: 3600 }, 1000)).toBe(0);
    expect(precision({ from: 0, to: 60 }, 1000)).toBe(1);
    expect(precision({ from: 0, to: 1 }, 1000)).toBe(3);
  });

  it("clicks one cell", () => {
    expect(clicked(1203.4, 1, { from: 1200, to: 1300 })).toEqual({ from: 1203, to: 1204 });
  });

  it("gathers what would lie on each other", () => {
    const found = clusters([1, 5, 9, 40, 41], (x) => x, 10);
    expect(found).toEqual([
      { x: 1, items: [1, 5, 9] },
      { x: 40, items: [40, 41] },
    ]);
  });
});
