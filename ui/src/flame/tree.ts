// A flame graph as arrays, breadth first: node 0 is the root, a parent comes before its children, siblings come
// together, as the server answers in the order of name, as they are drawn the widest first (heavyFirst). All nodes of one depth are therefore one run of the arrays, from left to right, which
// is what drawing and hit-testing by binary search rely on.
//
// value = self + the children's values + what the server left out below (`lost`). In a difference every node also has the
// samples of the other window (`base`); `scale` is what one of those counts, as if both windows were equally long.

import type { FlamegraphHeader, Pruned } from "../api/types";

/** What the decoder of `application/vnd.zombiescope.columns` gives; only what is used here. */
export interface ColumnsLike<H> {
  readonly header: H;
  readonly arrays: Readonly<Record<string, ArrayLike<number>>>;
}

/** Functions by number; number 0 is the root. `name`, `module` and `kind` run in parallel. */
export interface FunctionTable {
  readonly name: readonly string[];
  readonly module: readonly (string | null)[];
  readonly kind: readonly string[];
}

export interface TreeArrays {
  readonly functions: FunctionTable;
  readonly fn: Uint32Array;
  readonly parent: Int32Array;
  readonly depth: Uint16Array;
  readonly value: Float64Array;
  readonly self: Float64Array;
  readonly base?: Float64Array | null;
  readonly baseSelf?: Float64Array | null;
  readonly scale?: number;
  readonly pruned?: Pruned;
  /** Samples of the whole recording; null where that is not known. */
  readonly recordingSamples?: number | null;
  readonly rates?: Rates | null;
  /** Whether it starts at the innermost frame. */
  readonly inverted?: boolean;
}

/** Of a difference: what a sample is a second, on each side. Windows are rarely equally long. */
export interface Rates {
  readonly here: number;
  readonly there: number;
  /** "cores" where the rate of sampling is known, else samples/s. */
  readonly unit: "cores" | "samples/s";
}

/** From the lengths of both windows, in seconds, and the rate of sampling. */
export function ratesOf(here_s: number, there_s: number, hz: number | null): Rates | null {
  if (!(here_s > 0 && there_s > 0)) return null;
  const each = hz || 1;
  return { here: 1 / (each * here_s), there: 1 / (each * there_s), unit: hz ? "cores" : "samples/s" };
}

export const NO_MODULE = 4294967295;
/** The kind of a frame that is not a function: it names the owner of the stacks above it. */
export const OWNER = "owner";
export const NOTHING_PRUNED: Pruned = { branches: 0, samples: 0, below_ratio: 0 };
const ROOT: readonly [string, null, string] = ["all", null, "root"];

export class FlameTree {
  readonly functions: FunctionTable;
  readonly fn: Uint32Array;
  readonly parent: Int32Array;
  readonly depth: Uint16Array;
  readonly value: Float64Array;
  readonly self: Float64Array;
  readonly base: Float64Array | null;
  readonly baseSelf: Float64Array | null;
  readonly scale: number;
  readonly pruned: Pruned;
  readonly recordingSamples: number | null;
  readonly rates: Rates | null;
  readonly inverted: boolean;
  /** Children of node n are firstChild[n] .. childEnd[n] - 1. */
  readonly firstChild: Uint32Array;
  readonly childEnd: Uint32Array;
  /** Nodes of depth d are levels[d] .. levels[d + 1] - 1. */
  readonly levels: Uint32Array;
  /** How wide a node is drawn; in a difference the mean of both sides, so that what vanished can be seen. */
  readonly width: Float64Array;

  constructor(made: TreeArrays) {
    this.functions = made.functions;
    this.fn = made.fn;
    this.parent = made.parent;
    this.depth = made.depth;
    this.value = made.value;
    this.self = made.self;
    this.base = made.base ?? null;
    this.baseSelf = made.baseSelf ?? null;
    this.scale = made.scale ?? (this.base ? scaleOf(made.value[0] ?? 0, this.base[0] ?? 0) : 0);
    this.pruned = made.pruned ?? NOTHING_PRUNED;
    this.recordingSamples = made.recordingSamples ?? null;
    this.rates = made.rates ?? null;
    this.inverted = made.inverted ?? false;
    [this.firstChild, this.childEnd] = families(this.parent);
    this.levels = levelStarts(this.depth);
    this.width = this.base ? mean(this.value, this.base, this.scale) : this.value;
  }

