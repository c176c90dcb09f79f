// Where keys lead in a tree, and where a node is in another one.

import { type Bars, nearest } from "./layout";
import type { FlameTree } from "./tree";

/** The node of the same path in another tree, or what is left of that path; null if that is nothing. */
export function sameNode(from: FlameTree, node: number, to: FlameTree): number | null {
  return (
    to.follow(
      from
        .path(node)
        .slice(1)
        .map((each) => from.name(each)),
    ) || null
  );
}

export function widestChild(tree: FlameTree, node: number): number {
  let best = node,
    most = -1;
  for (let child = tree.firstChild[node]!; child < tree.childEnd[node]!; child++) {
    if (tree.width[child]! > most) {
      best = child;
      most = tree.width[child]!;
    }
  }
  return best;
}

export function sideways(tree: FlameTree, bars: Bars, node: number, direction: 1 | -1): number {
  const next = node + direction;
  if (next > 0 && next < tree.count && tree.depth[next] === tree.depth[node]) return next;
  return nearest(bars, tree.depth[node]!, direction > 0 ? bars.right[node]! : bars.left[node]! - 1e-9);
}
