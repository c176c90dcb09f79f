// A fleet in words: groups of nodes, shares, and what is worth a line.

import { rank } from "../../api/severity";
import type { FleetGroup, FleetIncident, FleetNode, LabelValue } from "../../api/types";

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

/** Incidents by their nodes. Pure. */
export function byNode(incidents: readonly FleetIncident[]): Map<string, FleetIncident[]> {
  const found = new Map<string, FleetIncident[]>();
  for (const each of incidents) {
    const known = found.get(each.node);
    if (known) known.push(each);
    else found.set(each.node, [each]);
  }
  return found;
}

/** The worst of a node, and of those the last: what one opens it for. */
export function worstOf(incidents: readonly FleetIncident[] = []): FleetIncident | null {
  return [...incidents].sort((a, b) => rank(a.severity) - rank(b.severity) || b.from - a.from)[0] ?? null;
}

const spelled = (text: string): string => text.toLowerCase().replace(/\s+/g, "_");

/** A cause as a word of the filter: cause=zombie-memcg culprit=ecs.service */
export const causeTerms = (pattern: string, culprit: string | null): string =>
  culprit === null ? `cause=${spelled(pattern)}` : `cause=${spelled(pattern)} culprit=${spelled(culprit)}`;

/** Groups as words of the filter: image=v14 zone=a */
export const filterOf = (all: readonly LabelValue[]): string =>
  all.map(({ label, value }) => `${spelled(label)}=${spelled(value)}`).join(" ");

/** A word with = is a whole label or cause; others may be anywhere in the name or in a label. All have to be there. */
export function matching(
  nodes: readonly FleetNode[],
  text: string,
  incidents: ReadonlyMap<string, readonly FleetIncident[]> = new Map(),
): readonly FleetNode[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return nodes;
  return nodes.filter((node) => {
    const { image, zone, kernel, instance_type } = node;
    const labels = { image, zone, kernel, type: instance_type, instance_type, ...node.labels };
    const terms = [
      ...Object.entries(labels).map(([label, value]) => (value == null ? "" : `${spelled(label)}=${spelled(value)}`)),
      ...(incidents.get(node.node) ?? []).flatMap(({ pattern, culprit }) => causeTerms(pattern, culprit).split(" ")),
    ];
    const hay = [node.node.toLowerCase(), node.sick ? "sick" : "healthy", ...terms];
    return words.every((word) => (word.includes("=") ? hay.includes(word) : hay.some((each) => each.includes(word))));
  });
}

export interface Order {
  by: string;
  descending: boolean;
}

/** Numbers by size, texts by letters; unknown values come last, either way. */
export function sortedBy<T>(rows: readonly T[], value: (row: T) => string | number | null, descending: boolean): T[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
}
