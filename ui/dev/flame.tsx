// Tries the flame graph and the heat map without a server: ?data=synthetic (100,000 nodes), or the name of a pair of
// documents in dev/fixtures, written by `zombiescope flamegraph --json` and `heatmap --json`. ?theme=dark, ?nodes=N,
// ?view=, ?inv=1, ?q=, ?bench=1 (measures redrawing and prints it into the page and document.body.dataset.bench).

import "../src/style/colours.css";
import "../src/style/base.css";
import { render } from "preact";
import { useState } from "preact/hooks";
import { decode } from "../src/api/columns";
import {
  FIRST_LOOK,
  type FlameLook,
  FlamePanel,
  FlameTree,
  foldChart,
  foldHeat,
  foldSamples,
  matchesOf,
  packedTree,
  patternOf,
  type SampleTable,
  VIEWS,
} from "../src/flame";
import { nodeColours } from "../src/flame/colours";
import { random, synthetic } from "../src/flame/fixtures";
import { inverted } from "../src/flame/invert";
import { barsOf } from "../src/flame/layout";
import { BarPainter } from "../src/flame/paint";
import { filtered } from "../src/flame/search";
import { topOf } from "../src/flame/top";
import { type HeatData, HeatMap, type Range } from "../src/heatmap";
import { type FlameDocument, type HeatDocument, heatOf, treeFrom } from "./nested";

const asked = new URLSearchParams(location.search);
const theme = asked.get("theme") === "dark" ? "dark" : "light";
document.documentElement.dataset.theme = theme;
const START = 1_763_200_000,
  SECONDS = 60,
  HZ = 99;

