// What the colours mean. A difference says it with signs as well.

import { useMemo } from "preact/hooks";
import { share } from "../format";
import { type ColourBy, colourOf, css, deltaColour, KINDS, kindColour, type Rgb, type Theme } from "./colours";
import { topOf } from "./top";
import { ownerOf } from "./transforms";
import type { FlameTree } from "./tree";

const MODULES = 7;

export function Legend({
  tree,
  colour,
  theme,
  searched,
}: {
  tree: FlameTree;
  colour: ColourBy;
  theme: Theme;
  searched: boolean;
}) {
  const shares = useMemo(() => sharesOf(tree, colour), [tree, colour]);
  const entry = (label: string, fill: Rgb, part?: number) => (
    <li key={label}>
      <i class="zs-dot" style={{ background: css(fill) }} />
      {label}
      {part !== undefined && <span class="faint"> {share(part, tree.total)}</span>}
    </li>
  );
  if (tree.isDifference) {
    return (
      <ul class="zs-legend" aria-label="Colours">
        {entry("▲ more in A", deltaColour(1, 0.7, theme))}
        {entry("unchanged", deltaColour(0, 1, theme))}
        {entry("▼ less in A", deltaColour(-1, 0.7, theme))}
        {entry("✕ only in B", deltaColour(-2, 1, theme))}
        <li class="faint">Width: mean of A and B, per second</li>
      </ul>
    );
  }
  const named = new Map<string, string>(KINDS);
  return (
    <ul class="zs-legend" aria-label="Colours, with the share of samples taken there">
      {shares
        .slice(0, MODULES)
        .map(([name, share]) =>
          entry(
            colour === "kind" ? (named.get(name) ?? name) : name,
            colour === "kind"
              ? kindColour(name, theme)
              : named.has(name)
                ? kindColour(name, theme)
                : colourOf("", name, "user", "module", theme),
            share,
          ),
        )}
      {shares.length > MODULES && <li class="faint">and {shares.length - MODULES} more</li>}
      {searched && (
        <li>
          <i class="zs-dot zs-dot-paint" />
          matches the search
        </li>
      )}
    </ul>
  );
}

/** Kinds or modules by the samples that were taken in them, most first. */
function sharesOf(tree: FlameTree, colour: ColourBy): [string, number][] {
  const sums = new Map<string, number>();
  if (tree.inverted) {
    const level = tree.grouped ? 2 : 1;
    for (let node = tree.levels[level] ?? 0; node < (tree.levels[level + 1] ?? 0); node++)
      add(colour === "kind" ? tree.kind(node) : ownerOf(tree.functions, tree.fn[node]!), tree.value[node]!);
  } else
    for (const row of topOf(tree))
      if (row.self) add(colour === "kind" ? row.kind : ownerOf(tree.functions, row.fn), row.self);
  function add(name: string, samples: number): void {
    sums.set(name, (sums.get(name) ?? 0) + samples);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}
