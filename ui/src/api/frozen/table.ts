/**
 * The samples that were frozen into the page (query/sample_table.py writes them), and which of them a question is about.
 * Filters mean what they mean on the server: a filter keeps whole samples and never cuts a stack; within one filter any
 * value will do, and of several all must hold.
 */

import type { SampleTable } from "../../flame/fold";
import type { Columns, TypedArray } from "../columns";
import type { Param, Params } from "../source";
import type { Span } from "../types";

export interface Task {
  comm: string | null;
  pid: number | null;
  tid: number | null;
  unit: string | null;
  container: string | null;
  /** Of the container, where they are known. */
  name: string | null;
  image: string | null;
  /** namespace/name. */
  pod: string | null;
  podUid: string | null;
  /** As the flame graph groups by default; null in a file of an older version. */
  program: string | null;
}

export interface Maps {
  start: number;
  column_s: number;
  columns: number;
  rows: number;
  cores: number[];
  subsecond: ArrayLike<number>;
  core: ArrayLike<number>;
}

export interface FrozenTable extends SampleTable {
  readonly cpu: ArrayLike<number>;
  /** Task and node of each sample are looked up by its pair. */
  readonly pair: ArrayLike<number>;
  readonly pairTask: ArrayLike<number>;
  readonly pairNode: ArrayLike<number>;
  readonly tasks: readonly Task[];
  /** Spans of which samples are held. */
  readonly held: readonly Span[];
  readonly blind: readonly [number, number][];
  readonly total: number;
  readonly hz: number;
  /** Samples that end in each node of everything held, exactly; null where nothing was thinned. */
  readonly whole: ArrayLike<number> | null;
  readonly base: ArrayLike<number> | null;
  readonly baseSpan: Span | null;
  readonly maps: Maps | null;
  /** Whether a sample that ends in this node was taken inside the kernel. */
  readonly inKernel: Uint8Array;
}

interface Header {
  start: number;
  step: number;
  tick_s: number;
  total: number;
  hz: number;
  held: [number, number][];
  blind: [number, number][];
  names: string[];
  modules: string[];
  kinds: string[];
  skid: number[];
  tasks: [
    comm: string | null,
    pid: number | null,
    tid: number | null,
    unit: string | null,
    container: string | null,
    name?: string | null,
    image?: string | null,
    pod?: string | null,
    podUid?: string | null,
  ][];
  programs?: (string | null)[];
  pruned: { branches: number; samples: number; below_ratio: number };
  base_span?: [number, number] | null;
  maps?: { start: number; column_s: number; columns: number; rows: number; cores: number[] };
}

/** Frames of the kernel itself, of its modules and of programs that it runs. */
const KERNEL_KINDS = new Set(["kernel", "module", "bpf"]);

export function readTable({ header, arrays }: Columns<Header>): FrozenTable {
  const array = (name: string): TypedArray => {
    const found = arrays[name];
    if (!found) throw new Error(`the samples of this page have no column ${name}`);
    return found;
  };
  const { pair, pairTask, pairNode } = arrays.pair
    ? { pair: array("pair"), pairTask: array("pair_task"), pairNode: array("pair_node") }
    : paired(array("task"), array("node"));
  const parent = summed(array("node_parent"));
  const functions = {
    name: ["all", ...header.names],
    module: [null, ...Array.from(array("fn_module"), (module) => header.modules[module] || null)],
    kind: ["root", ...Array.from(array("fn_kind"), (kind) => header.kinds[kind] ?? "unknown")],
  };
  // Node 0 and function 0 are the root, which the file leaves out.
  const fn = new Uint32Array(parent.length + 1);
  const nodeFn = array("node_fn");
  for (let node = 0; node < nodeFn.length; node++) fn[node + 1] = nodeFn[node]! + 1;
  const skid = new Uint8Array(functions.name.length);
  for (const number of header.skid) skid[number + 1] = 1;
  return {
    time: times(array("time"), header.start, header.tick_s),
    leaf: Uint32Array.from(pair, (number) => pairNode[number]!),
    cpu: cores(array("cpu")),
    parent: Int32Array.from([-1, ...parent]),
    fn,
    functions,
    skid,
    weight: header.step,
    pruned: header.pruned,
    recordingSamples: header.total,
    pair,
    pairTask,
    pairNode,
    tasks: header.tasks.map(
      ([comm, pid, tid, unit, container, name = null, image = null, pod = null, podUid = null], number) => ({
        comm,
        pid,
        tid,
        unit,
        container,
        name,
        image,
        pod,
        podUid,
        program: header.programs ? (header.programs[number] ?? null) : comm,
      }),
    ),
    held: header.held.map(([from, to]) => ({ from, to })),
    blind: header.blind,
    total: header.total,
    hz: header.hz,
    whole: arrays.whole ?? null,
    base: arrays.base ?? null,
    baseSpan: header.base_span ? { from: header.base_span[0], to: header.base_span[1] } : null,
    maps: header.maps ? readMaps(header.maps, array("map_subsecond"), array("map_core")) : null,
    inKernel: Uint8Array.from(fn, (number) => (KERNEL_KINDS.has(functions.kind[number]!) ? 1 : 0)),
  };
}

