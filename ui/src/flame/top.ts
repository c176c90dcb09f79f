// Functions by how much time was spent in them (self) and below them (total). A sample counts once for a function, also
// when it is on the stack several times.

import type { FunctionKey } from "./transforms";
import { type FlameTree, OWNER } from "./tree";

export interface TopRow {
  readonly fn: number;
  readonly name: string;
  readonly module: string | null;
  readonly kind: string;
  readonly self: number;
  readonly total: number;
  /** Samples more than expected, self and total; null where nothing is compared. */
  readonly selfDelta: number | null;
  readonly totalDelta: number | null;
}

export type TopColumn = "name" | "module" | "self" | "total" | "delta";

export interface TopOrder {
  readonly by: TopColumn;
  readonly descending: boolean;
}

const known = new WeakMap<FlameTree, readonly TopRow[]>();

/** Every function of a tree. Counted once for each tree: graph, table and legend all ask. */
export function topOf(tree: FlameTree): readonly TopRow[] {
  let rows = known.get(tree);
  if (!rows) known.set(tree, (rows = counted(tree)));
  return rows;
}

function counted(tree: FlameTree): TopRow[] {
  const count = tree.functions.name.length;
  const self = new Float64Array(count),
    total = new Float64Array(count);
  const baseSelf = new Float64Array(count),
    baseTotal = new Float64Array(count);
  const open = new Uint32Array(count);
  walk(
    tree,
    (node) => {
      const fn = tree.fn[node]!;
      self[fn]! += tree.self[node]!;
      baseSelf[fn]! += tree.baseSelf?.[node] ?? 0;
      if (open[fn]!++ === 0) {
        total[fn]! += tree.value[node]!;
        baseTotal[fn]! += tree.base?.[node] ?? 0;
      }
    },
    (node) => {
      open[tree.fn[node]!]!--;
    },
  );
  const rows: TopRow[] = [];
  for (let fn = 1; fn < count; fn++) {
    if ((!total[fn] && !baseTotal[fn]) || tree.functions.kind[fn] === OWNER) continue;
    rows.push({
      fn,
      name: tree.functions.name[fn]!,
      module: tree.functions.module[fn]!,
      kind: tree.functions.kind[fn]!,
      self: self[fn]!,
      total: total[fn]!,
      selfDelta: tree.isDifference ? self[fn]! - baseSelf[fn]! * tree.scale : null,
      totalDelta: tree.isDifference ? total[fn]! - baseTotal[fn]! * tree.scale : null,
    });
  }
  return rows;
}

/** Depth first, without recursion: stacks may be deeper than the engine's own. */
export function walk(tree: FlameTree, enter: (node: number) => void, leave: (node: number) => void): void {
  if (!tree.count) return;
  const next = new Uint32Array(tree.count);
  let at = 0;
  enter(0);
  for (;;) {
    const child = tree.firstChild[at]! + next[at]!;
    if (child < tree.childEnd[at]!) {
      next[at]!++;
      at = child;
      enter(at);
      continue;
    }
    leave(at);
    if (at === 0) return;
    at = tree.parent[at]!;
  }
}

const WORTH: Record<Exclude<TopColumn, "name" | "module">, (row: TopRow) => number> = {
  self: (row) => row.self,
  total: (row) => row.total,
  delta: (row) => Math.abs(row.selfDelta ?? 0),
};

/** In order, and only what matches. Equal rows keep the order of total, then of name. */
export function arranged(rows: readonly TopRow[], order: TopOrder, keep?: (row: TopRow) => boolean): TopRow[] {
  const chosen = keep ? rows.filter(keep) : [...rows];
  const sign = order.descending ? -1 : 1;
  const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return chosen.sort((a, b) => {
    const first =
      order.by === "name" || order.by === "module"
        ? text(a[order.by] ?? "", b[order.by] ?? "")
        : WORTH[order.by](a) - WORTH[order.by](b);
    return sign * first || b.total - a.total || text(a.name, b.name);
  });
}

/** Self and total of one function, both modules of a name together if no module is given. */
export function totalsOf(rows: readonly TopRow[], key: FunctionKey): { self: number; total: number } {
  const sums = { self: 0, total: 0 };
  for (const row of rows) {
    if (row.name !== key.name || (key.module !== null && row.module !== key.module)) continue;
    sums.self += row.self;
    sums.total += row.total;
  }
  return sums;
}
