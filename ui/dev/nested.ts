// Documents of `zombiescope flamegraph --json` and `heatmap --json` as the page's own types, for trying it without a server.

import { Grower } from "../src/flame/grow";
import { type FlameTree, scaleOf } from "../src/flame/tree";
import type { HeatData } from "../src/heatmap";

interface Node {
  name: string;
  module: string | null;
  kind: string;
  value: number;
  self: number;
  base?: number;
  children: Node[];
}
export interface FlameDocument {
  total: number;
  pruned: { branches: number; samples: number; below_ratio: number };
  against?: { total: number };
  root: Node;
}

export function treeFrom(document: FlameDocument): FlameTree {
  const table = { name: ["all"], module: [null] as (string | null)[], kind: ["root"] },
    numbers = new Map<string, number>();
  const waiting: [Node, number][] = [[document.root, 0]],
    placed: [Node, number][] = [];
  const number = ({ name, module, kind }: Node): number => {
    const key = `${name}\0${module}\0${kind}`,
      known = numbers.get(key);
    if (known !== undefined) return known;
    numbers.set(key, table.name.length);
    table.name.push(name);
    table.module.push(module);
    table.kind.push(kind);
    return table.name.length - 1;
  };
  const grower = new Grower(table);
  while (waiting.length) {
    const [node, at] = waiting.pop()!;
    placed.push([node, at]);
    for (const child of node.children) waiting.push([child, grower.child(at, number(child))]);
  }
  for (const [node, at] of placed) {
    const below = node.children.reduce((sum, child) => sum + child.value, 0),
      baseBelow = node.children.reduce((sum, child) => sum + (child.base ?? 0), 0);
    grower.add(at, node.self, node.value - node.self - below, (node.base ?? 0) - baseBelow);
  }
  const compared = document.against !== undefined;
  return grower.finish({
    compared,
    pruned: document.pruned,
    ...(compared ? { scale: scaleOf(document.total, document.against!.total) } : {}),
  });
}

export interface HeatDocument {
  start: number;
  column_s: number;
  columns: number;
  rows: number;
  cores: number[] | null;
  total: number;
  max: number;
  blind: { from: number; to: number }[];
  values: number[][];
}

export function heatOf(document: HeatDocument): HeatData {
  return {
    start: document.start,
    columnS: document.column_s,
    spanS: 1,
    columns: document.columns,
    rows: document.rows,
    cores: document.cores,
    total: document.total,
    max: document.max,
    blind: document.blind.map(({ from, to }) => [from, to] as const),
    values: Uint32Array.from(document.values.flat()),
    painted: null,
  };
}