/** Where the file has task and node apart, because there are too many pairs of them to be named. */
function paired(task: TypedArray, node: TypedArray): { pair: Uint32Array; pairTask: number[]; pairNode: number[] } {
  const numbers = new Map<number, number>();
  const pairTask: number[] = [];
  const pairNode: number[] = [];
  const pair = new Uint32Array(task.length);
  for (let i = 0; i < task.length; i++) {
    const key = task[i]! * 2 ** 26 + node[i]!;
    let number = numbers.get(key);
    if (number === undefined) {
      number = pairTask.push(task[i]!) - 1;
      pairNode.push(node[i]!);
      numbers.set(key, number);
    }
    pair[i] = number;
  }
  return { pair, pairTask, pairNode };
}

/** The largest number that the type has is a core that is not known. */
function cores(cpu: TypedArray): Int32Array {
  const noCore = 2 ** (8 * cpu.BYTES_PER_ELEMENT) - 1;
  return Int32Array.from(cpu, (each) => (each === noCore ? -1 : each));
}

function summed(differences: ArrayLike<number>): Uint32Array {
  const values = Uint32Array.from(differences);
  for (let i = 1; i < values.length; i++) values[i]! += values[i - 1]!;
  return values;
}

function times(ticks: ArrayLike<number>, start: number, tick_s: number): Float64Array {
  const values = new Float64Array(ticks.length);
  let at = 0;
  for (let i = 0; i < ticks.length; i++) {
    at += ticks[i]!;
    values[i] = start + at * tick_s;
  }
  return values;
}

function readMaps(said: NonNullable<Header["maps"]>, subsecond: ArrayLike<number>, core: ArrayLike<number>): Maps {
  return { ...said, subsecond: overTime(subsecond, said.rows), core: overTime(core, said.cores.length) };
}

/** Each cell is stored as the difference to the one before it in time. */
function overTime(differences: ArrayLike<number>, rows: number): Int32Array {
  const values = Int32Array.from(differences);
  for (let i = rows; i < values.length; i++) values[i]! += values[i - rows]!;
  return values;
}

/** What a reader of the file must know of its samples; null where all of the window is there. */
export function caveats(table: FrozenTable, window: Span, clock: (at: number) => string): string | null {
  const said: string[] = [];
  if (table.weight > 1) {
    const exact = table.maps
      ? "heat maps and the flame graph of the whole window are exact"
      : "the flame graph of all of them is exact";
    said.push(`The file holds one of every ${table.weight} samples for what is selected; ${exact}.`);
  }
  if (!table.held.some(({ from, to }) => from <= window.from + 1 && to >= window.to - 1)) {
    const spans = table.held.map(({ from, to }) => `${clock(from)} – ${clock(to)}`).join(", ");
    said.push(`Samples of ${spans} are in the file; elsewhere the heat map is hatched.`);
  }
  return said.join(" ") || null;
}

/** What is requested, of the samples that are held. */
export interface Wanted {
  range: Span | null;
  cpus: Set<number> | null;
  /** By pair: 1 passes; null: all do. */
  pairs: Uint8Array | null;
}

export function wanted(table: FrozenTable, params: Params): Wanted {
  return { range: rangeOf(params), cpus: coresOf(params.cpu), pairs: pairsOf(table, params) };
}

export function isFiltered(asked: Wanted): boolean {
  return asked.cpus !== null || asked.pairs !== null;
}

/** Whether everything that is held lies in the range. */
export function isWhole(table: FrozenTable, range: Span | null): boolean {
  return !range || table.held.every(({ from, to }) => from >= range.from - 0.001 && to <= range.to + 0.001);
}

export function* samplesOf(table: FrozenTable, { range, cpus, pairs }: Wanted): Generator<number> {
  const end = range ? lowerBound(table.time, range.to - 1e-6) : table.time.length;
  for (let i = range ? lowerBound(table.time, range.from - 1e-6) : 0; i < end; i++) {
    if (cpus && !cpus.has(table.cpu[i]!)) continue;
    if (pairs && !pairs[table.pair[i]!]) continue;
    yield i;
  }
}

/** Samples that end in each node; exact if the whole window is requested. */
export const isExact = (table: FrozenTable, asked: Wanted): boolean =>
  table.whole !== null && !isFiltered(asked) && isWhole(table, asked.range);

export function leafCounts(table: FrozenTable, asked: Wanted): Float64Array {
  if (isExact(table, asked)) return Float64Array.from(table.whole!);
  const counts = new Float64Array(table.parent.length);
  for (const i of samplesOf(table, asked)) counts[table.leaf[i]!]! += table.weight;
  return counts;
}

