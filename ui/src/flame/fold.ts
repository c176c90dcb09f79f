// A frozen page has no server to ask: it carries the samples and the tree of their stacks, and folds any range by itself.
// Pure; the same table gives the flame graph, its inversion, a difference of two ranges, the chart and the heat map.

import { type ChartData, chartFrom } from "./chart-data";
import { Grower } from "./grow";
import { type FlameTree, type FunctionTable, type Pruned, scaleOf } from "./tree";

/** Samples in the order of time. Stacks are nodes of a tree whose parents stand before their children; node 0 is its
 * root and every other has a function. */
export interface SampleTable {
  /** Unix seconds. */
  readonly time: ArrayLike<number>;
  /** The node in which each sample's stack ends. */
  readonly leaf: ArrayLike<number>;
  readonly cpu: ArrayLike<number> | null;
  readonly parent: ArrayLike<number>;
  /** Of each node; that of node 0 is 0. */
  readonly fn: ArrayLike<number>;
  readonly functions: FunctionTable;
  /** How many samples of the recording one in the table stands for. */
  readonly weight: number;
  /** 1 for functions that only look hot as leaves. */
  readonly skid?: Uint8Array;
  readonly pruned?: Pruned;
  readonly recordingSamples?: number;
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface FoldOptions {
  readonly range?: Range | null;
  readonly against?: Range | null;
  readonly cpus?: readonly number[] | null;
  readonly inverted?: boolean;
}

/** Rounded to a microsecond: a range that ends where another begins shares no sample with it. */
const EPSILON_S = 1e-6;

/** Samples that end in each node of the table's tree. */
export function leafCounts(table: SampleTable, range: Range | null, cpus?: readonly number[] | null): Float64Array {
  const counts = new Float64Array(table.parent.length);
  const wanted = cpus?.length ? new Set(cpus) : null;
  const first = range ? lowerBound(table.time, range.from - EPSILON_S) : 0;
  const end = range ? lowerBound(table.time, range.to - EPSILON_S) : table.time.length;
  for (let i = first; i < end; i++) {
    if (wanted && !wanted.has(table.cpu?.[i] ?? -1)) continue;
    counts[table.leaf[i]!]! += table.weight;
  }
  return counts;
}

export function foldSamples(table: SampleTable, options: FoldOptions = {}): FlameTree {
  const counts = leafCounts(table, options.range ?? null, options.cpus);
  const base = options.against ? leafCounts(table, options.against, options.cpus) : null;
  return foldCounts(table, counts, base, options.inverted ?? false);
}

/** The tree of samples that are counted already; `base` counts those of the other range. */
export function foldCounts(
  table: SampleTable,
  counts: Float64Array,
  base: Float64Array | null,
  inverted = false,
): FlameTree {
  const grower = new Grower(table.functions);
  if (inverted) growInverted(table, grower, counts, base);
  else growUpright(table, grower, counts, base);
  return grower.finish({
    compared: base !== null,
    inverted,
    ...(base ? { scale: scaleOf(sum(counts), sum(base)) } : {}),
    ...(table.pruned ? { pruned: table.pruned } : {}),
    recordingSamples: table.recordingSamples ?? null,
  });
}

// Only branches in which something ended are grown: nodes of a table are those of the whole recording.
function growUpright(table: SampleTable, grower: Grower, counts: Float64Array, base: Float64Array | null): void {
  const used = new Uint8Array(counts.length),
    place = new Int32Array(counts.length);
  for (let node = counts.length - 1; node > 0; node--) {
    if (counts[node] || base?.[node]) used[node] = 1;
    if (used[node]) used[table.parent[node]!] = 1;
  }
  for (let node = 0; node < counts.length; node++) {
    if (node && !used[node]) continue;
    place[node] = node ? grower.child(place[table.parent[node]!]!, table.fn[node]!) : 0;
    grower.add(place[node]!, counts[node]!, 0, base?.[node] ?? 0);
  }
}

function growInverted(table: SampleTable, grower: Grower, counts: Float64Array, base: Float64Array | null): void {
  for (let leaf = 0; leaf < counts.length; leaf++) {
    if (!counts[leaf] && !base?.[leaf]) continue;
    let at = 0,
      from = leaf;
    while (table.skid?.[table.fn[from]!] && table.parent[from]! > 0) from = table.parent[from]!;
    for (let node = from; node > 0; node = table.parent[node]!) at = grower.child(at, table.fn[node]!);
    grower.add(at, counts[leaf]!, 0, base?.[leaf] ?? 0);
  }
}

/** The chart of one core: consecutive samples are one bar while the frame at that depth stays the same. A gap longer
 * than `gap_s` ends everything, because the core idled. */
export function foldChart(table: SampleTable, range: Range, cpu: number | null, gap_s: number): ChartData {
  const name: number[] = [],
    depth: number[] = [],
    start: number[] = [],
    end: number[] = [],
    samples: number[] = [];
  let open: { fn: number; row: number }[] = [],
    last = -Infinity;
  const until = lowerBound(table.time, range.to - EPSILON_S);
  for (let i = lowerBound(table.time, range.from - EPSILON_S); i < until; i++) {
    if (cpu !== null && table.cpu?.[i] !== cpu) continue;
    const at = table.time[i]!;
    if (at - last > gap_s) open = [];
    const stack: number[] = [];
    for (let node = table.leaf[i]!; node > 0; node = table.parent[node]!) stack.push(table.fn[node]!);
    stack.reverse();
    let same = 0;
    while (same < open.length && same < stack.length && open[same]!.fn === stack[same]) same++;
    for (const gone of open.slice(same)) end[gone.row] = Math.min(at, last + gap_s);
    open = open.slice(0, same);
    for (let level = same; level < stack.length; level++) {
      open.push({ fn: stack[level]!, row: name.length });
      name.push(stack[level]!);
      depth.push(level);
      start.push(at);
      end.push(at);
      samples.push(0);
    }
    for (const { row } of open) {
      end[row] = Math.min(range.to, at + gap_s / 2);
      samples[row]! += table.weight;
    }
    last = at;
  }
  const numbers = table.functions.name.map((_, number) => number);
  const { functions } = table,
    modules = [...new Set(functions.module.filter((each) => each !== null))];
  const kinds = [...new Set(functions.kind)];
  const moduleOf = new Map(modules.map((each, number) => [each, number])),
    kindOf = new Map(kinds.map((each, number) => [each, number]));
  const pick = (of: (fn: number) => number): Uint32Array => Uint32Array.from(name, of);
  return chartFrom({
    header: { names: functions.name, modules, kinds, from: range.from, to: range.to },
    arrays: {
      name: pick((fn) => numbers[fn]!),
      module: pick((fn) => moduleOf.get(functions.module[fn] ?? "") ?? 4294967295),
      kind: pick((fn) => kindOf.get(functions.kind[fn]!) ?? 0),
      depth,
      start,
      end,
      samples,
    },
  });
}

/** Counts of a sub-second heat map over whole seconds, column by column, and of samples with a wanted function. */
export function foldHeat(
  table: SampleTable,
  range: Range,
  rows: number,
  painted?: Uint8Array,
): { start: number; columns: number; values: Uint32Array; painted: Uint32Array | null; max: number; total: number } {
  const start = Math.floor(range.from + EPSILON_S),
    columns = Math.max(0, Math.ceil(range.to - EPSILON_S) - start);
  const values = new Uint32Array(columns * rows),
    hits = painted ? new Uint32Array(columns * rows) : null;
  const isHit = painted ? nodesWith(table, painted) : null;
  const end = lowerBound(table.time, range.to - EPSILON_S);
  let max = 0,
    total = 0;
  for (let i = lowerBound(table.time, range.from - EPSILON_S); i < end; i++) {
    const offset = table.time[i]! - start,
      column = Math.floor(offset + EPSILON_S);
    const row = Math.min(rows - 1, Math.max(0, Math.floor((offset - column + EPSILON_S) * rows)));
    const cell = column * rows + row;
    values[cell]! += table.weight;
    if (hits && isHit![table.leaf[i]!]) hits[cell]! += table.weight;
    max = Math.max(max, values[cell]!);
    total += table.weight;
  }
  return { start, columns, values, painted: hits, max, total };
}

/** 1 for nodes that are, or are below, a wanted function. */
function nodesWith(table: SampleTable, wanted: Uint8Array): Uint8Array {
  const found = new Uint8Array(table.parent.length);
  for (let node = 1; node < found.length; node++)
    found[node] = wanted[table.fn[node]!] || found[table.parent[node]!] ? 1 : 0;
  return found;
}

function lowerBound(sorted: ArrayLike<number>, wanted: number): number {
  let low = 0,
    high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

function sum(numbers: Float64Array): number {
  return numbers.reduce((all, each) => all + each, 0);
}
