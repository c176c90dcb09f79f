// The description of a frame, in one place: the tooltip, the line below the graph, the text for a screen reader and the
// SVG all say the same.

import { count, functionName, percent, plural, points, share, signed } from "../format";
import type { FlameTree } from "./tree";

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
  if (tree.base && tree.rates)
    lines.push(["A", `${amount(value * tree.rates.here, tree)} · ${share(value, tree.total)}`]);
  else lines.push(["samples", `${count(value)} · ${share(value, tree.total)} of all`]);
  if (zoom > 0) lines.push([`of ${functionName(tree.name(zoom), 28)}`, share(value, tree.value[zoom]!)]);
  if (self !== null) lines.push(["self", `${count(self)} · ${share(self, tree.total)} of all`]);
  if (tree.base) {
    const base = tree.base[node]!;
    const said = tree.rates ? amount(base * tree.rates.there, tree) : count(base);
    lines.push(["B", `${said} · ${share(base, tree.baseTotal)}`]);
    lines.push(["change", changeOf(tree, node)]);
  }
  if (tree.recordingSamples && tree.recordingSamples > tree.total) {
    lines.push(["of the recording", share(value, tree.recordingSamples)]);
  }
  return { name: tree.name(node), place: placeOf(tree.module(node), tree.kind(node)), lines };
}

export function changeOf(tree: FlameTree, node: number): string {
  const value = tree.value[node]!,
    base = tree.base?.[node] ?? 0;
  const change = (tree.total ? value / tree.total : 0) - (tree.baseTotal ? base / tree.baseTotal : 0);
  const said = `${points(change)}, ${changed(tree.delta(node), tree)}`;
  if (!value && base) return `${said}; vanished`;
  return value && !base ? `${said}; new` : said;
}

/** 1.25 cores, or samples a second where the rate of sampling is not known. */
export function amount(value: number, { rates }: Pick<FlameTree, "rates">): string {
  const size = Math.abs(value);
  const digits = rates?.unit === "cores" ? (size >= 10 ? 1 : 2) : size >= 10 ? 0 : 1;
  return `${value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${rates?.unit ?? "samples"}`;
}

/** Samples more or fewer than the other side's rate, as a rate: +0.52 cores. */
export function changed(delta: number, tree: Pick<FlameTree, "rates">): string {
  if (!tree.rates) return `${signed(delta)} samples`;
  const rate = delta * tree.rates.here;
  return `${rate < 0 ? "−" : "+"}${amount(Math.abs(rate), tree)}`;
}

export function placeOf(module: string | null, kind: string): string {
  if (kind === "root") return "";
  const named =
    kind === "module"
      ? "kernel module"
      : kind === "jit"
        ? "JIT"
        : kind === "python"
          ? "Python"
          : kind === "bpf"
            ? "BPF"
            : kind;
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
  return `${facts.name}${facts.place ? `, ${facts.place.replace(" · ", ", ")}` : ""}. ${said}. ${place}, ${plural(children, tree.inverted ? "caller" : "callee")}.`;
}

/** The stack of a node as lines, outermost first; as collapsed stacks have it, with `;` between. */
export function stackText(tree: FlameTree, node: number, between = "\n"): string {
  const names = tree
    .path(node)
    .slice(1)
    .map((each) => tree.name(each));
  return (tree.inverted ? names.reverse() : names).join(between);
}

/** The picture's description for screen readers. */
export function summary(tree: FlameTree, hottest: readonly { name: string; self: number }[]): string {
  if (!tree.total && !tree.baseTotal) return "Flame graph without samples.";
  const hot = hottest
    .slice(0, 5)
    .map((row) => `${row.name} ${share(row.self, tree.total)}`)
    .join(", ");
  return (
    `${tree.isDifference ? "Differential flame" : tree.inverted ? "Inverted flame" : "Flame"} graph of ${plural(tree.total, "sample")}, ` +
    `${plural(tree.count - 1, "frame")}, ${plural(tree.depths - 1, "level")} deep. Most time in: ${hot || "nothing"}. ` +
    "Arrow keys move between frames, Enter zooms."
  );
}

/** What was left out on the way here. */
export function prunedNote(tree: FlameTree): string {
  const { branches, samples, below_ratio } = tree.pruned;
  if (!branches) return "";
  return (
    `${plural(branches, "branch", "branches")} below ${percent(below_ratio)} left out by the server; ` +
    `${share(samples, tree.total)} of the samples are in them and end at their callers here.`
  );
}

export function narrowNote(narrow: number): string {
  return narrow ? `${plural(narrow, "frame")} below 1 px hidden; zoom in to see them.` : "";
}
