// Cells of a heat map and moments of time.
//
// A sub-second map has a column for each second and a row for each part of it; row 0 is the start of the second and is
// drawn at the bottom. Folded differently (`folded`), a column is a minute or an hour. Where a column holds several
// spans, or a row is a core, only whole columns mean a range. A selection from cell to cell is therefore a staircase
// where cells have their own time, and a rectangle elsewhere.

import type { HeatmapHeader, Span } from "../api/types";
import type { ColumnsLike } from "../flame/tree";

export type Range = Readonly<Span>;

export interface Cell {
  readonly column: number;
  readonly row: number;
}

type HeatHeader = Pick<HeatmapHeader, "start" | "column_s" | "columns" | "rows"> &
  Partial<Pick<HeatmapHeader, "max" | "total" | "cores" | "blind">> & {
    /** In a file: spans that were recorded and are not in it. */
    left_out?: readonly (readonly [number, number])[];
  };

export interface HeatData {
  readonly start: number;
  readonly columnS: number;
  /** What the rows of a column are parts of: a second, a minute or an hour. */
  readonly spanS: number;
  readonly columns: number;
  readonly rows: number;
  readonly max: number;
  readonly total: number;
  /** What the rows are, if not parts of a second. */
  readonly cores: readonly number[] | null;
  readonly blind: readonly (readonly [number, number])[];
  readonly leftOut: readonly (readonly [number, number])[];
  /** values[column * rows + row] */
  readonly values: Uint32Array;
  /** Of them, those in which a wanted function was running; null while nothing is searched. */
  readonly painted: Uint32Array | null;
  /** The same samples by exact time, which is what is drawn: counts would have false stripes. Null: not known. */
  readonly spread: Float32Array | null;
}

/** The answer of `heatmap`. */
export function heatFrom(columns: ColumnsLike<HeatHeader>): HeatData {
  const { header } = columns;
  const values = columns.arrays.values;
  if (!values) throw new Error("the heat map has no values");
  const painted = columns.arrays.painted;
  const found = new Uint32Array(values);
  return {
    start: header.start,
    columnS: header.column_s,
    spanS: 1,
    columns: header.columns,
    rows: header.rows,
    max: header.max ?? maximum(found),
    total: header.total ?? sum(found),
    cores: header.cores ?? null,
    blind: header.blind ?? [],
    leftOut: header.left_out ?? [],
    values: found,
    spread: columns.arrays.spread ? new Float32Array(columns.arrays.spread) : null,
    painted: painted ? new Uint32Array(painted) : null,
  };
}

/** The same counts in at most so many columns, because neighbours are added up. */
export function narrowed(heat: HeatData, most: number): HeatData {
  const by = Math.ceil(heat.columns / Math.max(1, Math.floor(most)));
  if (by <= 1) return heat;
  const columns = Math.ceil(heat.columns / by);
  const together = <T extends Uint32Array | Float32Array>(values: T): T => {
    const sums = new (values.constructor as new (length: number) => T)(columns * heat.rows);
    for (let column = 0; column < heat.columns; column++) {
      const at = Math.floor(column / by) * heat.rows;
      for (let row = 0; row < heat.rows; row++) sums[at + row]! += values[column * heat.rows + row]!;
    }
    return sums;
  };
  const values = together(heat.values);
  return {
    ...heat,
    columns,
    columnS: heat.columnS * by,
    values,
    max: maximum(values),
    painted: heat.painted ? together(heat.painted) : null,
    spread: heat.spread ? together(heat.spread) : null,
  };
}

/** Whether columns of this length can be made of these: whole ones, and enough of them to be a picture. */
export function canFold(heat: HeatData, spanS: number): boolean {
  if (heat.cores || heat.spanS !== 1) return false;
  const rows = spanS / heat.columnS;
  return (
    Math.abs(rows - Math.round(rows)) < 1e-9 && rows >= 10 && rows <= 3600 && heat.columns * heat.columnS >= 2 * spanS
  );
}

/** The same samples with a column for each minute or hour, and a row for each column of before. */
export function folded(heat: HeatData, spanS: number): HeatData {
  if (!canFold(heat, spanS)) return heat;
  // An hour of seconds has more rows than a picture has lines: neighbours are added up, equally many each.
  const each = Math.round(spanS / heat.columnS),
    by = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60].find((step) => each % step === 0 && each / step <= 120) ?? each;
  const rows = each / by,
    start = Math.floor(heat.start / spanS) * spanS;
  const skipped = Math.round((heat.start - start) / heat.columnS),
    columns = Math.ceil((skipped + heat.columns) / each);
  const together = <T extends Uint32Array | Float32Array>(values: T): T => {
    const sums = new (values.constructor as new (length: number) => T)(columns * rows);
    for (let column = 0; column < heat.columns; column++) {
      const cell = Math.floor((column + skipped) / by);
      for (let row = 0; row < heat.rows; row++) sums[cell]! += values[column * heat.rows + row]!;
    }
    return sums;
  };
  const values = together(heat.values);
  return {
    ...heat,
    start,
    spanS,
    columnS: spanS,
    columns,
    rows,
    values,
    max: maximum(values),
    painted: heat.painted ? together(heat.painted) : null,
    spread: heat.spread ? together(heat.spread) : null,
  };
}

/** Whether a cell has its own time, not only that of its column. */
export function isFine(heat: HeatData): boolean {
  return heat.cores === null && Math.abs(heat.columnS - heat.spanS) < 1e-9;
}

export function endOf(heat: HeatData): number {
  return heat.start + heat.columns * heat.columnS;
}

