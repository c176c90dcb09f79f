import { describe, expect, it } from "vitest";
import {
  between,
  canFold,
  cellAt,
  cellsOf,
  columnRange,
  columnsOf,
  folded,
  type HeatData,
  heatFrom,
  moved,
  narrowed,
  samplesIn,
  staircase,
  stepped,
  timeOf,
} from "./cells";

const START = 1_700_000_000;

function heat(change: Partial<HeatData> = {}): HeatData {
  const columns = change.columns ?? 10,
    rows = change.rows ?? 50;
  return {
    start: START,
    columnS: 1,
    spanS: 1,
    columns,
    rows,
    max: 9,
    total: 0,
    cores: null,
    blind: [],
    leftOut: [],
    spread: null,
    values: Uint32Array.from({ length: columns * rows }, (_, cell) => cell % 7),
    painted: null,
    ...change,
  };
}

describe("cells and time", () => {
  it.each([10, 25, 49, 50, 99, 100, 200])("leads from every cell to its time and back with %i rows", (rows) => {
    const map = heat({ rows, columns: 4 });
    for (let column = 0; column < 4; column++) {
      for (let row = 0; row < rows; row++) expect(cellAt(map, timeOf(map, { column, row }))).toEqual({ column, row });
    }
  });

  it("takes both ends of a drag, in either direction", () => {
    const map = heat(),
      one = { column: 3, row: 10 },
      other = { column: 2, row: 40 };
    expect(between(map, one, other)).toEqual({ from: START + 2.8, to: START + 3.22 });
    expect(between(map, other, one)).toEqual(between(map, one, other));
  });

  it("only knows whole columns where a row is a core", () => {
    const map = heat({ cores: [0, 1, 2], rows: 3, columnS: 5 });
    expect(between(map, { column: 1, row: 2 }, { column: 2, row: 0 })).toEqual({ from: START + 5, to: START + 15 });
    expect(cellAt(map, START + 12)).toEqual({ column: 2, row: 0 });
  });

  it("gives back the cells of a range that was selected by cells", () => {
    const map = heat();
    const range = between(map, { column: 2, row: 40 }, { column: 3, row: 10 });
    expect(cellsOf(map, range)).toEqual([140, 161]);
    expect(samplesIn(map, range)).toBe([...map.values.subarray(140, 161)].reduce((a, b) => a + b));
    expect(cellsOf(map, columnRange(map, { column: 9, row: 3 }))).toEqual([450, 500]);
  });

  it("stays on the map beyond its ends", () => {
    const map = heat();
    expect(cellAt(map, START - 5)).toEqual({ column: 0, row: 0 });
    expect(cellAt(map, START + 50)).toEqual({ column: 9, row: 49 });
    expect(cellsOf(map, { from: START - 9, to: START + 99 })).toEqual([0, 500]);
  });

  it("steps by the length of the range and stops at the ends", () => {
    const map = heat();
    expect(stepped(map, { from: START + 2, to: START + 4.5 }, 1)).toEqual({ from: START + 4.5, to: START + 7 });
    expect(stepped(map, { from: START + 1, to: START + 3 }, -1)).toEqual({ from: START, to: START + 2 });
    expect(stepped(map, { from: START + 7, to: START + 9 }, 1)).toEqual({ from: START + 8, to: START + 10 });
  });
});

describe("keys", () => {
  it("lead through time, from the end of a second into the next", () => {
    const map = heat({ columns: 3, rows: 50 });
    expect(moved(map, { column: 1, row: 49 }, "ArrowUp")).toEqual({ column: 2, row: 0 });
    expect(moved(map, { column: 1, row: 0 }, "ArrowDown")).toEqual({ column: 0, row: 49 });
    expect(moved(map, { column: 2, row: 49 }, "ArrowUp")).toEqual({ column: 2, row: 49 });
    expect(moved(map, { column: 0, row: 0 }, "ArrowDown")).toEqual({ column: 0, row: 0 });
    expect([moved(map, { column: 1, row: 7 }, "End"), moved(map, { column: 1, row: 7 }, "PageUp")]).toEqual([
      { column: 2, row: 7 },
      { column: 0, row: 7 },
    ]);
    expect(moved(map, { column: 1, row: 7 }, "x")).toBeNull();
  });

  it("go down the list of cores", () => {
    const map = heat({ columns: 3, rows: 4, cores: [0, 1, 2, 3] });
    expect(moved(map, { column: 1, row: 1 }, "ArrowDown")).toEqual({ column: 1, row: 2 });
    expect(moved(map, { column: 1, row: 0 }, "ArrowUp")).toEqual({ column: 1, row: 0 });
  });
});