/** By function: 1 where its name is found by the expression. An invalid expression finds nothing. */
export function functionsNamed(table: FrozenTable, expression: string): Uint8Array {
  const found = new Uint8Array(table.functions.name.length);
  // The server's expressions begin with (?i) where case does not matter; here that is a flag.
  const anyCase = expression.startsWith("(?i)");
  let pattern: RegExp;
  try {
    pattern = new RegExp(anyCase ? expression.slice(4) : expression, anyCase ? "i" : "");
  } catch {
    return found;
  }
  for (let fn = 1; fn < found.length; fn++) if (pattern.test(table.functions.name[fn]!)) found[fn] = 1;
  return found;
}

/** By node: 1 where it, or one above it, is a wanted function. */
export function nodesWith(table: FrozenTable, functions: Uint8Array): Uint8Array {
  const found = new Uint8Array(table.parent.length);
  for (let node = 1; node < found.length; node++)
    found[node] = functions[table.fn[node]!] || found[table.parent[node]!] ? 1 : 0;
  return found;
}

const list = (value: Param): string[] =>
  value === null || value === undefined || value === "" || value === false
    ? []
    : Array.isArray(value)
      ? value.map(String)
      : [String(value)];

export function rangeOf(params: Params): Span | null {
  const [from, to] = [Number(params.from ?? NaN), Number(params.to ?? NaN)];
  return from < to ? { from, to } : null;
}

function coresOf(value: Param): Set<number> | null {
  const found = new Set<number>();
  for (const part of list(value).flatMap((each) => each.split(","))) {
    const match = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (!match) continue;
    for (let cpu = Number(match[1]); cpu <= Number(match[2] ?? match[1]); cpu++) found.add(cpu);
  }
  return found.size ? found : null;
}

function pairsOf(table: FrozenTable, params: Params): Uint8Array | null {
  const tests: ((pair: number) => boolean)[] = [];
  const task = (pair: number): Task => table.tasks[table.pairTask[pair]!]!;
  for (const name of ["pid", "tid"] as const) {
    const values = new Set(list(params[name]).map(Number));
    if (values.size) tests.push((pair) => values.has(task(pair)[name] ?? -1));
  }
  for (const name of ["comm", "unit", "container", "pod", "image"] as const) {
    const values = list(params[name]);
    if (!values.length) continue;
    const fits = values.map((value) => FITS[name](value));
    tests.push((pair) => fits.some((passes) => passes(task(pair))));
  }
  const mode = params.mode;
  if (mode)
    tests.push(
      (pair) => table.pairNode[pair]! > 0 && Boolean(table.inKernel[table.pairNode[pair]!]) === (mode === "kernel"),
    );
  const match = params.match;
  if (match) {
    const nodes = nodesWith(table, functionsNamed(table, String(match)));
    tests.push((pair) => Boolean(nodes[table.pairNode[pair]!]));
  }
  // Without Python functions there are no stacks in the file: "false" was answered when it was made, or cannot be.
  if (params.python === "true") {
    const nodes = nodesWith(
      table,
      Uint8Array.from(table.functions.kind, (kind) => (kind === "python" ? 1 : 0)),
    );
    tests.push((pair) => Boolean(nodes[table.pairNode[pair]!]));
  }
  if (!tests.length) return null;
  return Uint8Array.from(table.pairNode, (_, pair) => (tests.every((test) => test(pair)) ? 1 : 0));
}

type Fit = (task: Task) => boolean;

/** What each filter means, as store/container_names.py has it. */
const FITS: Record<"comm" | "unit" | "container" | "pod" | "image", (value: string) => Fit> = {
  comm: (value) => of(value, (task) => [task.comm]),
  unit: (value) => of(value, (task) => [task.unit]),
  container: (value) => {
    const start = shellPattern(value, true);
    const named = of(value, (task) => [task.name, ...imageForms(task.image)]);
    return (task) => task.container !== null && (start.test(task.container) || named(task));
  },
  pod: (value) => of(value, (task) => [task.podUid, task.pod, task.pod?.split("/").pop()]),
  image: (value) => of(value, (task) => imageForms(task.image)),
};

function of(value: string, texts: (task: Task) => (string | null | undefined)[]): Fit {
  const pattern = shellPattern(value, false);
  return (task) => texts(task).some((text) => text != null && pattern.test(text));
}

/** The whole reference or its end, with or without the tag. */
function imageForms(image: string | null): string[] {
  const parts = image?.split("/") ?? [];
  return parts.flatMap((_, first) => {
    const end = parts.slice(first).join("/");
    return [end, end.replace(/@.*$/, "").replace(/:[^/:]*$/, "")];
  });
}

/** `*` and `?` as in a shell; the start of a container's id is enough. */
function shellPattern(text: string, start: boolean): RegExp {
  const escaped = text
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${escaped}${start ? "" : "$"}`, "s");
}

export function lowerBound(values: ArrayLike<number>, least: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