  /** The answer of `flamegraph`. */
  static from(columns: ColumnsLike<FlameHeader>, inverted = false, rates: Rates | null = null): FlameTree {
    const { header } = columns;
    const array = (name: string): ArrayLike<number> => {
      const found = columns.arrays[name];
      if (!found) throw new Error(`the flame graph has no column ${name}`);
      return found;
    };
    const [functions, fn] = functionsOf(header, array("name"), array("module"), array("kind"));
    const base = columns.arrays.base;
    return new FlameTree({
      functions,
      fn,
      parent: new Int32Array(array("parent")),
      depth: new Uint16Array(array("depth")),
      value: new Float64Array(array("value")),
      self: new Float64Array(array("self")),
      base: base ? new Float64Array(base) : null,
      baseSelf: base ? new Float64Array(array("base_self")) : null,
      ...(base && rates
        ? { scale: rates.there / rates.here, rates }
        : base && header.scale != null
          ? { scale: header.scale }
          : {}),
      pruned: header.pruned ?? NOTHING_PRUNED,
      recordingSamples: header.total_recording_samples ?? null,
      inverted,
    });
  }

  get count(): number {
    return this.fn.length;
  }
  /** Whether its first level says whose the stacks are. */
  get grouped(): boolean {
    return this.count > 1 && this.functions.kind[this.fn[1]!] === OWNER;
  }
  get total(): number {
    return this.value[0] ?? 0;
  }
  get baseTotal(): number {
    return this.base?.[0] ?? 0;
  }
  get depths(): number {
    return this.levels.length - 1;
  }
  get isDifference(): boolean {
    return this.base !== null;
  }

  name(node: number): string {
    return this.functions.name[this.fn[node]!] ?? "?";
  }
  /** As it is written on its bar: of a Python module's own code also which file that is. */
  label(node: number): string {
    return labelOf(this.name(node), this.module(node));
  }
  module(node: number): string | null {
    return this.functions.module[this.fn[node]!] ?? null;
  }
  kind(node: number): string {
    return this.functions.kind[this.fn[node]!] ?? "unknown";
  }

  /** How many samples more than expected: positive grew, negative shrank; 0 where nothing is compared. */
  delta(node: number): number {
    return this.base ? this.value[node]! - this.base[node]! * this.scale : 0;
  }

  /** Nodes from the root to this one, both included. */
  path(node: number): number[] {
    const nodes = [];
    for (let at = node; at >= 0; at = this.parent[at]!) nodes.push(at);
    return nodes.reverse();
  }

  /** The node that a path of names leads to, or the last one that still exists; node 0 for an empty path. */
  follow(names: readonly string[]): number {
    let at = 0;
    for (const name of names) {
      let next = -1;
      for (let child = this.firstChild[at]!; child < this.childEnd[at]!; child++) {
        if (this.name(child) === name) {
          next = child;
          break;
        }
      }
      if (next < 0) break;
      at = next;
    }
    return at;
  }

  /** Samples below each node that the server left out; they end at this node. */
  lost(): Float64Array {
    return unexplained(this, this.value, this.self);
  }
  baseLost(): Float64Array | null {
    return this.base && this.baseSelf ? unexplained(this, this.base, this.baseSelf) : null;
  }
}

/** What nodes are named from. */
export type Names = Pick<FlamegraphHeader, "names" | "modules" | "kinds">;
type FlameHeader = Names & Partial<Pick<FlamegraphHeader, "scale" | "pruned" | "total_recording_samples">>;

export function labelOf(name: string, module: string | null): string {
  return name === "<module>" && module ? `<module> ${module.replace(/^.*\//, "")}` : name;
}

/**
 * The same tree, siblings in the order of their width: the widest first, so that what matters is at the left of every
 * level. Breadth first as before.
 */
