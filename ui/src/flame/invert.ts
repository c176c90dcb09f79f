// From the inside out: the inverted tree, and both halves of the sandwich around one function.
//
// A stack has as many suffixes as frames, so an inverted tree may be many times larger than the tree. It is grown level
// by level, and a branch narrower than `below` of all is given up there and counted, as the server does.

import { Grower, like } from "./grow";
import { type FunctionKey, focus, maskOf } from "./transforms";
import type { FlameTree, FunctionTable } from "./tree";

export const LEFT_OUT = "[left out: too narrow]";
const VISIBLE_RATIO = 1 / 20_000;

export interface InvertOptions {
  /** 1 for functions that only look hot as leaves; their samples are charged to their callers. */
  readonly skid?: Uint8Array;
  readonly below?: number;
}

/** The same samples, starting where the time was spent. What the server left out starts at a frame that says so. */
export function inverted(tree: FlameTree, { skid, below = VISIBLE_RATIO }: InvertOptions = {}): FlameTree {
  const lost = tree.lost(),
    baseLost = tree.baseLost();
  const leftOut = tree.functions.name.length;
  const ends = new Ends(tree.count);
  for (let node = 0; node < tree.count; node++) {
    const self = tree.self[node]!,
      baseSelf = tree.baseSelf?.[node] ?? 0;
    if (self || baseSelf) ends.push(withoutSkid(tree, node, skid), self, baseSelf);
  }
  const explained = ends.count;
  for (let node = 0; node < tree.count; node++) {
    const samples = lost[node]!,
      base = baseLost?.[node] ?? 0;
    if (samples || base) ends.push(node, samples, base);
  }
  const grower = new Grower(withFunction(tree.functions, LEFT_OUT)),
    first = new Int32Array(ends.count);
  // Whose the stacks are stays the root: each owner begins where its time was spent.
  if (tree.grouped)
    for (let item = 0; item < ends.count; item++) {
      const owner = ownerOf(tree, ends.node[item]!);
      if (owner > 0) first[item] = grower.child(0, tree.fn[owner]!);
    }
  for (let item = explained; item < ends.count; item++) first[item] = grower.child(first[item]!, leftOut);
  return climb(tree, ends, first, grower, below, tree.grouped ? 1 : 0);
}

function ownerOf(tree: FlameTree, node: number): number {
  let at = node;
  while (tree.depth[at]! > 1) at = tree.parent[at]!;
  return at;
}

/** Who calls the function, innermost first: the root's only child is the function itself. */
export function callers(tree: FlameTree, key: FunctionKey, below = VISIBLE_RATIO): FlameTree {
  const wanted = maskOf(tree.functions, key);
  const inside = new Uint8Array(tree.count),
    ends = new Ends(0);
  for (let node = 1; node < tree.count; node++) {
    if (inside[tree.parent[node]!]) inside[node] = 1;
    else if (wanted[tree.fn[node]!]) {
      inside[node] = 1;
      ends.push(node, tree.value[node]!, tree.base?.[node] ?? 0);
    }
  }
  return climb(tree, ends, new Int32Array(ends.count), new Grower(tree.functions), below);
}

/** What the function calls: the root's only child is the function itself. */
export function callees(tree: FlameTree, key: FunctionKey): FlameTree {
  return focus(tree, maskOf(tree.functions, key));
}

/** Samples and where they end, growing. */
class Ends {
  node: Int32Array;
  value: Float64Array;
  base: Float64Array;
  count = 0;

  constructor(room: number) {
    this.node = new Int32Array(Math.max(16, room));
    this.value = new Float64Array(this.node.length);
    this.base = new Float64Array(this.node.length);
  }

  push(node: number, value: number, base: number): void {
    if (this.count === this.node.length) this.widen();
    this.node[this.count] = node;
    this.value[this.count] = value;
    this.base[this.count++] = base;
  }

  private widen(): void {
    const { node, value, base } = this;
    this.node = new Int32Array(node.length * 2);
    this.value = new Float64Array(node.length * 2);
    this.base = new Float64Array(node.length * 2);
    this.node.set(node);
    this.value.set(value);
    this.base.set(base);
  }
}

// Every item is on a node of the tree and has a place in the new one; each round moves all of them to their callers.
function climb(tree: FlameTree, ends: Ends, place: Int32Array, grower: Grower, below: number, until = 0): FlameTree {
  let all = 0,
    baseAll = 0;
  for (let item = 0; item < ends.count; item++) {
    all += ends.value[item]!;
    baseAll += ends.base[item]!;
  }
  const least = below * all,
    baseLeast = below * baseAll;
  let alive = Array.from({ length: ends.count }, (_, item) => item);
  const node = ends.node.slice(0, ends.count);
  let branches = 0,
    samples = 0;
  while (alive.length) {
    const from = grower.size,
      next: number[] = [];
    for (const item of alive) {
      if (node[item]! <= 0 || tree.depth[node[item]!]! <= until) {
        grower.add(place[item]!, ends.value[item]!, 0, ends.base[item]!, 0);
        continue;
      }
      place[item] = grower.child(place[item]!, tree.fn[node[item]!]!);
      next.push(item);
    }
    const value = new Float64Array(grower.size - from),
      base = new Float64Array(grower.size - from);
    for (const item of next) {
      value[place[item]! - from]! += ends.value[item]!;
      base[place[item]! - from]! += ends.base[item]!;
    }
    const isNarrow = (at: number): boolean => (value[at]! < least || !all) && (base[at]! < baseLeast || !baseAll);
    for (let at = 0; at < value.length; at++) if (isNarrow(at)) branches++;
    alive = [];
    for (const item of next) {
      if (isNarrow(place[item]! - from)) {
        samples += ends.value[item]!;
        grower.add(grower.parentOf(place[item]!), 0, ends.value[item]!, 0, ends.base[item]!);
        continue;
      }
      node[item] = tree.parent[node[item]!]!;
      alive.push(item);
    }
  }
  const pruned = {
    branches: tree.pruned.branches + branches,
    samples: tree.pruned.samples + samples,
    below_ratio: Math.max(tree.pruned.below_ratio, branches ? below : 0),
  };
  return grower.finish({ ...like(tree), pruned, inverted: true });
}

function withoutSkid(tree: FlameTree, node: number, skid: Uint8Array | undefined): number {
  if (!skid) return node;
  let at = node;
  while (skid[tree.fn[at]!] && tree.depth[at]! > 1) at = tree.parent[at]!;
  return at;
}

function withFunction(functions: FunctionTable, name: string): FunctionTable {
  return { name: [...functions.name, name], module: [...functions.module, null], kind: [...functions.kind, "unknown"] };
}
