// Samples that nobody took, over a tree of stacks that nobody ran, answered as a frozen page answers its own.

import type { Columns } from "../src/api/columns";
import { flamechart, flamegraph, heatmap } from "../src/api/frozen/profile";
import type { FrozenTable } from "../src/api/frozen/table";
import { AnswerError, type ColumnPath, type DocumentPath, type Params, type Source } from "../src/api/source";
import type { ColumnHeaders, Documents } from "../src/api/types";
import { random } from "../src/flame/fixtures";
import type { FlameTree } from "../src/flame/tree";

const START = 1_763_200_000,
  SECONDS = 60,
  HZ = 99,
  CORES = 8;

/** With a stall, a quiet second, and a thing that happens every second at the same moment. */
export function samplesOf(tree: FlameTree): FrozenTable {
  const next = random(11),
    leaves = Array.from(tree.self.keys()).filter((node) => tree.self[node]! > 0);
  const time: number[] = [],
    leaf: number[] = [],
    cpu: number[] = [];
  for (let core = 0; core < CORES; core++) {
    let at = leaves[Math.floor(next() * leaves.length)]!;
    for (let tick = 0; tick < SECONDS * HZ; tick++) {
      const when = START + tick / HZ + core * 0.0004,
        part = when % 1,
        second = Math.floor(when) - START;
      const busy =
        second >= 31 && second < 34
          ? 0.98
          : second === 45
            ? 0.02
            : part > 0.62 && part < 0.7
              ? 0.8
              : 0.12 + 0.1 * Math.sin(second / 5);
      if (next() > busy) continue;
      if (next() < 0.5) at = leaves[Math.floor(next() ** 3 * leaves.length)]!;
      time.push(when);
      leaf.push(at);
      cpu.push(core);
    }
  }
  const order = time.map((_, i) => i).sort((a, b) => time[a]! - time[b]!);
  const pick = (from: number[]): number[] => order.map((i) => from[i]!);
  const pairNode = Array.from(tree.fn.keys());
  return {
    time: pick(time),
    leaf: pick(leaf),
    cpu: pick(cpu),
    parent: tree.parent,
    fn: tree.fn,
    functions: tree.functions,
    weight: 1,
    pair: pick(leaf),
    pairTask: pairNode.map(() => 0),
    pairNode,
    tasks: [
      {
        comm: "nobody",
        pid: 1,
        tid: 1,
        unit: null,
        container: null,
        name: null,
        image: null,
        pod: null,
        podUid: null,
        program: null,
      },
    ],
    held: [{ from: START, to: START + SECONDS }],
    blind: [[START + 50, START + 55.5]],
    total: time.length,
    recordingSamples: time.length,
    hz: HZ,
    whole: null,
    base: null,
    baseSpan: null,
    maps: null,
    inKernel: Uint8Array.from(tree.fn, (fn) => (tree.functions.kind[fn] === "kernel" ? 1 : 0)),
  };
}

export class SyntheticSource implements Source {
  readonly frozen = false;
  constructor(private readonly table: FrozenTable) {}

  async json<P extends DocumentPath>(path: P): Promise<Documents[P]> {
    const span = { from: START, to: START + SECONDS };
    const known: Record<string, unknown> = {
      recordings: { recordings: [] },
      info: {
        node: "nowhere",
        ...span,
        samples: this.table.total,
        zone_offset_s: 0,
        live: false,
        gaps: [],
        missing: [],
      },
      incidents: { node: "nowhere", window: span, incidents: [], not_checked: [] },
    };
    if (!(path in known)) throw new AnswerError(404, `nobody has ${path}`);
    return known[path] as Documents[P];
  }

  async columns<P extends ColumnPath>(path: P, params: Params = {}): Promise<Columns<ColumnHeaders[P]>> {
    const fold = { flamegraph, heatmap, flamechart }[path as string];
    if (!fold) throw new AnswerError(404, `nobody has ${path}`);
    return fold<ColumnHeaders[P]>(this.table, params);
  }

  live(): () => void {
    return () => undefined;
  }

  readonly download = null;
}