/** When a cell begins. Rounded to a microsecond, so that neighbours meet. */
export function timeOf(heat: HeatData, cell: Cell): number {
  return micro(heat.start + cell.column * heat.columnS + (isFine(heat) ? (cell.row * heat.spanS) / heat.rows : 0));
}

export function cellSeconds(heat: HeatData): number {
  return isFine(heat) ? heat.spanS / heat.rows : heat.columnS;
}

export function rangeOf(heat: HeatData, cell: Cell): Range {
  const from = timeOf(heat, cell);
  return { from, to: micro(from + cellSeconds(heat)) };
}

/** The whole column of a cell. */
export function columnRange(heat: HeatData, cell: Cell): Range {
  const from = micro(heat.start + cell.column * heat.columnS);
  return { from, to: micro(from + heat.columnS) };
}

/** From cell to cell, in either direction, both included. */
export function between(heat: HeatData, one: Cell, other: Cell): Range {
  const [a, b] = [rangeOf(heat, one), rangeOf(heat, other)];
  return { from: Math.min(a.from, b.from), to: Math.max(a.to, b.to) };
}

/** The cell in which a moment lies; clamped to the map. */
export function cellAt(heat: HeatData, time: number): Cell {
  const offset = time - heat.start + 1e-6;
  const column = Math.floor(offset / heat.columnS);
  if (column < 0) return { column: 0, row: 0 };
  if (column >= heat.columns) return { column: Math.max(0, heat.columns - 1), row: heat.rows - 1 };
  const row = isFine(heat) ? Math.floor(((offset - column * heat.columnS) * heat.rows) / heat.spanS) : 0;
  return { column, row: Math.min(heat.rows - 1, Math.max(0, row)) };
}

/** Cells of a range as numbers column * rows + row, [first, end): on a coarse map whole columns. */
export function cellsOf(heat: HeatData, range: Range): readonly [number, number] {
  const unit = cellSeconds(heat),
    each = isFine(heat) ? 1 : heat.rows;
  const most = heat.columns * heat.rows;
  const number = (time: number, round: (x: number) => number): number =>
    Math.min(most, Math.max(0, round((time - heat.start) / unit) * each));
  return [number(range.from, (x) => Math.floor(x + 1e-4)), number(range.to, (x) => Math.ceil(x - 1e-4))];
}

/** Samples of a range, by cell. */
export function samplesIn(heat: HeatData, range: Range): number {
  const [first, end] = cellsOf(heat, range);
  return sum(heat.values.subarray(first, end));
}

/** The range moved by its own length, kept on the map. */
export function stepped(heat: HeatData, range: Range, direction: 1 | -1): Range {
  const length = range.to - range.from,
    last = Math.max(heat.start, endOf(heat) - length);
  const from = micro(Math.min(last, Math.max(heat.start, range.from + direction * length)));
  return { from, to: micro(from + length) };
}

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
  Home: [-1e9, 0],
  End: [1e9, 0],
};

/** Where a key leads from a cell; null for other keys. Time continues: above the last part of a second is the first of the
 * next. Cores are listed from the top. */
export function moved(heat: HeatData, from: Cell, key: string): Cell | null {
  const move = MOVES[key];
  if (!move) return null;
  let column = from.column + move[0],
    row = from.row + (heat.cores ? -move[1] : move[1]);
  if (isFine(heat) && row >= heat.rows && column < heat.columns - 1) {
    column++;
    row = 0;
  }
  if (isFine(heat) && row < 0 && column > 0) {
    column--;
    row = heat.rows - 1;
  }
  return { column: Math.min(heat.columns - 1, Math.max(0, column)), row: Math.min(heat.rows - 1, Math.max(0, row)) };
}

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** At most three rectangles, in cells (y counts from the top), that cover a range of cells column by column: the end of
 * the first column, the columns between, the start of the last. */
export function staircase(heat: HeatData, first: number, end: number): Rectangle[] {
  if (end <= first) return [];
  const { rows } = heat,
    last = end - 1;
  const [c0, c1] = [Math.floor(first / rows), Math.floor(last / rows)],
    [r0, r1] = [first % rows, last % rows];
  const column = (x: number, low: number, high: number): Rectangle => ({
    x,
    y: rows - 1 - high,
    w: 1,
    h: high - low + 1,
  });
  if (c0 === c1) return [column(c0, r0, r1)];
  const found: Rectangle[] = [];
  const from = r0 === 0 ? c0 : c0 + 1,
    to = r1 === rows - 1 ? c1 : c1 - 1;
  if (from !== c0) found.push(column(c0, r0, rows - 1));
  if (to >= from) found.push({ x: from, y: 0, w: to - from + 1, h: rows });
  if (to !== c1) found.push(column(c1, 0, r1));
  return found;
}

/** Columns, as parts of one, of spans such as those that were not recorded. */
export function columnsOf(
  heat: HeatData,
  spans: readonly (readonly [number, number])[],
): (readonly [number, number])[] {
  const place = (time: number): number => Math.min(heat.columns, Math.max(0, (time - heat.start) / heat.columnS));
  return spans.map(([from, to]) => [place(from), place(to)] as const).filter(([from, to]) => to > from);
}

function micro(time: number): number {
  return Math.round(time * 1e6) / 1e6;
}

/** What a picture is drawn from. */
export function shadesOf(heat: HeatData): Uint32Array | Float32Array {
  return heat.spread ?? heat.values;
}

function maximum(values: Uint32Array): number {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

function sum(values: Uint32Array): number {
  let all = 0;
  for (const value of values) all += value;
  return all;
}
