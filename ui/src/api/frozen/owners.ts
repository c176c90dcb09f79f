/** Whose the frozen samples are: the groups of query/groups.py, and what is counted by them. */

import { Grower } from "../../flame/grow";
import { packedTree } from "../../flame/pack";
import { scaleOf } from "../../flame/tree";
import { type Columns, decode, encode } from "../columns";
import type { Group } from "../groups";
import type { Params } from "../source";
import type { Level, Span, Who } from "../types";
import { type FrozenTable, samplesOf, type Task, type Wanted, wanted } from "./table";

const NO_OWNER: Record<Level, string> = {
  owner: "not known",
  unit: "no unit",
  pod: "no pod",
  container: "no container",
  image: "no image",
  program: "not known",
  process: "not known",
  thread: "not known",
  comm: "?",
};
const SHORT_ID = 12;

export interface Groups {
  /** Task -> number of its group; group 0 has no owner. */
  of: Int32Array;
  all: Group[];
}

const FACTS = ["comm", "pid", "tid", "unit", "container", "pod", "image"] as const;

export function groupsOf(tasks: readonly Task[], by: Level): Groups {
  const numbers = new Map<string | number | null, number>([[null, 0]]);
  const nothing = { comm: null, pid: null, tid: null, unit: null, container: null, pod: null, image: null };
  const all: Group[] = [{ name: NO_OWNER[by], ...nothing }];
  const leaders = leadersOf(tasks);
  const of = Int32Array.from(tasks, (task) => {
    const key = keyOf(by, task);
    const group = groupOf(by, task, key, leaders);
    const known = numbers.get(key);
    if (known === undefined) {
      numbers.set(key, all.length);
      return all.push(group) - 1;
    }
    const shared = all[known]!;
    if (known)
      for (const fact of FACTS) if (shared[fact] !== group[fact]) (shared as Record<string, unknown>)[fact] = null;
    return known;
  });
  return { of, all };
}

function leadersOf(tasks: readonly Task[]): Map<number, string> {
  const names = new Map<number, string>();
  for (const { pid, tid, comm } of tasks)
    if (pid !== null && comm && (tid === pid || tid === null || !names.has(pid))) names.set(pid, comm);
  return names;
}

function labelOf({ name, pod, image }: Task): string | null {
  return pod && name ? `${pod}/${name}` : (name ?? pod ?? image);
}

function keyOf(by: Level, task: Task): string | number | null {
  const { unit, container } = task;
  if (by === "process") return task.pid;
  if (by === "program") return task.program;
  if (by === "thread") return task.tid;
  if (by === "pod") return task.pod ?? task.podUid;
  if (by === "container") return labelOf(task) ?? container;
  if (by !== "owner") return task[by] || null;
  // The scope that systemd makes for a container has its id in its name and nothing else.
  if (unit && !(container && unit.includes(container.slice(0, SHORT_ID)))) return unit;
  return (container ? (labelOf(task) ?? container) : task.comm) || null;
}

function groupOf(by: Level, task: Task, key: string | number | null, leaders: Map<number, string>): Group {
  const { pid, tid, unit, image } = task;
  const comm = by === "process" ? (leaders.get(pid ?? -1) ?? null) : task.comm;
  if (by === "program")
    return { ...task, name: key === null ? NO_OWNER[by] : String(key), comm, container: task.container };
  const numbered = by === "process" || by === "thread";
  const name = key === null ? NO_OWNER[by] : numbered ? `${comm ?? "?"} [${key}]` : String(key);
  const container = labelOf(task) ?? task.container;
  return { name, comm, pid, tid, unit, container, pod: task.pod ?? task.podUid, image };
}

/** Samples by pair of task and stack. */
function pairCounts(table: FrozenTable, asked: Wanted): Float64Array {
  const counts = new Float64Array(table.pairTask.length);
  for (const i of samplesOf(table, asked)) counts[table.pair[i]!]! += table.weight;
  return counts;
}

/** The flame graph with a root for each group; inverted, each group begins where its time was spent. */
export function groupedGraph<H>(table: FrozenTable, by: Level, asked: Wanted, other: Span | null, inverted: boolean) {
  const { of, all } = groupsOf(table.tasks, by);
  const first = table.functions.name.length;
  const grower = new Grower({
    name: [...table.functions.name, ...all.map((group) => group.name)],
    module: [...table.functions.module, ...all.map(() => null)],
    kind: [...table.functions.kind, ...all.map(() => "owner")],
  });
  const counts = pairCounts(table, asked);
  const base = other && pairCounts(table, { ...asked, range: other });
  for (let pair = 0; pair < counts.length; pair++) {
    if (!counts[pair] && !base?.[pair]) continue;
    let at = grower.child(0, first + of[table.pairTask[pair]!]!);
    for (const node of pathOf(table, table.pairNode[pair]!, inverted)) at = grower.child(at, table.fn[node]!);
    grower.add(at, counts[pair]!, 0, base?.[pair] ?? 0);
  }
  const sum = (each: Float64Array): number => each.reduce((total, count) => total + count, 0);
  const tree = grower.finish({
    compared: base !== null,
    inverted,
    ...(base ? { scale: scaleOf(sum(counts), sum(base)) } : {}),
    ...(table.pruned ? { pruned: table.pruned } : {}),
    recordingSamples: table.recordingSamples ?? null,
  });
  return decode<H>(packedTree(tree));
}

