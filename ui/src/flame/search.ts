// Search by regular expression: functions are tested once each, nodes only look the answer up.

import { regrow } from "./transforms";
import type { FlameTree, FunctionTable } from "./tree";

export type SearchMode = "highlight" | "filter";

export interface Search {
  readonly text: string;
  readonly mode: SearchMode;
}

/** The expression that was typed; `error` says why it is invalid. Lower-case text ignores case, as grep's "smart case". */
export interface Pattern {
  readonly regexp: RegExp | null;
  readonly error: string | null;
}

export function patternOf(text: string): Pattern {
  if (!text) return { regexp: null, error: null };
  try {
    return { regexp: new RegExp(text, /[A-Z]/.test(text) ? "" : "i"), error: null };
  } catch (error) {
    return { regexp: null, error: error instanceof Error ? error.message : String(error) };
  }
}

/** A regular expression that finds exactly this function. */
export function exactly(name: string): string {
  return `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
}

/** 1 for each function whose name or module matches; the root never does. */
export function matchesOf(functions: FunctionTable, regexp: RegExp | null): Uint8Array {
  const found = new Uint8Array(functions.name.length);
  if (!regexp) return found;
  for (let number = 1; number < found.length; number++) {
    const module = functions.module[number];
    if (regexp.test(functions.name[number]!) || (module && regexp.test(module))) found[number] = 1;
  }
  return found;
}

/** Outermost matching nodes: nothing below one of them is another one, so their samples add up. */
export function outermost(tree: FlameTree, matches: Uint8Array): number[] {
  const inside = new Uint8Array(tree.count),
    nodes = [];
  for (let node = 1; node < tree.count; node++) {
    if (inside[tree.parent[node]!]) inside[node] = 1;
    else if (matches[tree.fn[node]!]) {
      inside[node] = 1;
      nodes.push(node);
    }
  }
  return nodes;
}

/** Samples with a match anywhere on their stack. */
export function matchedSamples(tree: FlameTree, matches: Uint8Array): number {
  return outermost(tree, matches).reduce((sum, node) => sum + tree.value[node]!, 0);
}

/** The order in which Enter goes through matches: the widest first, as that is what one looks for. */
export function cycle(tree: FlameTree, matches: Uint8Array): number[] {
  return outermost(tree, matches).sort((a, b) => tree.width[b]! - tree.width[a]! || a - b);
}

/** Only stacks with a match. */
export function filtered(tree: FlameTree, matches: Uint8Array): FlameTree {
  const inside = new Uint8Array(tree.count);
  return regrow(
    tree,
    (node, above, grower) => {
      if (inside[tree.parent[node]!] || matches[tree.fn[node]!]) inside[node] = 1;
      return grower.child(above, tree.fn[node]!);
    },
    0,
    (node) => inside[node] === 1,
  );
}
