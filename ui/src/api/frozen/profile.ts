/** Answers about samples that a frozen page gives by itself: flame graph, heat map and chart. */

import { foldCounts } from "../../flame/fold";
import { packedTree } from "../../flame/pack";
import { NO_MODULE } from "../../flame/tree";
import { type Columns, decode, encode } from "../columns";
import { AnswerError, type Params } from "../source";
import type { Level, Span } from "../types";
import { groupedGraph } from "./owners";
import {
  type FrozenTable,
  functionsNamed,
  isExact,
  isFiltered,
  leafCounts,
  nodesWith,
  samplesOf,
  type Wanted,
  wanted,
} from "./table";

export function flamegraph<H>(table: FrozenTable, params: Params): Columns<H> {
  const asked = wanted(table, params);
  const inverted = params.invert === true || params.invert === 1 || params.invert === "1";
  // Only the whole is known exactly where samples were thinned, and only without their tasks: the groups that a page opens
  // with do not mean less to show. Others were requested.
  const exact = params.by === "program" && isExact(table, asked);
  const by = params.by && params.by !== "none" && !exact ? (params.by as Level) : null;
  // A window that came with the file has no tasks: what it is compared with is then shown without groups.
  const own = params.against ? ownSpan(table, String(params.against)) : null;
  if (by && (!params.against || own)) return groupedGraph<H>(table, by, asked, own, inverted);
  const base = params.against ? against(table, String(params.against), asked) : null;
  const tree = foldCounts(table, leafCounts(table, asked), base, inverted);
  return decode<H>(packedTree(tree));
}

/** The span of a comparison, if samples of it are in the file. */
function ownSpan(table: FrozenTable, text: string): Span | null {
  const [from, to] = text.split("..").map(Number);
  const span = { from: from ?? NaN, to: to ?? NaN };
  return table.held.some((held) => held.from < span.to && span.from < held.to) ? span : null;
}

function against(table: FrozenTable, text: string, asked: Wanted): Float64Array {
  const [from, to] = text.split("..").map(Number);
  const span: Span = { from: from ?? NaN, to: to ?? NaN };
  const given = table.baseSpan;
  if (table.base && given && Math.abs(given.from - span.from) < 0.01 && Math.abs(given.to - span.to) < 0.01) {
    if (isFiltered(asked))
      throw new AnswerError(
        404,
        "the window that this is compared with was frozen as a whole",
        "take the filters off, or open the recording: zombiescope serve DIR",
      );
    return Float64Array.from(table.base);
  }
  if (!table.held.some((held) => held.from < span.to && span.from < held.to))
    throw new AnswerError(
      404,
      "no sample of the other window is in this file",
      "open the recording itself: zombiescope serve DIR",
    );
  return leafCounts(table, { ...asked, range: span });
}

export function heatmap<H>(table: FrozenTable, params: Params): Columns<H> {
  const asked = wanted(table, params);
  const byCore = params.by === "core";
  const rows = Number(params.rows ?? 50);
  const { maps } = table;
  if (maps && !isFiltered(asked) && !params.paint && (byCore || rows === maps.rows))
    return exactMap<H>(table, asked.range, byCore);
  const range = asked.range ?? extent(table);
  const cores = byCore ? coresOf(table) : null;
  const start = Math.floor(range.from + 1e-6);
  const seconds = Math.max(1, Math.ceil(range.to - 1e-6) - start);
  const column_s = Math.max(1, Math.ceil(seconds / Number(params.columns ?? 20_000)));
  const columns = Math.ceil(seconds / column_s);
  const tall = cores ? Math.max(1, cores.length) : rows;
  const values = new Uint32Array(columns * tall);
  const marked = params.paint ? nodesWith(table, functionsNamed(table, String(params.paint))) : null;
  const painted = marked ? new Uint32Array(values.length) : null;
  const rowOf = new Map(cores?.map((cpu, row) => [cpu, row]));
  const spread = cores || column_s > 1 ? null : new Float32Array(values.length);
  let total = 0;
  let max = 0;
  for (const i of samplesOf(table, { ...asked, range })) {
    if (spread) spreadOver(spread, table.time[i]! - start, table.weight / table.hz, rows, table.weight);
    const offset = table.time[i]! - start + 1e-6;
    const row = cores ? rowOf.get(table.cpu[i]!) : Math.min(rows - 1, Math.floor((offset % 1) * rows));
    if (row === undefined) continue;
    const cell = Math.min(columns - 1, Math.floor(offset / column_s)) * tall + row;
    max = Math.max(max, (values[cell]! += table.weight));
    total += table.weight;
    if (painted && marked![table.leaf[i]!]) painted[cell]! += table.weight;
  }
  const scalars = {
    schema: "zombiescope.heatmap/1",
    start,
    column_s,
    columns,
    rows: tall,
    max,
    total,
    cores,
    blind: table.blind,
    left_out: leftOut(table, range),
  };
  return answer<H>(scalars, { values, ...(painted ? { painted } : {}), ...(spread ? { spread } : {}) });
}

