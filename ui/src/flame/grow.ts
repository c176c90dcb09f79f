// Growing a new tree node by node, and putting it in the order that FlameTree asks for. Every transform, the fold of a
// sample table and the sandwich end here, so all of them keep the same sums.

import { FlameTree, type FunctionTable, type TreeArrays } from "./tree";

export class Grower {
  private fn: Int32Array = new Int32Array(1024);
  private parent: Int32Array = new Int32Array(1024);
  private ending = new Float64Array(4 * 1024);
  private slots = new Int32Array(4096).fill(-1);
  private count = 1;

  constructor(readonly functions: FunctionTable) {
    this.parent[0] = -1;
  }

  get size(): number {
    return this.count;
  }
  functionOf(node: number): number {
    return this.fn[node]!;
  }
  parentOf(node: number): number {
    return this.parent[node]!;
  }

  /** The child of this node for a function; made if there is none. */
  child(parent: number, fn: number): number {
    const mask = this.slots.length - 1;
    let slot = hash(parent, fn) & mask;
    for (;;) {
      const node = this.slots[slot]!;
      if (node < 0) break;
      if (this.parent[node] === parent && this.fn[node] === fn) return node;
      slot = (slot + 1) & mask;
    }
    const node = this.count++;
    if (node >= this.fn.length) this.widen();
    this.fn[node] = fn;
    this.parent[node] = parent;
    this.slots[slot] = node;
    if (this.count * 2 > this.slots.length) this.rehash();
    return node;
  }

  /** Samples end here. */
  add(node: number, self: number, lost = 0, baseSelf = 0, baseLost = 0): void {
    const at = 4 * node;
    this.ending[at]! += self;
    this.ending[at + 1]! += lost;
    this.ending[at + 2]! += baseSelf;
    this.ending[at + 3]! += baseLost;
  }

  /** The tree; nodes without a sample on either side are left out. `like` says what is not counted here. */
  finish(
    like: Pick<TreeArrays, "scale" | "pruned" | "recordingSamples" | "rates" | "inverted"> & { compared: boolean },
  ): FlameTree {
    const value = this.totals(0),
      base = this.totals(2);
    const order = this.breadthFirst(value, base);
    const count = order.length,
      place = new Int32Array(this.count).fill(-1);
    order.forEach((node, at) => {
      place[node] = at;
    });
    const made = {
      fn: new Uint32Array(count),
      parent: new Int32Array(count),
      depth: new Uint16Array(count),
      value: new Float64Array(count),
      self: new Float64Array(count),
      base: like.compared ? new Float64Array(count) : null,
      baseSelf: like.compared ? new Float64Array(count) : null,
    };
    order.forEach((node, at) => {
      made.fn[at] = this.fn[node]!;
      const parent = node ? place[this.parent[node]!]! : -1;
      made.parent[at] = parent;
      made.depth[at] = parent < 0 ? 0 : made.depth[parent]! + 1;
      made.value[at] = value[node]!;
      made.self[at] = this.ending[4 * node]!;
      if (made.base && made.baseSelf) {
        made.base[at] = base[node]!;
        made.baseSelf[at] = this.ending[4 * node + 2]!;
      }
    });
    const { scale, pruned, recordingSamples, rates, inverted } = like;
    return new FlameTree({
      functions: this.functions,
      ...made,
      ...(scale === undefined ? {} : { scale }),
      ...(pruned ? { pruned } : {}),
      recordingSamples: recordingSamples ?? null,
      rates: rates ?? null,
      inverted: inverted ?? false,
    });
  }

  // A parent is made before its children, so adding up from the last to the first gives every total.
  private totals(side: 0 | 2): Float64Array {
    const sums = new Float64Array(this.count);
    for (let node = this.count - 1; node >= 0; node--) {
      sums[node]! += this.ending[4 * node + side]! + this.ending[4 * node + side + 1]!;
      if (node) sums[this.parent[node]!]! += sums[node]!;
    }
    return sums;
  }

  private breadthFirst(value: Float64Array, base: Float64Array): number[] {
    const rank = ranks(this.functions);
    const first = new Int32Array(this.count).fill(-1),
      next = new Int32Array(this.count).fill(-1);
    for (let node = this.count - 1; node > 0; node--) {
      if (!value[node] && !base[node]) continue;
      next[node] = first[this.parent[node]!]!;
      first[this.parent[node]!] = node;
    }
    const order = [0];
    for (let at = 0; at < order.length; at++) {
      const start = order.length;
      for (let child = first[order[at]!]!; child >= 0; child = next[child]!) order.push(child);
      if (order.length - start > 1) {
        const siblings = order.slice(start).sort((a, b) => rank[this.fn[a]!]! - rank[this.fn[b]!]!);
        for (let i = 0; i < siblings.length; i++) order[start + i] = siblings[i]!;
      }
    }
    return order;
  }

  private widen(): void {
    const wider = (array: Int32Array): Int32Array => {
      const made = new Int32Array(array.length * 2);
      made.set(array);
      return made;
    };
    this.fn = wider(this.fn);
    this.parent = wider(this.parent);
    const ending = new Float64Array(this.ending.length * 2);
    ending.set(this.ending);
    this.ending = ending;
  }

  private rehash(): void {
    const slots = new Int32Array(this.slots.length * 2).fill(-1),
      mask = slots.length - 1;
    for (let node = 1; node < this.count; node++) {
      let slot = hash(this.parent[node]!, this.fn[node]!) & mask;
      while (slots[slot]! >= 0) slot = (slot + 1) & mask;
      slots[slot] = node;
    }
    this.slots = slots;
  }
}

function hash(parent: number, fn: number): number {
  let mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn + 1, 0x85ebca6b);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

const rankOf = new WeakMap<FunctionTable, Uint32Array>();

/** Each function's place in the order of name, then of module. */
export function ranks(functions: FunctionTable): Uint32Array {
  const known = rankOf.get(functions);
  if (known) return known;
  const { name, module } = functions;
  const order = Array.from(name, (_, number) => number);
  order.sort((a, b) => compare(name[a]!, name[b]!) || compare(module[a] ?? "", module[b] ?? "") || a - b);
  const rank = new Uint32Array(order.length);
  order.forEach((number, at) => {
    rank[number] = at;
  });
  rankOf.set(functions, rank);
  return rank;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a tree made from another one keeps of it. */
export function like(tree: FlameTree): Parameters<Grower["finish"]>[0] {
  const { scale, pruned, recordingSamples, rates, inverted, isDifference } = tree;
  return { scale, pruned, recordingSamples, rates, inverted, compared: isDifference };
}