/** From the root to a node; inverted from the node, without leaves that only look hot, to the root. */
function pathOf(table: FrozenTable, leaf: number, inverted: boolean): number[] {
  let from = leaf;
  if (inverted) while (table.skid?.[table.fn[from]!] && table.parent[from]! > 0) from = table.parent[from]!;
  const path: number[] = [];
  for (let node = from; node > 0; node = table.parent[node]!) path.push(node);
  return inverted ? path : path.reverse();
}

export function who(table: FrozenTable, params: Params): Who {
  const by = (params.by ?? "process") as Level;
  const asked = wanted(table, params);
  const { of, all } = groupsOf(table.tasks, by);
  const [samples, kernel] = [new Float64Array(all.length), new Float64Array(all.length)];
  pairCounts(table, asked).forEach((count, pair) => {
    const group = of[table.pairTask[pair]!]!;
    samples[group]! += count;
    if (table.inKernel[table.pairNode[pair]!]) kernel[group]! += count;
  });
  const total = samples.reduce((sum, count) => sum + count, 0);
  const seconds = table.held.reduce((sum, { from, to }) => {
    const { range } = asked;
    return sum + Math.max(0, Math.min(to, range?.to ?? to) - Math.max(from, range?.from ?? from));
  }, 0);
  const order = ranked(samples);
  const shown = order.slice(0, Number(params.top ?? 100));
  const listed = shown.reduce((sum, group) => sum + samples[group]!, 0);
  return {
    schema: "zombiescope.who/1",
    node: "",
    from: asked.range?.from ?? 0,
    to: asked.range?.to ?? 0,
    by,
    total,
    others: { groups: order.length - shown.length, samples: total - listed },
    who: shown.map((group) => ({
      ...all[group]!,
      samples: samples[group]!,
      ratio: samples[group]! / total,
      kernel_ratio: kernel[group]! / samples[group]!,
      cpus: seconds > 0 ? samples[group]! / (table.hz * seconds) : null,
    })),
  };
}

export function tracks<H>(table: FrozenTable, params: Params): Columns<H> {
  const by = (params.by ?? "process") as Level;
  const asked = wanted(table, params);
  const range = asked.range ?? { from: table.held[0]?.from ?? 0, to: table.held.at(-1)?.to ?? 0 };
  const columns = Math.max(1, Math.min(Number(params.columns ?? 1200), Math.round(range.to - range.from)));
  const column_s = (range.to - range.from) / columns;
  const { of, all } = groupsOf(table.tasks, by);
  const found = [...samplesOf(table, { ...asked, range })];
  const sums = new Float64Array(all.length);
  for (const i of found) sums[of[table.pairTask[table.pair[i]!]!]!]! += table.weight;
  const order = ranked(sums);
  const shown = order.slice(0, Number(params.top ?? 12));
  const row = new Map(shown.map((group, place) => [group, place]));
  const samples = new Uint32Array(shown.length * columns);
  const kernel = new Uint32Array(samples.length);
  for (const i of found) {
    const track = row.get(of[table.pairTask[table.pair[i]!]!]!);
    if (track === undefined) continue;
    const column = Math.min(columns - 1, Math.max(0, Math.floor((table.time[i]! - range.from) / column_s)));
    samples[track * columns + column]! += table.weight;
    if (table.inKernel[table.leaf[i]!]) kernel[track * columns + column]! += table.weight;
  }
  const scalars = {
    schema: "zombiescope.tracks/1",
    ...range,
    by,
    columns,
    column_s,
    hz: table.hz,
    others: order.length - shown.length,
    tracks: shown.map((group) => ({ ...all[group]!, samples: sums[group]! })),
  };
  return decode<H>(encode(scalars, { samples, kernel }));
}

/** Groups that have samples, most first. */
function ranked(samples: Float64Array): number[] {
  return [...samples.keys()].filter((group) => samples[group]! > 0).sort((a, b) => samples[b]! - samples[a]! || a - b);
}
