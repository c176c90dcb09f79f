// A frozen page has no server to ask: it carries the samples and the tree of their stacks, and folds them by itself. Pure;
// which samples a question is about is for api/frozen to say.

import type { Pruned } from "../api/types";
import { Grower } from "./grow";
import { type FlameTree, type FunctionTable, scaleOf } from "./tree";

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
  /** How many samples of the recording one in the table represents. */
  readonly weight: number;
  /** 1 for functions that only look hot as leaves. */
  readonly skid?: Uint8Array;
  readonly pruned?: Pruned;
  readonly recordingSamples?: number;
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

function sum(numbers: Float64Array): number {
  return numbers.reduce((all, each) => all + each, 0);
}
