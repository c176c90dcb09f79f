import { describe, expect, it } from "vitest";
import type { HeatData } from "./cells";
import { gridOf, LEFT, niceStep } from "./paint";

const HEAT: HeatData = {
  start: 100,
  columnS: 1,
  spanS: 1,
  columns: 10,
  rows: 50,
  max: 1,
  total: 1,
  cores: null,
  blind: [],
  leftOut: [],
  spread: null,
  values: new Uint32Array(500),
  painted: null,
};

describe("gridOf", () => {
  it("fills the width, with columns that are not absurd", () => {
    const grid = gridOf(HEAT, LEFT + 501, 200);
    expect([grid.left, grid.cell.w, grid.width, grid.height]).toEqual([LEFT, 50, 500, 200]);
    expect(gridOf({ ...HEAT, columns: 1 }, 2000, 200).cell.w).toBe(90);
  });

  it("puts columns below their time on a shared axis", () => {
    const grid = gridOf(HEAT, LEFT + 501, 200, { from: 100.5, to: 105.5 });
    expect([grid.left, grid.cell.w, grid.plot]).toEqual([LEFT - 50, 100, 500]);
    const x = (at: number) => grid.left + ((at - HEAT.start) / HEAT.columnS) * grid.cell.w;
    expect([x(100.5), x(103), x(105.5)]).toEqual([LEFT, LEFT + 250, LEFT + 500]);
  });

  it("keeps every row visible", () => {
    expect(gridOf({ ...HEAT, rows: 200 }, 1000, 150).cell.h).toBe(1.5);
    expect(gridOf({ ...HEAT, rows: 2, cores: [0, 1] }, 1000, 150).cell.h).toBe(18);
  });
});

describe("niceStep", () => {
  it("is a whole number of seconds, minutes or hours", () => {
    expect([0.2, 1, 3, 40, 61, 4000, 1e9].map(niceStep)).toEqual([1, 1, 5, 60, 120, 7200, 86400]);
  });
});
