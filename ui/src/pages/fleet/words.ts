// A fleet in words: groups of nodes, shares, and what is worth a line.

import type { FleetGroup, FleetNode, LabelValue } from "../../api/types";

export const terms = (all: readonly LabelValue[]): string =>
  all.map((each) => `${each.label}=${each.value}`).join(" and ");

export const of = (some: number, all: number): string => `${some.toLocaleString("en")} of ${all.toLocaleString("en")}`;

/** A p-value as people read it: no more than two digits, and never as if it were exactly nothing. */
export function chance(p: number): string {
  if (p >= 0.01) return p.toFixed(2);
  return p > 0 ? p.toExponential(0) : "< 1e-300";
}

/** Groups that are worth a line: what is significant; where nothing is, the first few, so that one sees what was tried. */
export function shown(groups: readonly FleetGroup[]): readonly FleetGroup[] {
  const found = groups.filter((group) => group.significant);
  return found.length ? found : groups.slice(0, 3);
}

/** Nodes whose name or labels hold every word that was typed. */
export function matching(nodes: readonly FleetNode[], text: string): readonly FleetNode[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return nodes;
  return nodes.filter((node) => {
    const hay = `${node.node} ${node.sick ? "sick" : "healthy"} ${Object.entries(node.labels)
      .map(([label, value]) => `${label}=${value}`)
      .join(" ")}`.toLowerCase();
    return words.every((word) => hay.includes(word));
  });
}
