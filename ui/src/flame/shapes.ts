// The trees behind the panel, each made only when what it is made of changes.

import { useMemo } from "preact/hooks";
import { inverted } from "./invert";
import type { FlameLook } from "./look";
import { filtered, matchedSamples, matchesOf } from "./search";
import { topOf } from "./top";
import { applyAll, swapped } from "./transforms";
import { type FlameTree, heavyFirst } from "./tree";

interface Given {
  readonly tree: FlameTree;
  readonly invertedTree?: FlameTree | null;
  readonly look: FlameLook;
}

export interface Shapes {
  /** After transforms and a filtering search; the graph may be inverted. */
  tree: FlameTree;
  graph: FlameTree;
  matches: Uint8Array | null;
  graphMatches: Uint8Array | null;
  matched: number;
  total: number;
  rows: ReturnType<typeof topOf>;
}

export function useShapes(props: Given, isSwapped: boolean, regexp: RegExp | null): Shapes {
  const { look } = props,
    wantsFilter = look.search.mode === "filter" && regexp !== null;
  const upright = useMemo(
    () => applyAll(isSwapped ? swapped(props.tree) : props.tree, look.transforms),
    [props.tree, look.transforms, isSwapped],
  );
  const found = useMemo(() => (regexp ? matchesOf(upright.functions, regexp) : null), [upright, regexp]);
  const tree = useMemo(
    () => (wantsFilter && found ? filtered(upright, found) : upright),
    [upright, found, wantsFilter],
  );
  const graph = useMemo(() => {
    if (!look.inverted) return heavyFirst(tree);
    if (props.invertedTree && !look.transforms.length && !wantsFilter && !isSwapped)
      return heavyFirst(props.invertedTree);
    return heavyFirst(inverted(tree));
  }, [tree, look.inverted, props.invertedTree]);
  const rows = useMemo(() => topOf(tree), [tree]);
  const matched = useMemo(() => (found ? matchedSamples(upright, found) : 0), [upright, found]);
  const graphMatches = useMemo(
    () => (found ? (graph.functions === upright.functions ? found : matchesOf(graph.functions, regexp)) : null),
    [graph, found],
  );
  return { tree, graph, matches: found, graphMatches, matched, total: upright.total, rows };
}
