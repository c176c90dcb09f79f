// What is said about a frame, in one place: the tooltip, the line below the graph, the text for a screen reader and the
// SVG all say the same.

import type { FlameTree } from "./tree";

const NUMBER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(number: number): string {
  return NUMBER.format(Math.round(number));
}

export function percent(part: number, whole: number): string {
  if (!whole) return "0 %";
  const of = (100 * part) / whole,
    size = Math.abs(of);
  return `${of.toFixed(size < 1 ? 2 : size < 10 ? 1 : size > 99.95 ? 0 : 1)} %`;
}

export function signed(number: number): string {
  const rounded = Math.round(number);
  return rounded > 0 ? `+${count(rounded)}` : rounded < 0 ? `−${count(-rounded)}` : "±0";
}

export function counted(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${Math.round(number) === 1 ? one : many}`;
}

export interface Facts {
  readonly name: string;
  /** Module and kind; empty for the root. */
  readonly place: string;
  readonly lines: readonly (readonly [string, string])[];
}

/** Everything that a tooltip shows about a node; `zoom` is the node that is zoomed to. */
export function factsOf(tree: FlameTree, node: number, zoom = 0): Facts {
  const value = tree.value[node]!,
    lines: [string, string][] = [];
  const self = tree.inverted ? null : tree.self[node]!;
  lines.push(["samples", `${count(value)} · ${percent(value, tree.total)} of all`]);
  if (zoom > 0) lines.push([`of ${short(tree.name(zoom), 24)}`, percent(value, tree.value[zoom]!)]);
  if (self !== null) lines.push(["self", `${count(self)} · ${percent(self, tree.total)} of all`]);
  if (tree.base) {
    const base = tree.base[node]!;
    lines.push(["before", `${count(base)} · ${percent(base, tree.baseTotal)}`]);
    lines.push(["change", changeOf(tree, node)]);
  }
  if (tree.recordingSamples && tree.recordingSamples > tree.total) {
    lines.push(["of the recording", percent(value, tree.recordingSamples)]);
  }
  return { name: tree.name(node), place: placeOf(tree.module(node), tree.kind(node)), lines };
}

export function changeOf(tree: FlameTree, node: number): string {
  const value = tree.value[node]!,
    base = tree.base?.[node] ?? 0;
  const points = 100 * ((tree.total ? value / tree.total : 0) - (tree.baseTotal ? base / tree.baseTotal : 0));
  const said = `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(Math.abs(points) < 1 ? 2 : 1)} points, ${signed(tree.delta(node))} samples`;
  if (!value && base) return `${said}; vanished`;
  return value && !base ? `${said}; new` : said;
}

export function placeOf(module: string | null, kind: string): string {
  if (kind === "root") return "";
  const named = kind === "module" ? "kernel module" : kind === "jit" ? "JIT" : kind === "bpf" ? "BPF" : kind;
  return module && module !== `[${kind}]` ? `${module} · ${named}` : named;
}

/** One sentence, for a screen reader. */
export function spoken(tree: FlameTree, node: number, zoom = 0): string {
  const facts = factsOf(tree, node, zoom);
  const children = tree.childEnd[node]! > tree.firstChild[node]! ? tree.childEnd[node]! - tree.firstChild[node]! : 0;
  const parent = tree.parent[node]!;
  const place =
    parent < 0
      ? "root"
      : `depth ${tree.depth[node]}, ${node - tree.firstChild[parent]! + 1} of ${tree.childEnd[parent]! - tree.firstChild[parent]!}`;
  const said = facts.lines.map(([label, text]) => `${label} ${text.replace("·", ",")}`).join("; ");
  return `${facts.name}${facts.place ? `, ${facts.place.replace(" · ", ", ")}` : ""}. ${said}. ${place}, ${counted(children, tree.inverted ? "caller" : "callee")}.`;
}

/** The stack of a node as lines, outermost first; as collapsed stacks have it, with `;` between. */
export function stackText(tree: FlameTree, node: number, between = "\n"): string {
  const names = tree
    .path(node)
    .slice(1)
    .map((each) => tree.name(each));
  return (tree.inverted ? names.reverse() : names).join(between);
}

/** What the picture says about itself when nobody sees it. */
export function summary(tree: FlameTree, hottest: readonly { name: string; self: number }[]): string {
  if (!tree.total && !tree.baseTotal) return "Flame graph without samples.";
  const hot = hottest
    .slice(0, 5)
    .map((row) => `${row.name} ${percent(row.self, tree.total)}`)
    .join(", ");
  return (
    `${tree.isDifference ? "Differential flame" : tree.inverted ? "Inverted flame" : "Flame"} graph of ${counted(tree.total, "sample")}, ` +
    `${counted(tree.count - 1, "frame")}, ${counted(tree.depths - 1, "level")} deep. Most time in: ${hot || "nothing"}. ` +
    "Arrow keys move between frames, Enter zooms."
  );
}

/** What was left out on the way here. */
export function prunedNote(tree: FlameTree): string {
  const { branches, samples, below_ratio } = tree.pruned;
  if (!branches) return "";
  const least = `${(100 * below_ratio).toPrecision(2)} %`;
  return (
    `${counted(branches, "branch", "branches")} below ${least} left out by the server; ` +
    `${percent(samples, tree.total)} of the samples are in them and end at their callers here.`
  );
}

export function narrowNote(narrow: number): string {
  return narrow ? `${counted(narrow, "frame")} below 1 px hidden; zoom in to see them.` : "";
}

export function short(text: string, room: number): string {
  return text.length <= room ? text : room < 2 ? "" : `${text.slice(0, room - 1)}…`;
}
