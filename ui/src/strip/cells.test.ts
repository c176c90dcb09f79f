import { describe, expect, it } from "vitest";
import { MODES } from "../api/modes";
import type { Tick } from "../api/types";
import {
  advanced,
  averageIn,
  endOf,
  FULL,
  held,
  type Palette,
  paint,
  rowHeight,
  type Strip,
  shares,
  UNMEASURED,
  worstIn,
} from "./cells";

const PALETTE: Palette = {
  idle: [255, 255, 255],
  user: [0, 255, 0],
  system: [255, 0, 0],
  irq: [255, 0, 255],
  softirq: [255, 128, 0],
  steal: [128, 0, 255],
  iowait: [0, 0, 128],
};

function strip(columns: number, rows: number): Strip {
  const modes = Object.fromEntries(MODES.map((mode) => [mode, new Uint8Array(columns * rows)])) as Strip["modes"];
  const cpus = Array.from({ length: rows }, (_, row) => row * 2);
  return {
    from: 100,
    column_s: 1,
    columns,
    cpus,
    modes,
    average_busy: new Float32Array(columns),
    average_kernel: new Float32Array(columns),
  };
}

const pixel = (cells: Uint8ClampedArray, columns: number, x: number, y: number): number[] => [
  ...cells.subarray((y * columns + x) * 4, (y * columns + x) * 4 + 4),
];

describe("strip", () => {
  it("paints each core in the colour of what held it", () => {
    const one = strip(3, 2);
    one.modes.system[1 * 2 + 1] = FULL; // column 1, row 1
    one.modes.user[2 * 2 + 0] = FULL;
    const cells = paint(one, PALETTE);
    expect(pixel(cells, 3, 1, 1)).toEqual([255, 0, 0, 255]);
    expect(pixel(cells, 3, 2, 0)).toEqual([0, 255, 0, 255]);
    expect(pixel(cells, 3, 0, 0)).toEqual([255, 255, 255, 255]);
  });

  it("mixes hues as the modes share the time: a working core stays green, one that the kernel holds is red", () => {
    const one = strip(4, 1);
    [
      [230, 24],
      [127, 127],
      [50, 204],
      [10, 70],
    ].forEach(([user, system], column) => {
      one.modes.user[column] = user!;
      one.modes.system[column] = system!;
    });
    const cells = paint(one, PALETTE);
    expect(pixel(cells, 4, 0, 0)).toEqual([0, 255, 0, 255]);
    expect(pixel(cells, 4, 1, 0)).toEqual([63, 191, 0, 255]);
    expect(pixel(cells, 4, 2, 0)).toEqual([255, 0, 0, 255]);
    // The same hue, but a core that is mostly idle is pale.
    const [red, green, blue] = pixel(cells, 4, 3, 0);
    expect([red === 255, green! > 180, blue! > 180]).toEqual([true, true, true]);
  });

  it("leaves what was not measured open", () => {
    const one = strip(1, 2);
    for (const mode of MODES) one.modes[mode][0] = UNMEASURED;
    const cells = paint(one, PALETTE);
    expect(pixel(cells, 1, 0, 0)[3]).toBe(0);
    expect(pixel(cells, 1, 0, 1)[3]).toBe(255);
    expect(shares(one, 0, 0)).toBeNull();
  });

  it("shows the worst core where several share a pixel", () => {
    const one = strip(1, 1000);
    one.modes.system[777] = FULL;
    const cells = paint(one, PALETTE, 200);
    const red = Array.from({ length: 200 }, (_, y) => pixel(cells, 1, 0, y)).findIndex(([, green]) => green === 0);
    expect(red).toBe(Math.floor((777 * 200) / 1000));
  });

  it("knows the cores that were held all the time, unless everything was", () => {
    const one = strip(10, 4);
    one.modes.softirq[3 * 4 + 2] = 240;
    one.modes.system[5 * 4 + 1] = 200;
    expect(held(one)).toEqual([{ column: 3, row: 2, mode: "softirq" }]);
    const all = strip(1000, 4);
    all.modes.system.fill(FULL);
    expect(held(all)).toEqual([]);
  });

  it("finds the worst core: most in the kernel, then busiest", () => {
    const one = strip(10, 4);
    one.modes.user[4 * 4 + 1] = FULL;
    one.modes.system[6 * 4 + 3] = 130;
    one.modes.softirq[6 * 4 + 3] = 60;
    one.modes.system[7 * 4 + 2] = 180;
    const found = worstIn(one, { from: 100, to: 110 })!;
    expect([found.cpu, found.at]).toEqual([6, 106]);
    expect(found.shares.kernel).toBeCloseTo(190 / 254);
    expect(worstIn(one, { from: 100, to: 106 })!.cpu).toBe(2);
    expect(worstIn(one, { from: 500, to: 510 })).toBeNull();
  });

  it("averages only what was measured", () => {
    const one = strip(4, 1);
    one.average_busy.set([0.5, NaN, 0.1, 0.9]);
    expect(averageIn(one, { from: 100, to: 103 })!.busy).toBeCloseTo(0.3);
    expect(averageIn(one, { from: 101, to: 102 })).toBeNull();
  });

  it("gives 192 cores whole pixels, and few cores no more than they need", () => {
    expect(rowHeight(192, 200)).toBe(1);
    expect(rowHeight(96, 200)).toBe(2);
    expect(rowHeight(2, 200)).toBe(24);
    expect(rowHeight(800, 200)).toBe(0.25);
  });

  it("moves on with a tick, keeps its length, and leaves a hole where ticks were lost", () => {
    const one = strip(3, 1);
    one.modes.user[2] = 7;
    const tick = {
      at: 105.02,
      interval_s: 1,
      cpus: [0],
      user: [1],
      system: [0],
      irq: [0],
      softirq: [0],
      steal: [0],
      iowait: [null],
      average_busy: 0.5,
      average_kernel: null,
      dying: null,
      total: null,
      hz_samples: null,
    } satisfies Tick;
    const next = advanced(one, tick, 3)!;
    expect([next.from, next.columns, endOf(next)]).toEqual([102, 3, 105]);
    expect([...next.modes.user]).toEqual([7, UNMEASURED, FULL]);
    expect(next.modes.iowait[2]).toBe(UNMEASURED);
    expect(next.average_busy[2]).toBe(0.5);
    expect(advanced(one, { ...tick, at: 100.2 }, 3)).toBeNull();
    expect(advanced(one, { ...tick, cpus: [0, 1] }, 3)).toBeNull();
    // A column that is there already takes the tick.
    const filled = advanced(one, { ...tick, at: 102.01 }, 3)!;
    expect([filled.from, [...filled.modes.user]]).toEqual([100, [0, FULL, 7]]);
  });
});