export function heavyFirst(tree: FlameTree): FlameTree {
  const order = new Uint32Array(tree.count);
  const parent = new Int32Array(tree.count);
  parent[0] = -1;
  let end = Math.min(1, tree.count);
  for (let at = 0; at < end; at++) {
    const node = order[at]!;
    const [first, last] = [tree.firstChild[node]!, tree.childEnd[node]!];
    const children: number[] = [];
    for (let child = first; child < last; child++) children.push(child);
    if (children.length > 1) children.sort((a, b) => tree.width[b]! - tree.width[a]! || a - b);
    for (const child of children) {
      parent[end] = at;
      order[end++] = child;
    }
  }
  const numbers = (values: Float64Array): Float64Array => Float64Array.from(order, (node) => values[node]!);
  return new FlameTree({
    functions: tree.functions,
    fn: Uint32Array.from(order, (node) => tree.fn[node]!),
    parent,
    depth: Uint16Array.from(order, (node) => tree.depth[node]!),
    value: numbers(tree.value),
    self: numbers(tree.self),
    base: tree.base && numbers(tree.base),
    baseSelf: tree.baseSelf && numbers(tree.baseSelf),
    scale: tree.scale,
    pruned: tree.pruned,
    recordingSamples: tree.recordingSamples,
    rates: tree.rates,
    inverted: tree.inverted,
  });
}

/** What a sample of the other window counts, as if that were as long as this one. */
export function scaleOf(total: number, baseTotal: number): number {
  if (!baseTotal) return 0;
  return total ? total / baseTotal : 1;
}

type Table = { name: string[]; module: (string | null)[]; kind: string[] };

/** Frames of the same name, module and kind are one function. Number 0 is kept for the root. */
export function functionsOf(
  header: Names,
  names: ArrayLike<number>,
  modules: ArrayLike<number>,
  kinds: ArrayLike<number>,
  rootFirst = true,
): [FunctionTable, Uint32Array] {
  const table: Table = { name: [ROOT[0]], module: [ROOT[1]], kind: [ROOT[2]] };
  const numbers = new Map<number, number>();
  const fn = new Uint32Array(names.length);
  const moduleCount = header.modules.length + 1;
  for (let node = rootFirst ? 1 : 0; node < names.length; node++) {
    const module = modules[node] === NO_MODULE ? moduleCount - 1 : modules[node]!;
    const key = (names[node]! * moduleCount + module) * 256 + kinds[node]!;
    let number = numbers.get(key);
    if (number === undefined) {
      number = table.name.length;
      numbers.set(key, number);
      table.name.push(header.names[names[node]!] ?? "?");
      table.module.push(header.modules[module] ?? null);
      table.kind.push(header.kinds[kinds[node]!] ?? "unknown");
    }
    fn[node] = number;
  }
  return [table, fn];
}

function families(parent: Int32Array): [Uint32Array, Uint32Array] {
  const first = new Uint32Array(parent.length),
    end = new Uint32Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    const above = parent[node]!;
    if (end[above] === 0) first[above] = node;
    end[above] = node + 1;
  }
  return [first, end];
}

function levelStarts(depth: Uint16Array): Uint32Array {
  const deepest = depth.length ? depth[depth.length - 1]! : -1;
  const starts = new Uint32Array(deepest + 2);
  for (let node = 0; node < depth.length; node++) starts[depth[node]! + 1] = node + 1;
  return starts;
}

function mean(value: Float64Array, base: Float64Array, scale: number): Float64Array {
  return value.map((here, node) => (here + base[node]! * scale) / 2);
}

function unexplained(tree: FlameTree, value: Float64Array, self: Float64Array): Float64Array {
  const lost = new Float64Array(value.length);
  for (let node = 0; node < value.length; node++) lost[node] = value[node]! - self[node]!;
  for (let node = 1; node < value.length; node++) lost[tree.parent[node]!]! -= value[node]!;
  // Sums of scaled halves may leave a rounding error, which is not a sample.
  for (let node = 0; node < value.length; node++) if (lost[node]! < 1e-6) lost[node] = 0;
  return lost;
}