describe("staircase", () => {
  it.each([
    [0, 500],
    [140, 161],
    [143, 144],
    [100, 150],
    [120, 330],
    [0, 51],
    [49, 100],
  ])("covers cells %i to %i once each", (first, end) => {
    const map = heat(),
      seen = new Set<number>();
    for (const { x, y, w, h } of staircase(map, first, end)) {
      for (let column = x; column < x + w; column++) {
        for (let line = y; line < y + h; line++) {
          const cell = column * 50 + (49 - line);
          expect(seen.has(cell)).toBe(false);
          seen.add(cell);
        }
      }
    }
    expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: end - first }, (_, i) => first + i));
  });

  it("is nothing for nothing", () => expect(staircase(heat(), 5, 5)).toEqual([]));
});

describe("heat maps", () => {
  it("keeps every sample when columns are put together", () => {
    const map = heat({ columns: 11, painted: new Uint32Array(550).fill(1) }),
      small = narrowed(map, 4);
    expect([small.columns, small.columnS]).toEqual([4, 3]);
    expect(small.values.reduce((a, b) => a + b)).toBe(map.values.reduce((a, b) => a + b));
    expect(small.painted!.reduce((a, b) => a + b)).toBe(550);
    expect(small.max).toBe(Math.max(...small.values));
    expect(narrowed(map, 11)).toBe(map);
  });

  it("folds seconds into minutes and hours, keeping every sample and its time", () => {
    const values = new Uint32Array(9000 * 10);
    values[10 * 130 + 3] = 7;
    values[10 * 8999 + 9] = 2;
    const map = heat({ columns: 9000, rows: 10, values });
    const minute = folded(map, 60),
      hour = folded(map, 3600);
    expect([
      minute.rows,
      hour.rows,
      minute.values.reduce((a, b) => a + b),
      hour.values.reduce((a, b) => a + b),
    ]).toEqual([60, 120, 9, 9]);
    for (const made of [minute, hour]) {
      const busy = made.values.indexOf(7),
        cell = { column: Math.floor(busy / made.rows), row: busy % made.rows };
      const from = timeOf(made, cell);
      expect(from <= START + 130 && START + 130 < from + made.spanS / made.rows).toBe(true);
      expect(cellAt(made, START + 130)).toEqual(cell);
      expect(made.start % made.spanS).toBe(0);
    }
    expect([
      canFold(heat(), 60),
      canFold(map, 60),
      canFold(minute, 3600),
      canFold(heat({ columns: 9000, columnS: 7, values }), 60),
    ]).toEqual([false, true, false, false]);
  });

  it("places what was not recorded", () => {
    const map = heat({
      blind: [
        [START - 5, START + 1.5],
        [START + 4, START + 6],
        [START + 20, START + 30],
      ],
    });
    expect(columnsOf(map, map.blind)).toEqual([
      [0, 1.5],
      [4, 6],
    ]);
  });

  it("reads an answer", () => {
    const map = heatFrom({ header: { start: 5, column_s: 1, columns: 1, rows: 2 }, arrays: { values: [3, 4] } });
    expect([map.max, map.total, map.painted, map.cores]).toEqual([4, 7, null, null]);
    expect(() => heatFrom({ header: { start: 5, column_s: 1, columns: 0, rows: 2 }, arrays: {} })).toThrow("no values");
  });
});
