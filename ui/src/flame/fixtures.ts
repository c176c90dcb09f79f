// Trees for tests and for the development page: made from stacks, or synthetic and of any size.

import { Grower } from "./grow";
import { type FlameTree, type FunctionTable, scaleOf } from "./tree";

/** A stack as text, outermost first: "main;work;read@kernel"; after the @ its kind. Samples, and those of the other side. */
export type Line = readonly [string, number, number?];

export function treeOf(lines: readonly Line[], compared = lines.some((line) => line.length > 2)): FlameTree {
  const table = { name: ["all"], module: [null] as (string | null)[], kind: ["root"] };
  const numbers = new Map<string, number>();
  const number = (word: string): number => {
    let found = numbers.get(word);
    if (found === undefined) {
      const [name = "", kind = "user"] = word.split("@");
      numbers.set(word, (found = table.name.length));
      table.name.push(name);
      table.kind.push(kind);
      table.module.push(kind === "kernel" ? "[kernel]" : name.includes("!") ? name.split("!")[0]! : "app");
    }
    return found;
  };
  const paths = lines.map(([stack]) => stack.split(";").filter(Boolean).map(number));
  const grower = new Grower(table);
  lines.forEach(([, value, base = 0], line) => {
    let at = 0;
    for (const fn of paths[line]!) at = grower.child(at, fn);
    grower.add(at, value, 0, base);
  });
  const total = lines.reduce((sum, line) => sum + line[1], 0),
    baseTotal = lines.reduce((sum, line) => sum + (line[2] ?? 0), 0);
  return grower.finish({ compared, ...(compared ? { scale: scaleOf(total, baseTotal) } : {}) });
}

/** The same numbers each time. */
export function random(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

const KINDS = ["kernel", "user", "user", "jit", "module", "inlined"];

/** A tree of about so many nodes, shaped as real ones are: deep, a few wide branches, many narrow. */
export function synthetic(nodes: number, { seed = 1, functions = 3000, compared = false, depth = 70 } = {}): FlameTree {
  const next = random(seed),
    table: FunctionTable = syntheticFunctions(functions, next);
  const grower = new Grower(table),
    open: number[] = [];
  while (grower.size < nodes) {
    // Start from a frame that exists: mostly near the root, so that the tree is as wide as it is deep.
    let at = open.length && next() < 0.97 ? open[Math.floor(next() ** 0.6 * open.length)]! : 0;
    const steps = 1 + Math.floor(next() * 18);
    for (let step = 0; step < steps && grower.size < nodes && depthOf(grower, at) < depth; step++) {
      at = grower.child(at, 1 + Math.floor(next() ** 1.6 * (functions - 1)));
      open.push(at);
    }
    const weight = Math.ceil(next() ** 8 * 400);
    grower.add(at, weight, 0, compared ? Math.ceil(weight * next() * 2) : 0);
  }
  return grower.finish({ compared });
}

function depthOf(grower: Grower, node: number): number {
  let depth = 0;
  for (let at = node; at > 0; at = grower.parentOf(at)) depth++;
  return depth;
}

const WORDS = [
  "mem",
  "cgroup",
  "lru",
  "pages",
  "read",
  "sock",
  "tcp",
  "queue",
  "poll",
  "lock",
  "sched",
  "task",
  "page",
  "fault",
  "inode",
  "dentry",
  "alloc",
  "slab",
  "napi",
  "irq",
  "timer",
  "epoll",
  "futex",
  "vfs",
  "xfs",
  "kubelet",
  "train",
  "step",
  "batch",
  "tensor",
];
const MODULES = [
  "libc.so.6",
  "python3.11",
  "libtorch_cpu.so",
  "kubelet",
  "ray",
  "libcrypto.so.3",
  "node",
  "containerd",
];

function syntheticFunctions(count: number, next: () => number): FunctionTable {
  const table = { name: ["all"], module: [null] as (string | null)[], kind: ["root"] };
  const word = (): string => WORDS[Math.floor(next() * WORDS.length)]!;
  for (let number = 1; number < count; number++) {
    const kind = KINDS[Math.floor(next() * KINDS.length)]!;
    table.name.push([word(), word(), word(), number % 7 ? "" : String(number)].filter(Boolean).join("_"));
    table.kind.push(kind);
    table.module.push(
      kind === "kernel"
        ? "[kernel]"
        : kind === "module"
          ? "[mlx5_core]"
          : kind === "jit"
            ? "[jit]"
            : MODULES[Math.floor(next() * MODULES.length)]!,
    );
  }
  return table;
}