/** Samples over a tree: with a stall, a quiet second, and a thing that happens every second at the same moment. */
function samplesOf(tree: FlameTree): SampleTable {
  const next = random(11),
    leaves = Array.from(tree.self.keys()).filter((node) => tree.self[node]! > 0);
  const time: number[] = [],
    leaf: number[] = [],
    cpu: number[] = [];
  for (let core = 0; core < 8; core++) {
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
  return {
    time: pick(time),
    leaf: pick(leaf),
    cpu: pick(cpu),
    parent: tree.parent,
    fn: tree.fn,
    functions: tree.functions,
    weight: 1,
  };
}

const clock = (at: number, digits: number): string =>
  new Date(at * 1000 + 1e-4).toISOString().slice(11, digits ? 20 + digits : 19);

function App({ given, heat, table }: { given: FlameTree; heat: HeatData | null; table: SampleTable | null }) {
  const view = VIEWS.find((each) => each === asked.get("view")) ?? "flame";
  const [look, setLook] = useState<FlameLook>({
    ...FIRST_LOOK,
    view,
    inverted: asked.get("inv") === "1",
    icicle: asked.get("flip") !== "1",
    fn: asked.get("fn") ?? "",
    colour: asked.get("colour") === "module" ? "module" : "kind",
    search: { text: asked.get("q") ?? "", mode: asked.get("qmode") === "filter" ? "filter" : "highlight" },
  });
  const [selection, select] = useState<Range | null>(rangeOf(asked.get("sel")));
  const [compare, setCompare] = useState<Range | null>(rangeOf(asked.get("cmp")));
  const [rows, setRows] = useState(Number(asked.get("rows") ?? 50));
  const all = { from: START, to: START + SECONDS };
  const { regexp } = patternOf(look.search.text);
  const shown = table ? heatFrom(table, all, rows, regexp) : heat;
  const tree =
    table && (selection || compare) ? foldSamples(table, { range: selection ?? all, against: compare }) : given;
  return (
    <main style={{ padding: "12px 16px", display: "grid", gap: "14px" }}>
      {shown && (
        <HeatMap
          data={shown}
          theme={theme}
          selection={selection}
          compare={compare}
          onSelect={select}
          onCompare={setCompare}
          clock={clock}
          searched={look.search.text}
          {...(table ? { onRows: setRows } : {})}
        />
      )}
      <FlamePanel
        tree={tree}
        look={look}
        onLook={(change) => setLook((before) => ({ ...before, ...change }))}
        theme={theme}
        title="development"
        clock={clock}
        chart={table ? foldChart(table, selection ?? { from: START, to: START + 5 }, 2, 0.03) : null}
        height={Number(asked.get("height") ?? 470)}
      />
      <pre id="bench" />
    </main>
  );
}

function heatFrom(table: SampleTable, range: Range, rows: number, regexp: RegExp | null): HeatData {
  const counted = foldHeat(table, range, rows, regexp ? matchesOf(table.functions, regexp) : undefined);
  return { ...counted, columnS: 1, spanS: 1, rows, cores: null, blind: [[START + 50, START + 55.5]] };
}

function rangeOf(text: string | null): Range | null {
  const [from, to] = (text ?? "").split("..").map(Number);
  return from !== undefined && to ? { from: START + from, to: START + to } : null;
}

/** The worst that can be seen: every node wider than a pixel, 70 levels of equally wide frames. */
function comb(nodes: number): FlameTree {
  const levels = 70,
    each = Math.floor(nodes / levels),
    count = 1 + levels * each,
    made = synthetic(500);
  const parent = new Int32Array(count),
    depth = new Uint16Array(count),
    fn = new Uint32Array(count),
    value = new Float64Array(count),
    self = new Float64Array(count);
  parent[0] = -1;
  value[0] = each;
  for (let node = 1; node < count; node++) {
    depth[node] = 1 + Math.floor((node - 1) / each);
    parent[node] = depth[node] === 1 ? 0 : node - each;
    fn[node] = 1 + ((Math.imul(node, 2654435761) >>> 0) % (made.functions.name.length - 1));
    value[node] = 1;
    self[node] = depth[node] === levels ? 1 : 0;
  }
  return new FlameTree({ functions: made.functions, fn, parent, depth, value, self });
}

/** Redraws of the whole graph at several zooms; drawing is not done before the pixels can be read. */
function bench(tree: FlameTree): string {
  const took = (what: () => unknown): number => {
    const start = performance.now();
    what();
    return performance.now() - start;
  };
  const bars = barsOf(tree),
    colours = nodeColours(tree, "kind", theme),
    canvas = document.createElement("canvas");
  const painter = new BarPainter(canvas),
    lines: string[] = [];
  const look = {
    ground: 0xffffffff,
    narrow: 0xffc0c0c0,
    match: 0xffb81f9c,
    ink: "#111",
    faintInk: "#111",
    matchInk: "#fff",
  };
  for (const [wide, tall, density] of [
    [1248, 1260, 1],
    [1888, 1260, 1],
    [1888, 1260, 2],
  ] as const) {
    const times: number[] = [],
      whole = tree.width[0]!;
    let drawn = { frames: 0, texts: 0 };
    for (let i = 0; i < 60; i++) {
      const span = whole * (1 - i / 80),
        x0 = (whole - span) * 0.37;
      const matches = i % 2 ? Uint8Array.from(tree.functions.name, (_, fn) => (fn % 9 ? 0 : 1)) : null;
      const start = performance.now();
      const now = painter.draw(
        {
          bars,
          colours,
          matches,
          fades: true,
          view: { x0, x1: x0 + span },
          dimmed: 0,
          firstLevel: 0,
          levels: tree.depths,
          flip: false,
          label: (bar) => tree.name(bar),
        },
        look,
        { width: wide, height: tall, top: 0, density },
      );
      canvas.getContext("2d")!.getImageData(0, 0, 1, 1);
      times.push(performance.now() - start);
      if (i === 0) drawn = now;
    }
    times.sort((a, b) => a - b);
    lines.push(
      `${wide}x${tall}@${density}: ${tree.count.toLocaleString("en")} nodes, ${drawn.frames} drawn, ${drawn.texts} texts; redraw best ${times[0]!.toFixed(1)}, median ${times[30]!.toFixed(1)}, p95 ${times[56]!.toFixed(1)} ms`,
    );
  }
  const matches = matchesOf(tree.functions, /cgroup/);
  lines.push(
    `layout ${took(() => barsOf(tree)).toFixed(1)} ms, colours ${took(() => nodeColours(tree, "module", theme)).toFixed(1)} ms, search ${took(() => matchesOf(tree.functions, /cg.*lru/)).toFixed(1)} ms, ` +
      `filter ${took(() => filtered(tree, matches)).toFixed(1)} ms, invert ${took(() => inverted(tree)).toFixed(1)} ms, top ${took(() => topOf(tree)).toFixed(1)} ms`,
  );
  const answer = packedTree(tree);
  const read = took(() => FlameTree.from(decode(answer)));
  lines.push(`answer of ${(answer.byteLength / 1e6).toFixed(1)} MB read in ${read.toFixed(1)} ms`);
  return lines.join("\n");
}

/** From a new tree to its pixels through the whole panel, as when another range is selected. */
async function benchPanel(tree: FlameTree): Promise<string> {
  const place = document.createElement("div"),
    times: number[] = [];
  document.body.append(place);
  for (let i = 0; i < 12; i++) {
    const made = FlameTree.from(decode(packedTree(tree)));
    await new Promise((done) => setTimeout(done, 30));
    const start = performance.now();
    render(<FlamePanel tree={made} look={FIRST_LOOK} onLook={() => undefined} theme={theme} title="" />, place);
    await new Promise<void>((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - start);
  }
  render(null, place);
  times.sort((a, b) => a - b);
  return `a new tree of ${tree.count.toLocaleString("en")} nodes through the whole panel: median ${times[6]!.toFixed(0)} ms, best ${times[0]!.toFixed(0)} ms`;
}

async function begin(): Promise<void> {
  const data = asked.get("data") ?? "synthetic",
    app = document.getElementById("app")!;
  if (data === "synthetic") {
    const tree = synthetic(Number(asked.get("nodes") ?? 100_000), {
      depth: Number(asked.get("depth") ?? 70),
      compared: asked.get("diff") === "1",
    });
    render(<App given={tree} heat={null} table={samplesOf(tree)} />, app);
    if (asked.get("bench"))
      setTimeout(async () => {
        const panel = await benchPanel(tree);
        document.body.dataset.bench = document.getElementById("bench")!.textContent =
          `${panel}\n${bench(tree)}\n\nevery frame wider than a pixel:\n${bench(comb(100_000))}\n\nas many texts as fit:\n${bench(comb(4_000))}`;
      }, 200);
  } else {
    const load = async <T,>(name: string): Promise<T> => (await fetch(`./fixtures/${name}.json`)).json() as Promise<T>;
    const heat = await load<HeatDocument>(asked.get("heat") ?? (data === "demo" ? "heatmap-demo" : "heatmap"));
    render(
      <App
        given={treeFrom(
          await load<FlameDocument>(data === "demo" ? "flamegraph-demo" : data === "real" ? "flamegraph" : data),
        )}
        heat={heatOf(heat)}
        table={null}
      />,
      app,
    );
  }
  document.body.dataset.ready = "yes";
}

void begin();