/** Cut out of the map that was counted before samples were thinned. */
function exactMap<H>(table: FrozenTable, range: Span | null, byCore: boolean): Columns<H> {
  const maps = table.maps!;
  const rows = byCore ? maps.cores.length : maps.rows;
  const all = byCore ? maps.core : maps.subsecond;
  const first = range ? Math.max(0, Math.floor((range.from - maps.start) / maps.column_s + 1e-6)) : 0;
  const end = range ? Math.min(maps.columns, Math.ceil((range.to - maps.start) / maps.column_s - 1e-6)) : maps.columns;
  const values = Uint32Array.from(
    Array.prototype.slice.call(all, first * rows, Math.max(first, end) * rows) as number[],
  );
  const scalars = {
    schema: "zombiescope.heatmap/1",
    start: maps.start + first * maps.column_s,
    column_s: maps.column_s,
    columns: rows ? values.length / rows : 0,
    rows,
    max: values.reduce((most, each) => Math.max(most, each), 0),
    total: values.reduce((sum, each) => sum + each, 0),
    cores: byCore ? maps.cores : null,
    blind: table.blind,
    left_out: leftOut(table, range ?? extent(table)),
  };
  return answer<H>(scalars, { values });
}

/** The time around a sample that it represents, by the rows in which that lies: query/heatmap.py says why. */
function spreadOver(cells: Float32Array, at: number, period: number, rows: number, weight: number): void {
  const [low, high] = [(at - period / 2) * rows, (at + period / 2) * rows];
  for (let row = Math.floor(low); row < high; row++) {
    const part = (Math.min(high, row + 1) - Math.max(low, row)) / (high - low);
    cells[Math.min(cells.length - 1, Math.max(0, row))]! += part * weight;
  }
}

/** What was recorded and is not in the file. */
function leftOut(table: FrozenTable, range: Span): [number, number][] {
  const gaps: [number, number][] = [];
  let at = range.from;
  for (const { from, to } of table.held) {
    if (from > at) gaps.push([at, Math.min(from, range.to)]);
    at = Math.max(at, to);
  }
  if (at < range.to) gaps.push([at, range.to]);
  return gaps.filter(([from, to]) => to - from > 1 && from < range.to && to > range.from);
}

const GAP = 1.8;
const MOST_ROWS = 200_000;

export function flamechart<H>(table: FrozenTable, params: Params): Columns<H> {
  const asked = wanted(table, params);
  const range = asked.range ?? extent(table);
  const period = (table.weight || 1) / table.hz;
  const [name, depth, start, end, samples]: number[][] = [[], [], [], [], []];
  let open: { fn: number; row: number }[] = [];
  let last = -Infinity;
  let leftOff = 0;
  for (const i of samplesOf(table, { ...asked, range })) {
    const at = table.time[i]!;
    if (at - last > GAP * period) open = [];
    const stack: number[] = [];
    for (let node = table.leaf[i]!; node > 0; node = table.parent[node]!) stack.push(table.fn[node]!);
    stack.reverse();
    let same = 0;
    while (same < open.length && same < stack.length && open[same]!.fn === stack[same]) same++;
    for (const { row } of open) end![row] = at;
    open = open.slice(0, same);
    for (let level = same; level < stack.length; level++) {
      if (name!.length >= MOST_ROWS) {
        leftOff++;
        continue;
      }
      open.push({ fn: stack[level]!, row: name!.length });
      name!.push(stack[level]!);
      depth!.push(level);
      start!.push(at);
      end!.push(at);
      samples!.push(0);
    }
    for (const { row } of open) {
      end![row] = Math.min(range.to, at + period);
      samples![row]! += table.weight;
    }
    last = at;
  }
  const { functions } = table;
  const modules = [...new Set(functions.module)].filter((each) => each !== null);
  const kinds = [...new Set(functions.kind)];
  const moduleAt = new Map(modules.map((each, number) => [each, number]));
  const scalars = {
    schema: "zombiescope.flamechart/1",
    ...range,
    names: functions.name,
    modules,
    kinds,
    rows_left_off: leftOff,
  };
  return answer<H>(scalars, {
    name: Uint32Array.from(name!),
    module: Uint32Array.from(name!, (fn) => moduleAt.get(functions.module[fn] ?? "") ?? NO_MODULE),
    kind: Uint8Array.from(name!, (fn) => kinds.indexOf(functions.kind[fn]!)),
    depth: Uint16Array.from(depth!),
    start: Float64Array.from(start!),
    end: Float64Array.from(end!),
    samples: Uint32Array.from(samples!),
  });
}

function extent(table: FrozenTable): Span {
  return { from: Math.min(...table.held.map((each) => each.from)), to: Math.max(...table.held.map((each) => each.to)) };
}

function coresOf(table: FrozenTable): number[] {
  if (table.maps) return table.maps.cores;
  return [...new Set(Array.from(table.cpu))].filter((cpu) => cpu >= 0).sort((a, b) => a - b);
}

function answer<H>(scalars: Record<string, unknown>, arrays: Parameters<typeof encode>[1]): Columns<H> {
  return decode<H>(encode(scalars, arrays));
}
