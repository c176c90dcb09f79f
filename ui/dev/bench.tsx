// How long the flame graph takes to draw: by itself at several zooms, and through the whole panel.

import { render } from "preact";
import { decode } from "../src/api/columns";
import type { FlamegraphHeader } from "../src/api/types";
import { FIRST_LOOK, FlamePanel, FlameTree, matchesOf, packedTree, type Theme } from "../src/flame";
import { nodeColours } from "../src/flame/colours";
import { synthetic } from "../src/flame/fixtures";
import { inverted } from "../src/flame/invert";
import { barsOf } from "../src/flame/layout";
import { BarPainter } from "../src/flame/paint";
import { filtered } from "../src/flame/search";
import { topOf } from "../src/flame/top";
import { count } from "../src/format";

/** The worst that can be seen: every node wider than a pixel, 70 levels of equally wide frames. */
export function comb(nodes: number): FlameTree {
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
export function bench(tree: FlameTree, theme: Theme): string {
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
      `${wide}x${tall}@${density}: ${count(tree.count)} nodes, ${drawn.frames} drawn, ${drawn.texts} texts; redraw best ${times[0]!.toFixed(1)}, median ${times[30]!.toFixed(1)}, p95 ${times[56]!.toFixed(1)} ms`,
    );
  }
  const matches = matchesOf(tree.functions, /cgroup/);
  lines.push(
    `layout ${took(() => barsOf(tree)).toFixed(1)} ms, colours ${took(() => nodeColours(tree, "module", theme)).toFixed(1)} ms, search ${took(() => matchesOf(tree.functions, /cg.*lru/)).toFixed(1)} ms, ` +
      `filter ${took(() => filtered(tree, matches)).toFixed(1)} ms, invert ${took(() => inverted(tree)).toFixed(1)} ms, top ${took(() => topOf(tree)).toFixed(1)} ms`,
  );
  const answer = packedTree(tree);
  const read = took(() => FlameTree.from(decode<FlamegraphHeader>(answer)));
  lines.push(`answer of ${(answer.byteLength / 1e6).toFixed(1)} MB read in ${read.toFixed(1)} ms`);
  return lines.join("\n");
}

/** From a new tree to its pixels through the whole panel, as when another range is selected. */
export async function benchPanel(tree: FlameTree, theme: Theme): Promise<string> {
  const place = document.createElement("div"),
    times: number[] = [];
  document.body.append(place);
  for (let i = 0; i < 12; i++) {
    const made = FlameTree.from(decode<FlamegraphHeader>(packedTree(tree)));
    await new Promise((done) => setTimeout(done, 30));
    const start = performance.now();
    render(<FlamePanel tree={made} look={FIRST_LOOK} onLook={() => undefined} theme={theme} title="" />, place);
    await new Promise<void>((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - start);
  }
  render(null, place);
  times.sort((a, b) => a - b);
  return `a new tree of ${count(tree.count)} nodes through the whole panel: median ${times[6]!.toFixed(0)} ms, best ${times[0]!.toFixed(0)} ms`;
}
